"""The append machine, decision by decision (the rules stand in `ingest_service.proto`)."""

import pytest

from ingest_service.core.append import (
    AcknowledgeAgain,
    Append,
    AppendKind,
    AppendMachine,
    RecallDigest,
    Refuse,
    RunProgress,
    Store,
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


@pytest.mark.parametrize(("committed", "last_acked"), [(0, 0), (5, 0), (5, 5), (5, 3)])
def test_a_stream_goes_on_from_the_committed_number(committed: int, last_acked: int) -> None:
    subject = machine(bench(committed, AppendKind.STREAM)) if committed else machine()
    assert subject.open_stream("r", "bench", last_acked) == committed


def test_a_stream_is_told_that_acknowledged_data_is_gone() -> None:
    with pytest.raises(FailedPreconditionError) as caught:
        machine(bench(5, AppendKind.STREAM)).open_stream("r", "bench", 6)
    assert caught.value.reason == "ACKED_DATA_MISSING"
    assert caught.value.metadata["lastAckedSequenceNumber"] == "6"
    assert caught.value.metadata["committedSequenceNumber"] == "5"


def test_a_stream_is_not_opened_for_a_unary_writer_or_a_sealed_run() -> None:
    with pytest.raises(FailedPreconditionError) as caught:
        machine(bench(5)).open_stream("r", "bench", 0)
    assert caught.value.reason == "WRITER_KIND_MISMATCH"
    with pytest.raises(FailedPreconditionError) as caught:
        machine(sealed=True).open_stream("r", "bench", 0)
    assert caught.value.reason == "RUN_SEALED"
