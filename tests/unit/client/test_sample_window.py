import pytest

from linkbound.client.sample_window import SampleWindow
from linkbound.domain.errors import AbortedError
from linkbound.domain.samples import BatchOutcome, SampleColumns, StreamLimits

LIMITS = StreamLimits(max_in_flight_batches=3, max_batch_bytes=1024)
COLUMNS = (SampleColumns(series_index=0, time_ns=(1, 2), value=(3, 4)),)


def opened(committed: int = 0) -> SampleWindow:
    window = SampleWindow()
    window.open(committed, LIMITS)
    return window


def filled(window: SampleWindow, count: int = 3) -> SampleWindow:
    for _ in range(count):
        window.add(COLUMNS)
    return window


def unsent(window: SampleWindow) -> list[int]:
    """Numbers that are still to be sent; afterwards they are under way."""
    numbers = []
    while (batch := window.take_unsent()) is not None:
        numbers.append(batch.sequence_number)
    return numbers


def test_nothing_can_be_numbered_before_a_stream_was_open() -> None:
    window = SampleWindow()
    assert not window.has_opened
    assert not window.has_room
    with pytest.raises(RuntimeError):
        window.add(COLUMNS)


def test_each_batch_is_sent_once_over_one_stream() -> None:
    window = filled(opened(4), 2)
    assert unsent(window) == [5, 6]
    assert unsent(window) == []
    window.add(COLUMNS)
    assert unsent(window) == [7]


def test_there_is_room_until_the_limit_and_again_after_an_acknowledgement() -> None:
    window = filled(opened())
    room_when_full = window.has_room
    assert window.acknowledge(BatchOutcome(committed_sequence_number=1))
    assert (room_when_full, window.has_room) == (False, True)
    assert window.pending_sample_count == 4


def test_acknowledgements_may_skip_and_repeat() -> None:
    window = filled(opened())
    unsent(window)
    assert window.acknowledge(BatchOutcome(committed_sequence_number=3))
    assert window.is_empty
    assert not window.acknowledge(BatchOutcome(committed_sequence_number=3))
    assert window.committed_sequence_number == 3
    window.add(COLUMNS)
    assert unsent(window) == [4]


def test_what_was_acknowledged_before_it_was_sent_does_not_shift_the_rest() -> None:
    window = filled(opened())
    window.acknowledge(BatchOutcome(committed_sequence_number=2))
    assert unsent(window) == [3]


def test_a_new_stream_gets_what_is_not_stored() -> None:
    window = filled(opened())
    unsent(window)
    window.open(1, LIMITS)
    assert unsent(window) == [2, 3]


def test_a_refused_batch_is_gone_and_the_others_keep_their_place() -> None:
    window = filled(opened())
    assert [window.take_unsent(), window.take_unsent()] != [None, None]
    window.refuse(1, "odd")
    assert (window.rejected_sample_count, window.rejection_message) == (2, "odd")
    assert unsent(window) == [3]
    window.refuse(1, "again")
    assert (window.rejected_sample_count, window.rejection_message) == (2, "odd")


def test_a_refused_batch_that_is_still_to_be_sent_is_not_sent() -> None:
    window = filled(opened())
    window.take_unsent()
    window.refuse(3, "odd")
    assert unsent(window) == [2]


def test_rejections_add_up_and_the_last_reason_stays() -> None:
    window = filled(opened())
    window.acknowledge(BatchOutcome(committed_sequence_number=1, rejected_sample_count=1, rejection_message="a"))
    window.acknowledge(BatchOutcome(committed_sequence_number=2))
    window.acknowledge(BatchOutcome(committed_sequence_number=3, rejected_sample_count=2, rejection_message="b"))
    assert (window.rejected_sample_count, window.rejection_message) == (3, "b")


def test_more_stored_than_was_ever_written_is_another_writer() -> None:
    window = filled(opened())
    with pytest.raises(AbortedError):
        window.open(4, LIMITS)
