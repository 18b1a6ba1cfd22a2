"""The record writer against a service in memory: numbers, repetitions, losses, and what a spool keeps."""

import asyncio
import gc
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import define, field

from linkbound import (
    FailedPreconditionError,
    InvalidArgumentError,
    Metric,
    MetricAggregate,
    OutOfRangeError,
    Record,
    RequestRecord,
    Spool,
    Spread,
    TrainingStep,
    UnavailableError,
    Violation,
)
from linkbound.client import record_delivery
from linkbound.client.aio_record_writer import AsyncRecordWriter
from linkbound.client.closing import Closing
from linkbound.client.options import Timeout
from linkbound.client.record_writer import RecordWriter
from linkbound.client.spool.segment import segment_paths
from linkbound.client.writer_options import WriterIdentity, writer_options
from linkbound.convert import record_payload
from linkbound.domain.errors import AbortedError, Error
from linkbound.domain.records import LARGEST_SEQUENCE_NUMBER, AppendOutcome, AppendRequest
from tests.unit.client.test_aio_sample_writer import NEVER_REACHED_SECONDS, let_others_run

IDENTITY = WriterIdentity(run="r1", writer_id="bench")
SHORT_SECONDS = 0.2
SMALL_BYTES = 2**18


@define
class MemoryLedger:
    """An ingest service that takes appends in order, each number once."""

    stored: list[AppendRequest] = field(factory=list)
    errors: list[Error] = field(factory=list)
    lost_answers: int = 0
    probe_count: int = 0
    repetition_count: int = 0
    checkpoint: int | None = None
    """Up to which number a checkpoint holds everything; None: whatever is stored."""

    async def append(self, request: AppendRequest) -> AppendOutcome:
        """Store, repeat, or refuse."""
        await let_others_run()
        if self.errors:
            raise self.errors.pop(0)
        number, expected = request.sequence_number, len(self.stored) + 1
        if number > expected:
            self.probe_count += 1
            numbers = {"expectedSequenceNumber": expected, "checkpointedSequenceNumber": self.checkpointed}
            metadata = {key: str(value) for key, value in numbers.items()}
            raise OutOfRangeError("a gap", reason="SEQUENCE_GAP", metadata=metadata)
        if number < expected:
            if self.stored[number - 1] != request:
                raise AbortedError("other content", reason="WRITER_CONFLICT")
            self.repetition_count += 1
            return self.outcome(number)
        self.stored.append(request)
        if self.lost_answers:
            self.lost_answers -= 1
            raise UnavailableError("connection reset")
        return self.outcome(number)

    @property
    def checkpointed(self) -> int:
        return len(self.stored) if self.checkpoint is None else self.checkpoint

    def outcome(self, number: int) -> AppendOutcome:
        return AppendOutcome(
            committed_sequence_number=number, checkpointed_sequence_number=min(number, self.checkpointed)
        )

    def lose(self, *, kept: int) -> None:
        """The service starts anew and has lost the end of its log."""
        assert kept >= self.checkpointed
        del self.stored[kept:]

    @property
    def steps(self) -> list[float | None]:
        """The steps that are stored, in order."""
        return [r.step_seconds for request in self.stored for r in request.records if isinstance(r, TrainingStep)]


def step(seconds: float) -> TrainingStep:
    return TrainingStep(subject="s", node_count=1, step_seconds=seconds)


def writer(
    ledger: MemoryLedger, spool: Spool | Path | None = None, timeout_seconds: Timeout = NEVER_REACHED_SECONDS
) -> AsyncRecordWriter:
    return AsyncRecordWriter(ledger.append, IDENTITY, writer_options(spool, 0, timeout_seconds), Closing())


def away() -> MemoryLedger:
    return MemoryLedger(errors=[UnavailableError("refused") for _ in range(1000)])


async def write_and_leave(records: AsyncRecordWriter, *seconds: float) -> None:
    async with records:
        for value in seconds:
            await records.write([step(value)])


async def test_appends_are_numbered_and_stored_in_order() -> None:
    ledger = MemoryLedger()
    async with writer(ledger) as records:
        for value in range(1, 6):
            await records.write([step(value)])
        await records.flush()
        assert (records.committed, records.pending) == (5, 0)
    assert [request.sequence_number for request in ledger.stored] == [1, 2, 3, 4, 5]
    assert ledger.steps == [1, 2, 3, 4, 5]
    assert ledger.probe_count == 1


async def test_a_new_process_goes_on_behind_what_is_stored() -> None:
    ledger = MemoryLedger()
    await write_and_leave(writer(ledger), 1, 2)
    await write_and_leave(writer(ledger), 3)
    assert ledger.steps == [1, 2, 3]


async def test_a_writer_that_writes_nothing_asks_nothing(tmp_path: Path) -> None:
    for spool in (None, tmp_path):
        async with writer(away(), spool, timeout_seconds=None) as records:
            await records.write([])
            await records.flush()


@pytest.mark.parametrize("kept", ["memory", "spool"])
async def test_lost_answers_store_nothing_twice(tmp_path: Path, kept: str) -> None:
    ledger = MemoryLedger(lost_answers=3)
    await write_and_leave(writer(ledger, tmp_path if kept == "spool" else None), 1, 2, 3, 4)
    assert ledger.steps == [1, 2, 3, 4]


async def test_records_of_all_kinds_share_a_write() -> None:
    ledger = MemoryLedger()
    aggregate = MetricAggregate(metric=Metric.TTFT_SECONDS, subject="s", value=Spread(mean=1.0))
    written: list[Record] = [step(1), step(2), aggregate, step(3)]
    async with writer(ledger) as records:
        await records.write(written)
    assert [len(request.records) for request in ledger.stored] == [2, 1, 1]
    assert [record for request in ledger.stored for record in request.records] == written


async def test_what_is_too_much_for_one_append_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = MemoryLedger()
    monkeypatch.setattr(record_payload, "LARGEST_PAYLOAD_BYTES", 4000)
    chunks = tuple(range(1, 1001))
    large = [
        RequestRecord(
            subject="s",
            round_index=0,
            request_index=index,
            prompt_tokens=8,
            output_tokens=1000,
            ttft_ns=1,
            last_token_ns=1000,
            chunk_offset_ns=chunks,
            chunk_tokens=(1,) * 1000,
        )
        for index in range(5)
    ]
    async with writer(ledger) as records:
        await records.write(large)
        await records.write([step(value) for value in range(1, 2501)])
    assert [record for request in ledger.stored[:5] for record in request.records] == large
    assert len(ledger.steps) == 2500


async def test_an_outage_is_written_through_and_the_next_process_delivers(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError) as caught:
        await write_and_leave(writer(away(), tmp_path, SHORT_SECONDS), 1, 2, 3)
    assert (caught.value.reason, caught.value.metadata) == ("NOT_DELIVERED", {"spooledRecordCount": "3"})
    ledger = MemoryLedger()
    await write_and_leave(writer(ledger, tmp_path), 4)
    assert ledger.steps == [1, 2, 3, 4]
    await write_and_leave(writer(ledger, tmp_path), 5)
    assert ledger.steps == [1, 2, 3, 4, 5]


async def test_without_a_spool_a_service_that_stays_away_raises_what_is_lost() -> None:
    with pytest.raises(UnavailableError) as caught:
        await write_and_leave(writer(away(), None, SHORT_SECONDS), 1, 2)
    assert caught.value.metadata == {"undeliveredRecordCount": "2"}


async def test_a_refusal_raises_and_the_records_stay(tmp_path: Path) -> None:
    refusal = FailedPreconditionError("sealed", reason="RUN_SEALED")
    with pytest.raises(FailedPreconditionError) as caught:
        await write_and_leave(writer(MemoryLedger(errors=[refusal]), tmp_path), 1)
    assert (caught.value.reason, caught.value.metadata) == ("RUN_SEALED", {"spooledRecordCount": "1"})


@pytest.mark.parametrize("kept", ["memory", "spool"])
async def test_a_malformed_append_is_counted_and_the_rest_goes_on(tmp_path: Path, kept: str) -> None:
    ledger = MemoryLedger()
    async with writer(ledger, tmp_path if kept == "spool" else None) as records:
        await records.write([step(1)])
        await records.flush()
        ledger.errors.append(InvalidArgumentError([Violation("records[0].subject", "odd")]))
        await records.write([step(2), step(3)])
        await records.flush()
        await records.write([step(4)])
    assert ledger.steps == [1, 4]
    assert (records.rejected, records.rejection_message, records.pending) == (2, "records[0].subject: odd", 0)


async def test_any_number_of_malformed_appends_is_gone_through(tmp_path: Path) -> None:
    class Refusing(MemoryLedger):
        async def append(self, request: AppendRequest) -> AppendOutcome:
            is_probe = request.sequence_number == LARGEST_SEQUENCE_NUMBER
            if request.records == (step(2),) and not is_probe:
                raise InvalidArgumentError([Violation("records[0]", "odd")])
            return await MemoryLedger.append(self, request)

    ledger = Refusing()
    async with writer(ledger, tmp_path) as records:
        for _ in range(250):
            await records.write([step(1)])
            await records.write([step(2)])
    assert ledger.steps == [1] * 250
    assert (records.rejected, records.pending) == (250, 0)
    await write_and_leave(writer(ledger, tmp_path), 3)
    assert ledger.steps[250:] == [3]


@pytest.mark.parametrize("kept", ["memory", "spool"])
@pytest.mark.parametrize("lost_from", [1, 2, 3])
async def test_what_no_checkpoint_held_and_the_service_lost_is_sent_again(
    tmp_path: Path, kept: str, lost_from: int
) -> None:
    ledger = MemoryLedger(checkpoint=0)
    async with writer(ledger, tmp_path if kept == "spool" else None) as records:
        for value in (1, 2, 3):
            await records.write([step(value)])
        await records.flush()
        assert records.committed == 3
        ledger.lose(kept=lost_from - 1)
        await records.write([step(4)])
        await records.flush()
        assert (records.committed, records.pending) == (4, 0)
        ledger.checkpoint = 2
        await records.write([step(5)])
        await records.flush()
        ledger.lose(kept=2)
        await records.write([step(6)])
    assert ledger.steps == [1, 2, 3, 4, 5, 6]


async def test_the_next_process_sends_again_what_the_service_lost_meanwhile(tmp_path: Path) -> None:
    ledger = MemoryLedger(checkpoint=1)
    await write_and_leave(writer(ledger, tmp_path), 1, 2, 3)
    ledger.lose(kept=1)
    await write_and_leave(writer(ledger, tmp_path))
    assert ledger.steps == [1, 2, 3]
    ledger.lose(kept=2)
    await write_and_leave(writer(ledger, tmp_path), 4)
    assert ledger.steps == [1, 2, 3, 4]


async def test_a_spool_is_emptied_once_a_checkpoint_holds_everything(tmp_path: Path) -> None:
    ledger = MemoryLedger(checkpoint=0)
    path = tmp_path / "r1" / "bench.spool"
    for value in (1, 2):
        await write_and_leave(writer(ledger, tmp_path), value)
        assert len(segment_paths(path)) == value
    ledger.checkpoint = 2
    # Who writes nothing asks as well, and hears of it by the number that comes next.
    await write_and_leave(writer(ledger, tmp_path))
    assert segment_paths(path) == []
    await write_and_leave(writer(away(), tmp_path, timeout_seconds=None))
    await write_and_leave(writer(ledger, tmp_path), 3)
    assert ledger.steps == [1, 2, 3]


@pytest.mark.parametrize("kept", ["memory", "spool"])
async def test_a_writer_that_rests_hears_of_checkpoints_and_losses(
    tmp_path: Path, kept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_delivery, "CHECKPOINT_POLL_SECONDS", 0.01)
    ledger = MemoryLedger(checkpoint=0)
    async with asyncio.timeout(NEVER_REACHED_SECONDS), writer(ledger, tmp_path if kept == "spool" else None) as records:
        for value in (1, 2, 3):
            await records.write([step(value)])
        await records.flush()
        ledger.lose(kept=0)
        while ledger.steps != [1, 2, 3]:
            await let_others_run()
        # One that was stored last and lost alone is stored by the question itself.
        ledger.lose(kept=2)
        while ledger.steps != [1, 2, 3]:
            await let_others_run()
        ledger.checkpoint = 3
        asked = -1
        while asked != ledger.repetition_count:
            asked = ledger.repetition_count
            await asyncio.sleep(0.1)
        assert asked > 0
    assert ledger.steps == [1, 2, 3]


async def test_a_service_that_goes_away_while_a_writer_rests_is_no_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_delivery, "CHECKPOINT_POLL_SECONDS", 0.01)
    ledger = MemoryLedger(checkpoint=0)
    async with writer(ledger, None, SHORT_SECONDS) as records:
        await records.write([step(1)])
        await records.flush()
        ledger.errors = [UnavailableError("refused") for _ in range(1000)]
        await asyncio.sleep(2 * SHORT_SECONDS)
        assert len(ledger.errors) < 1000
        ledger.errors.clear()
        await records.write([step(2)])
    assert ledger.steps == [1, 2]


async def test_a_question_that_is_not_answered_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_delivery, "CHECKPOINT_POLL_SECONDS", 0.01)

    class Hanging(MemoryLedger):
        async def append(self, request: AppendRequest) -> AppendOutcome:
            if request.sequence_number <= len(self.stored):
                self.repetition_count += 1
                await asyncio.Event().wait()
            return await MemoryLedger.append(self, request)

    ledger = Hanging(checkpoint=0)
    async with asyncio.timeout(NEVER_REACHED_SECONDS), writer(ledger) as records:
        await records.write([step(1)])
        await records.flush()
        for value in (2, 3):
            while ledger.repetition_count < value - 1:
                await let_others_run()
            await records.write([step(value)])
            await records.flush()
    assert ledger.steps == [1, 2, 3]


async def test_what_the_service_lost_for_good_is_told() -> None:
    ledger = MemoryLedger()
    records = await writer(ledger).__aenter__()
    await records.write([step(1)])
    await records.write([step(2)])
    await records.flush()
    del ledger.stored[:]
    await records.write([step(3)])
    with pytest.raises(FailedPreconditionError) as caught:
        await records.__aexit__(None, None, None)
    assert caught.value.reason == "ACKED_DATA_MISSING"


async def test_what_another_spool_sent_and_the_service_lost_is_told(tmp_path: Path) -> None:
    ledger = MemoryLedger()
    await write_and_leave(writer(ledger, tmp_path / "a"), 1)
    # This spool knows number 1, lost it with the power, and goes on behind the other one's number 2.
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    await write_and_leave(writer(ledger, tmp_path / "a"), 2)
    records = await writer(ledger, tmp_path / "b").__aenter__()
    await records.write([step(3)])
    await records.flush()
    del ledger.stored[1:]
    await records.write([step(4)])
    with pytest.raises(FailedPreconditionError) as caught:
        await records.__aexit__(None, None, None)
    assert (caught.value.reason, caught.value.metadata["expectedSequenceNumber"]) == ("ACKED_DATA_MISSING", "2")


async def test_a_damaged_append_is_left_out(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError):
        await write_and_leave(writer(away(), tmp_path, SHORT_SECONDS), 1, 2, 3, 4)
    (path,) = segment_paths(tmp_path / "r1" / "bench.spool")
    content = bytearray(path.read_bytes())
    content[len(content) * 2 // 3] ^= 1
    path.write_bytes(content)
    ledger = MemoryLedger()
    async with writer(ledger, tmp_path) as records:
        await records.write([step(5)])
    assert len(ledger.steps) == 4
    assert set(ledger.steps) < {1, 2, 3, 4, 5}
    assert records.damaged == 1


async def test_bad_records_take_no_number() -> None:
    ledger = MemoryLedger()
    async with writer(ledger) as records:
        with pytest.raises(InvalidArgumentError):
            await records.write([step(-1.0)])
        await records.write([step(1)])
    assert ledger.steps == [1]


async def test_a_service_that_takes_any_number_is_not_trusted() -> None:
    async def take(request: AppendRequest) -> AppendOutcome:
        return AppendOutcome(committed_sequence_number=request.sequence_number)

    records = AsyncRecordWriter(take, IDENTITY, writer_options(None, 0, 60), Closing())
    with pytest.raises(AbortedError):
        await write_and_leave(records, 1)


@pytest.mark.parametrize("metadata", [{}, {"expectedSequenceNumber": "x"}])
async def test_a_gap_without_the_number_is_tried_again_until_the_timeout(metadata: dict[str, str]) -> None:
    gaps: list[Error] = [OutOfRangeError("a gap", metadata=metadata) for _ in range(1000)]
    with pytest.raises(OutOfRangeError):
        await write_and_leave(writer(MemoryLedger(errors=gaps), None, SHORT_SECONDS), 1)


def test_the_blocking_writer_does_the_same_and_its_thread_ends(tmp_path: Path) -> None:
    ledger = MemoryLedger(lost_answers=1)
    records = RecordWriter(ledger.append, IDENTITY, writer_options(tmp_path, 0, 60), Closing())
    with pytest.raises(FailedPreconditionError):
        records.write([step(1)])
    with records:
        records.write([step(1)])
        records.flush()
        assert (records.committed, records.pending, records.rejected, records.dropped) == (1, 0, 0, 0)
    assert (ledger.steps, records.damaged, records.rejection_message) == ([1], 0, "")
    uses: list[Callable[[], object]] = [lambda: records.write([step(2)]), records.flush, records.__enter__]
    for use in uses:
        with pytest.raises(FailedPreconditionError) as caught:
            use()
        assert caught.value.reason == "WRITER_CLOSED"
    gc.collect()
    assert not any(thread.name == "linkbound-record-writer" for thread in threading.enumerate())
