"""The append machine, decision by decision (the rules stand in `ingest_service.proto`)."""

import attrs
import pytest

from ingest_service.core.append import (
    AcknowledgeAgain,
    Append,
    AppendKind,
    AppendMachine,
    Checkpointed,
    RecallDigest,
    Refuse,
    RunProgress,
    Store,
    StreamOpening,
    WriterProgress,
    decide_repetition,
)
from linkbound.domain.errors import AbortedError, Error, FailedPreconditionError, OutOfRangeError


def append(number: int, content: str = "", kind: AppendKind = AppendKind.UNARY, writer: str = "bench") -> Append:
    digest = (content or str(number)).encode()
    return Append(run_id="r", writer_id=writer, sequence_number=number, kind=kind, digest=digest)


def machine(*writers: WriterProgress, sealed: bool = False) -> AppendMachine:
    new = AppendMachine()
    new.recover(RunProgress(run_id="r", sealed=sealed, writers=writers))
    return new


def bench(committed: int, kind: AppendKind = AppendKind.UNARY) -> WriterProgress:
    return WriterProgress(writer_id="bench", kind=kind, committed_sequence_number=committed)


def refusal(decision: object) -> Error:
    assert isinstance(decision, Refuse)
    return decision.error


def test_numbers_in_order_are_stored_and_committed_together() -> None:
    subject = machine()
    assert [subject.decide(append(number)) for number in (1, 2, 3)] == [Store()] * 3
    assert subject.committed_sequence_number("r", "bench") == 0
    subject.commit()
    assert subject.committed_sequence_number("r", "bench") == 3


def test_a_repetition_within_the_transaction_is_acknowledged_again() -> None:
    subject = machine()
    subject.decide(append(1))
    assert subject.decide(append(1)) == AcknowledgeAgain()
    subject.commit()
    assert subject.committed_sequence_number("r", "bench") == 1


def test_a_committed_number_needs_the_digest_of_the_ledger() -> None:
    assert machine(bench(5)).decide(append(5)) == RecallDigest()
    assert decide_repetition(append(5), stored_digest=b"5") == AcknowledgeAgain()


@pytest.mark.parametrize("is_committed", [True, False])
def test_other_content_under_a_stored_number_is_a_conflict(*, is_committed: bool) -> None:
    subject = machine()
    subject.decide(append(1, "first"))
    if is_committed:
        decision: object = decide_repetition(append(1, "other"), stored_digest=b"first")
    else:
        decision = subject.decide(append(1, "other"))
    error = refusal(decision)
    assert isinstance(error, AbortedError)
    assert error.reason == "WRITER_CONFLICT"
    assert error.metadata == {"writer": "bench", "sequenceNumber": "1"}


@pytest.mark.parametrize(
    ("committed", "pending", "number", "expected"), [(0, 0, 2, "1"), (7, 0, 9, "8"), (7, 2, 11, "10")]
)
def test_a_number_too_far_ahead_names_the_next_one(committed: int, pending: int, number: int, expected: str) -> None:
    subject = machine(bench(committed)) if committed else machine()
    for following in range(pending):
        subject.decide(append(committed + 1 + following))
    error = refusal(subject.decide(append(number)))
    assert isinstance(error, OutOfRangeError)
    assert error.reason == "SEQUENCE_GAP"
    assert error.metadata["expectedSequenceNumber"] == expected
    assert error.metadata["checkpointedSequenceNumber"] == str(committed)


def test_a_gap_changes_nothing() -> None:
    subject = machine()
    subject.decide(append(2))
    assert subject.decide(append(1)) == Store()
    assert subject.decide(append(2)) == Store()


@pytest.mark.parametrize("number", [1, 4])
def test_a_writer_keeps_its_kind(number: int) -> None:
    error = refusal(machine(bench(3)).decide(append(number, kind=AppendKind.STREAM)))
    assert isinstance(error, FailedPreconditionError)
    assert error.reason == "WRITER_KIND_MISMATCH"
    assert error.metadata == {"writer": "bench", "kind": "UNARY", "askedKind": "STREAM"}


def test_a_kind_that_was_rolled_back_does_not_bind_the_writer() -> None:
    subject = machine()
    subject.decide(append(1))
    assert isinstance(subject.decide(append(2, kind=AppendKind.STREAM)), Refuse)
    subject.roll_back()
    assert subject.decide(append(1, kind=AppendKind.STREAM)) == Store()


def test_after_a_rollback_the_same_numbers_come_next() -> None:
    subject = machine(bench(4))
    subject.decide(append(5))
    subject.decide(append(6))
    subject.roll_back()
    assert refusal(subject.decide(append(6))).metadata["expectedSequenceNumber"] == "5"
    assert subject.decide(append(5, "other")) == Store()


def test_a_sealed_run_takes_nothing_new() -> None:
    subject = machine(bench(3), sealed=True)
    for number in (4, 9):
        error = refusal(subject.decide(append(number)))
        assert isinstance(error, FailedPreconditionError)
        assert error.reason == "RUN_SEALED"
    assert refusal(subject.decide(append(1, writer="late"))).reason == "RUN_SEALED"


def test_a_sealed_run_still_acknowledges_what_it_holds() -> None:
    assert machine(bench(3), sealed=True).decide(append(3)) == RecallDigest()


def test_writers_do_not_touch_each_other() -> None:
    subject = machine(bench(3))
    assert subject.decide(append(1, writer="sampler", kind=AppendKind.STREAM)) == Store()
    assert subject.decide(append(4)) == Store()
    subject.commit()
    assert subject.committed_sequence_number("r", "sampler") == 1
    assert subject.committed_sequence_number("r", "bench") == 4


def test_a_run_is_decided_on_only_after_it_was_recovered() -> None:
    subject = machine()
    subject.forget("r")
    assert not subject.knows("r")
    with pytest.raises(KeyError):
        subject.decide(append(1))


def opening(last_acked: int = 0, first_kept: int = 0) -> StreamOpening:
    return StreamOpening(
        run_id="r", writer_id="bench", last_acked_sequence_number=last_acked, first_kept_sequence_number=first_kept
    )


def streamed(number: int, epoch: int) -> Append:
    return attrs.evolve(append(number, kind=AppendKind.STREAM), epoch=epoch)


@pytest.mark.parametrize(
    ("committed", "last_acked", "first_kept", "lost_count"),
    [(0, 0, 0, 0), (5, 0, 0, 0), (5, 5, 0, 0), (5, 3, 0, 0), (5, 5, 2, 0), (5, 8, 6, 3), (5, 8, 1, 3), (0, 4, 1, 4)],
)
def test_a_stream_goes_on_from_the_committed_number(
    committed: int, last_acked: int, first_kept: int, lost_count: int
) -> None:
    subject = machine(bench(committed, AppendKind.STREAM)) if committed else machine()
    position = subject.open_stream(opening(last_acked, first_kept))
    assert position.committed_sequence_number == committed
    assert position.lost_append_count == lost_count


@pytest.mark.parametrize(("last_acked", "first_kept", "named"), [(6, 0, "7"), (8, 7, "7"), (5, 9, "9")])
def test_a_stream_is_told_that_acknowledged_data_is_gone(last_acked: int, first_kept: int, named: str) -> None:
    with pytest.raises(FailedPreconditionError) as caught:
        machine(bench(5, AppendKind.STREAM)).open_stream(opening(last_acked, first_kept))
    assert caught.value.reason == "ACKED_DATA_MISSING"
    assert caught.value.metadata["lastAckedSequenceNumber"] == str(last_acked)
    assert caught.value.metadata["firstKeptSequenceNumber"] == named
    assert caught.value.metadata["committedSequenceNumber"] == "5"


def test_a_stream_is_not_opened_for_a_unary_writer_or_a_sealed_run() -> None:
    with pytest.raises(FailedPreconditionError) as caught:
        machine(bench(5)).open_stream(opening())
    assert caught.value.reason == "WRITER_KIND_MISMATCH"
    with pytest.raises(FailedPreconditionError) as caught:
        machine(sealed=True).open_stream(opening())
    assert caught.value.reason == "RUN_SEALED"


def test_a_second_stream_fences_the_first() -> None:
    subject = machine()
    first, second = (subject.open_stream(opening()).epoch for _ in range(2))
    error = refusal(subject.decide(streamed(1, first)))
    assert isinstance(error, AbortedError)
    assert error.reason == "WRITER_FENCED"
    assert error.metadata == {"writer": "bench"}
    assert subject.decide(streamed(1, second)) == Store()


def test_what_the_first_stream_brought_before_stays() -> None:
    subject = machine()
    first = subject.open_stream(opening()).epoch
    subject.decide(streamed(1, first))
    subject.commit()
    assert subject.open_stream(opening()).committed_sequence_number == 1
    assert refusal(subject.decide(streamed(1, first))).reason == "WRITER_FENCED"


def test_an_opening_that_is_refused_fences_nobody() -> None:
    subject = machine(bench(5, AppendKind.STREAM))
    first = subject.open_stream(opening()).epoch
    with pytest.raises(FailedPreconditionError):
        subject.open_stream(opening(last_acked=9))
    assert subject.decide(streamed(6, first)) == Store()


def test_a_stream_of_a_run_that_was_sealed_learns_that_and_not_that_it_is_fenced() -> None:
    subject = machine()
    epoch = subject.open_stream(opening()).epoch
    subject.forget("r")
    subject.recover(RunProgress(run_id="r", sealed=True))
    assert refusal(subject.decide(streamed(1, epoch))).reason == "RUN_SEALED"


def test_a_stream_of_a_run_that_was_deleted_does_not_write_into_a_new_one_of_its_name() -> None:
    subject = machine()
    epoch = subject.open_stream(opening()).epoch
    subject.remove("r")
    subject.recover(RunProgress(run_id="r", sealed=False))
    assert refusal(subject.decide(streamed(1, epoch))).reason == "WRITER_FENCED"


def test_what_the_store_held_when_it_was_opened_is_checkpointed() -> None:
    assert machine(bench(5, AppendKind.STREAM)).open_stream(opening()).checkpointed_sequence_number == 5


def test_what_the_store_held_in_a_log_when_it_was_opened_is_not_checkpointed_before_the_next() -> None:
    subject = AppendMachine()
    subject.start_with_log()
    subject.recover(RunProgress(run_id="r", sealed=False, writers=(bench(5),)))
    assert subject.checkpointed_sequence_number("r", "bench") == 0
    assert subject.checkpoint() == [Checkpointed(run_id="r", writer_id="bench", sequence_number=5)]
    subject.recover(RunProgress(run_id="later", sealed=False, writers=(bench(3),)))
    assert subject.checkpointed_sequence_number("later", "bench") == 3


def test_a_log_that_the_store_was_opened_with_waits_for_a_checkpoint() -> None:
    subject = AppendMachine()
    subject.start_with_log()
    assert subject.has_uncheckpointed
    subject.checkpoint()
    assert [subject.has_uncheckpointed] == [False]


def test_a_checkpoint_holds_what_is_committed_and_names_the_writers_for_whom_that_is_news() -> None:
    subject = machine(bench(5), WriterProgress(writer_id="idle", kind=AppendKind.UNARY, committed_sequence_number=3))
    subject.decide(append(6))
    subject.commit()
    assert subject.has_uncheckpointed
    assert subject.checkpointed_sequence_number("r", "bench") == 5
    assert subject.checkpoint() == [Checkpointed(run_id="r", writer_id="bench", sequence_number=6)]
    assert subject.checkpointed_sequence_number("r", "bench") == 6
    assert subject.checkpoint() == []


def test_forgetting_a_run_checkpoints_nothing() -> None:
    subject = machine()
    subject.decide(append(1))
    subject.commit()
    subject.forget("r")
    subject.recover(RunProgress(run_id="r", sealed=False, writers=(bench(1),)))
    assert subject.checkpointed_sequence_number("r", "bench") == 0
    subject.checkpoint()
    assert subject.checkpointed_sequence_number("r", "bench") == 1
