from attrs import evolve

from linkbound.client.sample_window import SampleWindow
from linkbound.domain.samples import BatchOutcome, StreamLimits, StreamStart

LIMITS = StreamLimits(max_in_flight_batches=3, max_batch_bytes=1024)
LAST_NUMBER = 8
ROWS = 2


def start(committed: int, checkpointed: int = 0) -> StreamStart:
    return StreamStart(committed_sequence_number=committed, checkpointed_sequence_number=checkpointed, limits=LIMITS)


def opened(committed: int = 0) -> SampleWindow:
    window = SampleWindow()
    window.open(start(committed), committed * ROWS)
    return window


def sent(window: SampleWindow) -> list[int]:
    """Numbers that may be sent now; afterwards they are under way."""
    numbers = []
    while window.has_room and window.next_number <= LAST_NUMBER:
        numbers.append(window.next_number)
        window.note_sent(ROWS)
    return numbers


def test_nothing_can_be_sent_before_a_stream_was_open() -> None:
    window = SampleWindow()
    assert (window.has_opened, window.has_room, window.max_batch_bytes) == (False, False, 0)


def test_each_batch_is_sent_once_over_one_stream_up_to_the_limit() -> None:
    window = opened(4)
    assert sent(window) == [5, 6, 7]
    assert sent(window) == []
    assert window.acknowledge(BatchOutcome(committed_sequence_number=5))
    assert sent(window) == [8]
    assert window.delivered_row_count == 5 * ROWS


def test_acknowledgements_may_skip_and_repeat() -> None:
    window = opened(5)
    sent(window)
    assert not window.is_delivered(LAST_NUMBER)
    assert window.acknowledge(BatchOutcome(committed_sequence_number=8))
    assert (window.is_delivered(LAST_NUMBER), window.is_delivered(LAST_NUMBER + 1)) == (True, False)
    assert not window.acknowledge(BatchOutcome(committed_sequence_number=8))
    assert (window.committed_sequence_number, window.delivered_row_count) == (8, 8 * ROWS)


def test_a_new_stream_gets_what_is_not_stored() -> None:
    window = opened()
    sent(window)
    window.open(start(1), ROWS)
    assert sent(window) == [2, 3, 4]


def test_a_new_stream_gets_again_what_the_service_lost() -> None:
    window = opened()
    sent(window)
    window.acknowledge(BatchOutcome(committed_sequence_number=3, checkpointed_sequence_number=1))
    window.open(start(1, 1), ROWS)
    assert sent(window) == [2, 3, 4]
    assert (window.committed_sequence_number, window.checkpointed_sequence_number) == (1, 1)


def test_the_checkpointed_number_only_grows_within_a_stream() -> None:
    window = opened()
    window.acknowledge(BatchOutcome(committed_sequence_number=3, checkpointed_sequence_number=2))
    window.acknowledge(BatchOutcome(committed_sequence_number=4))
    assert window.checkpointed_sequence_number == 2


def test_a_refused_batch_is_gone_and_the_others_keep_their_place() -> None:
    window = opened()
    sent(window)
    window.refuse(1, "odd")
    assert (window.rejected_sample_count, window.rejection_message) == (ROWS, "odd")
    assert sent(window) == [4]
    window.refuse(1, "again")
    assert (window.rejected_sample_count, window.rejection_message, window.delivered_row_count) == (ROWS, "odd", ROWS)


def test_the_last_batch_counts_as_delivered_when_it_is_refused() -> None:
    window = opened(7)
    sent(window)
    window.refuse(8, "odd")
    assert window.is_delivered(LAST_NUMBER)
    assert not window.is_anything_under_way


def test_a_new_stream_tells_what_was_rejected_of_lost_acknowledgements() -> None:
    window = SampleWindow()
    window.open(evolve(start(0), rejected_sample_count=5), 0)
    sent(window)
    window.acknowledge(BatchOutcome(committed_sequence_number=1, rejected_sample_count=1))
    window.open(evolve(start(2), rejected_sample_count=9), 2 * ROWS)
    assert window.rejected_sample_count == 4


def test_rejections_add_up_and_the_last_reason_stays() -> None:
    window = opened()
    window.acknowledge(BatchOutcome(committed_sequence_number=1, rejected_sample_count=1, rejection_message="a"))
    window.acknowledge(BatchOutcome(committed_sequence_number=2))
    window.acknowledge(BatchOutcome(committed_sequence_number=3, rejected_sample_count=2, rejection_message="b"))
    assert (window.rejected_sample_count, window.rejection_message) == (3, "b")
