"""Records that writers append: requests, aggregates, collectives, training steps, link tests, events."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from itertools import pairwise
from typing import get_args

from attrs import field, frozen

from linkbound.domain.collective import (
    LARGEST_MESSAGE_BYTES,
    LARGEST_RANK_COUNT,
    CollectiveKind,
)
from linkbound.domain.errors import Violation
from linkbound.domain.metric import MEASURED_METRIC_OF_DIFFERENCE, Metric, Spread
from linkbound.domain.names import RUN_ID, WRITER_ID
from linkbound.domain.paging import PageRequest
from linkbound.domain.prediction import METRIC, SUBJECT
from linkbound.domain.rules import (
    Checked,
    CrossChecked,
    instance,
    member,
    optional,
    pattern,
    real,
    sequence,
    text,
    whole,
    whole_numbers,
)
from linkbound.domain.workload import LARGEST_PROMPT_TOKENS, POSITIVE_SECONDS

LARGEST_SEQUENCE_NUMBER = 2**62
LARGEST_NS = 2**63 - 1
LARGEST_RECORD_COUNT = 10_000
LARGEST_CHUNK_COUNT = 10**6

SEQUENCE_NUMBER = whole(1, LARGEST_SEQUENCE_NUMBER)
NODE = text(256)
BOOT_ID = text(64)

ROUND_INDEX = whole(-1000, 10**6)
REQUEST_INDEX = whole(0, 10**6)

_SOURCE = text(1024)
_NS = whole(0, LARGEST_NS)
_POSITIVE_NS = whole(1, LARGEST_NS)
_RATE = real(1e18)


@frozen(kw_only=True)
class RequestRecord(CrossChecked):
    """One request as its client saw it; `ttft_ns`, `last_token_ns` and `chunk_offset_ns` count from the send.

    `round_index` is negative for warm-up rounds. `send_ns` is CLOCK_MONOTONIC of the client's host `node` in its boot
    `boot_id`; `send_time_unix_ns` is its wall clock, two of which are never subtracted. None and empty: not stated.
    `writer_id` is who appended a record that is listed; one that is appended states none.
    """

    subject: str = field(metadata=SUBJECT)
    round_index: int = field(metadata=ROUND_INDEX)
    request_index: int = field(metadata=REQUEST_INDEX)
    prompt_tokens: int = field(metadata=whole(1, LARGEST_PROMPT_TOKENS))
    output_tokens: int = field(metadata=whole(0, LARGEST_PROMPT_TOKENS))
    send_ns: int | None = field(default=None, metadata=optional(_NS))
    ttft_ns: int | None = field(default=None, metadata=optional(_POSITIVE_NS))
    last_token_ns: int | None = field(default=None, metadata=optional(_POSITIVE_NS))
    first_chunk_tokens: int | None = field(default=None, metadata=optional(whole(1, LARGEST_PROMPT_TOKENS)))
    send_time_unix_ns: int | None = field(default=None, metadata=optional(_NS))
    node: str = field(default="", metadata=NODE)
    boot_id: str = field(default="", metadata=BOOT_ID)
    chunk_offset_ns: tuple[int, ...] = field(default=(), metadata=whole_numbers(LARGEST_CHUNK_COUNT, 0, LARGEST_NS))
    chunk_tokens: tuple[int, ...] = field(
        default=(), metadata=whole_numbers(LARGEST_CHUNK_COUNT, 1, LARGEST_PROMPT_TOKENS)
    )
    writer_id: str = field(default="", metadata=text(128))

    def cross_violations(self) -> Iterable[Violation]:
        """The last token is not before the first, and chunks agree with both."""
        yield from self._chunk_violations()
        if self.last_token_ns is None:
            return
        if self.ttft_ns is None:
            yield Violation("ttft_ns", "is missing, though there is a last token")
        elif self.last_token_ns < self.ttft_ns:
            yield Violation("last_token_ns", f"{self.last_token_ns} is before ttft_ns, {self.ttft_ns}")

    def _chunk_violations(self) -> Iterable[Violation]:
        offsets, tokens = self.chunk_offset_ns, self.chunk_tokens
        if tokens and len(tokens) != len(offsets):
            yield Violation("chunk_tokens", f"{len(tokens)} for {len(offsets)} chunks")
        if not offsets:
            return
        if any(later < earlier for earlier, later in pairwise(offsets)):
            yield Violation("chunk_offset_ns", "falls")
        if self.ttft_ns is not None and offsets[0] != self.ttft_ns:
            yield Violation("chunk_offset_ns[0]", f"{offsets[0]} is not ttft_ns, {self.ttft_ns}")
        if self.last_token_ns is not None and offsets[-1] != self.last_token_ns:
            index = len(offsets) - 1
            yield Violation(f"chunk_offset_ns[{index}]", f"{offsets[-1]} is not last_token_ns, {self.last_token_ns}")


@frozen(kw_only=True)
class MetricAggregate(CrossChecked):
    """A metric over several rounds, for sources that state no more than that."""

    metric: Metric = field(metadata=METRIC)
    subject: str = field(metadata=SUBJECT)
    value: Spread = field(metadata=instance(Spread))
    source: str = field(default="", metadata=_SOURCE)

    def cross_violations(self) -> Iterable[Violation]:
        """A difference is not measured; it follows from what is."""
        if self.metric in MEASURED_METRIC_OF_DIFFERENCE:
            measured = MEASURED_METRIC_OF_DIFFERENCE[self.metric]
            yield Violation("metric", f"{self.metric.name} follows; append {measured.name}")


@frozen(kw_only=True)
class CollectiveResult:
    """One line of a collective benchmark; bus bandwidth as nccl-tests defines it."""

    subject: str = field(metadata=SUBJECT)
    kind: CollectiveKind = field(
        default=CollectiveKind.UNSPECIFIED, metadata=member(CollectiveKind, CollectiveKind.UNKNOWN)
    )
    rank_count: int = field(metadata=whole(2, LARGEST_RANK_COUNT))
    message_bytes: int | None = field(default=None, metadata=optional(whole(1, LARGEST_MESSAGE_BYTES)))
    seconds: float | None = field(default=None, metadata=optional(POSITIVE_SECONDS))
    bus_bandwidth_bytes_per_second: float = field(metadata=real(1e15))
    error_count: int | None = field(default=None, metadata=optional(whole(0, 2**62)))
    source: str = field(default="", metadata=_SOURCE)


@frozen(kw_only=True)
class TrainingStep(CrossChecked):
    """One training step, or the mean of several where `step_index` is None. Rates are of the whole cluster."""

    subject: str = field(metadata=SUBJECT)
    node_count: int = field(metadata=whole(1, LARGEST_RANK_COUNT))
    step_index: int | None = field(default=None, metadata=optional(whole(0, 2**62)))
    step_seconds: float | None = field(default=None, metadata=optional(POSITIVE_SECONDS))
    samples_per_second: float | None = field(default=None, metadata=optional(_RATE))
    tokens_per_second: float | None = field(default=None, metadata=optional(_RATE))
    elapsed_seconds: float | None = field(default=None, metadata=optional(POSITIVE_SECONDS))
    source: str = field(default="", metadata=_SOURCE)

    def cross_violations(self) -> Iterable[Violation]:
        """Something is measured."""
        measured = (
            self.step_seconds,
            self.samples_per_second,
            self.tokens_per_second,
            self.elapsed_seconds,
        )
        if all(value is None for value in measured):
            yield Violation("step_seconds", "is missing, and so is every other measured value")


class LinkTestDirection(Enum):
    """Which way a test of a link sends; the rate of both ways is their sum."""

    UNSPECIFIED = "LINK_TEST_DIRECTION_UNSPECIFIED"
    ONE_WAY = "LINK_TEST_DIRECTION_ONE_WAY"
    BOTH_WAYS = "LINK_TEST_DIRECTION_BOTH_WAYS"
    UNKNOWN = "LINK_TEST_DIRECTION_UNKNOWN"


@frozen(kw_only=True)
class LinkTest(CrossChecked):
    """One test of a link between two nodes. `bits_per_second` is payload; nodes are empty where nobody states them."""

    subject: str = field(metadata=SUBJECT)
    tool: str = field(metadata=text(64, minimum_length=1))
    source_node: str = field(default="", metadata=NODE)
    destination_node: str = field(default="", metadata=NODE)
    device: str = field(default="", metadata=text(128))
    direction: LinkTestDirection = field(
        default=LinkTestDirection.UNSPECIFIED, metadata=member(LinkTestDirection, LinkTestDirection.UNKNOWN)
    )
    message_bytes: int | None = field(default=None, metadata=optional(whole(1, LARGEST_MESSAGE_BYTES)))
    bits_per_second: float | None = field(default=None, metadata=optional(real(1e15)))
    latency_seconds: float | None = field(default=None, metadata=optional(POSITIVE_SECONDS))
    mtu_bytes: int | None = field(default=None, metadata=optional(whole(1, 65_536)))
    source: str = field(default="", metadata=_SOURCE)

    def cross_violations(self) -> Iterable[Violation]:
        """Something is measured."""
        if self.bits_per_second is None and self.latency_seconds is None:
            yield Violation("bits_per_second", "is missing, and so is latency_seconds")


CLOCK_ANCHOR = "clock_anchor"
"""Kind of the event that holds both clocks of a host at one moment."""


@frozen(kw_only=True)
class Event(CrossChecked):
    """Something that happened while a run was measured; `time_ns` is CLOCK_MONOTONIC of `node` in its `boot_id`."""

    kind: str = field(
        metadata=pattern(r"[a-z][a-z0-9_]{0,63}", "a word of 1 to 64 of a-z, 0-9 and _ that starts with a letter")
    )
    subject: str = field(default="", metadata=text(128))
    node: str = field(default="", metadata=NODE)
    boot_id: str = field(default="", metadata=BOOT_ID)
    time_ns: int | None = field(default=None, metadata=optional(_NS))
    time_unix_ns: int | None = field(default=None, metadata=optional(_NS))
    event_count: int | None = field(default=None, metadata=optional(whole(0, 2**62)))
    text: str = field(default="", metadata=text(4096))

    def cross_violations(self) -> Iterable[Violation]:
        """An anchor has both clocks."""
        if self.kind == CLOCK_ANCHOR:
            for name in ("time_ns", "time_unix_ns"):
                if getattr(self, name) is None:
                    yield Violation(name, "is missing, and an anchor of clocks has both times")


Record = RequestRecord | MetricAggregate | CollectiveResult | TrainingStep | LinkTest | Event


def chunk_count_violations(chunk_count: int) -> Iterable[Violation]:
    """What is wrong with so many chunks of tokens in one append."""
    if chunk_count > LARGEST_CHUNK_COUNT:
        yield Violation("records", f"{chunk_count} chunks of tokens in one append are above {LARGEST_CHUNK_COUNT}")


@frozen(kw_only=True)
class AppendRequest(Checked, CrossChecked):
    """Records of one kind under one number of one writer."""

    run: str = field(metadata=RUN_ID)
    writer_id: str = field(metadata=WRITER_ID)
    sequence_number: int = field(metadata=SEQUENCE_NUMBER)
    records: tuple[Record, ...] = field(metadata=sequence(1, LARGEST_RECORD_COUNT, instance(get_args(Record))))

    def cross_violations(self) -> Iterable[Violation]:
        """All records are of one kind, and of the writer of the append."""
        kinds = sorted({type(record).__name__ for record in self.records})
        if len(kinds) > 1:
            yield Violation("records", f"{' and '.join(kinds)} in one append")
        yield from chunk_count_violations(
            sum(len(record.chunk_offset_ns) for record in self.records if isinstance(record, RequestRecord))
        )
        for index, record in enumerate(self.records):
            if isinstance(record, RequestRecord) and record.writer_id:
                problem = f"{record.writer_id!r} is stated; the append names the writer of all of its records"
                yield Violation(f"records[{index}].writer_id", problem)


@frozen(kw_only=True)
class AppendOutcome:
    """An append is durable, and so is everything below its number.

    Up to `checkpointed_sequence_number` no damage to the log can take it any more; a writer keeps what is above.
    """

    committed_sequence_number: int
    checkpointed_sequence_number: int = 0


@frozen(kw_only=True)
class ListRequestRecordsRequest(PageRequest):
    """Asks for one page of the request records of a run, of `subject` alone where that is not empty."""

    run: str = field(metadata=RUN_ID)
    subject: str = field(default="", metadata=text(128))
