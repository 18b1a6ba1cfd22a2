"""How an engine puts requests into passes, what was measured of it, and what is fitted to that."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from attrs import field, frozen

from linkbound.domain.choice import Choice
from linkbound.domain.collective import LARGEST_MESSAGE_BYTES
from linkbound.domain.errors import Violation
from linkbound.domain.layout import ParallelLayout, inner_link_violations
from linkbound.domain.link import LARGEST_RATE_BITS_PER_SECOND, Link
from linkbound.domain.measured_range import MeasuredRange, range_violations
from linkbound.domain.names import CATALOG_NAME, OPTIONAL_CATALOG_ID, OPTIONAL_CATALOG_NAME
from linkbound.domain.rules import Checked, CrossChecked, finite, instance, optional, sequence, text, whole
from linkbound.domain.workload import (
    INLINE_CONFIG,
    LARGEST_DRAFT_TOKEN_COUNT,
    LARGEST_PROMPT_TOKENS,
    LARGEST_REQUEST_COUNT,
    LARGEST_SECONDS,
    POSITIVE_SECONDS,
    AsksOfModel,
)

LARGEST_PASS_NUMBER = 10**12
LARGEST_BLOCK_COUNT = 10**12
DEFAULT_BLOCK_TOKENS = 16
LARGEST_SCHEDULED_REQUEST_COUNT = 10_000
LARGEST_ENGINE_POINT_COUNT = 1000
LARGEST_BURST_POINT_COUNT = 1000
LARGEST_HEADER_RATIO = 2.0
LARGEST_OUTPUT_TOKENS_PER_SECOND = 1e9

_TOKENS = whole(1, LARGEST_PROMPT_TOKENS)
_RATE = whole(1, LARGEST_RATE_BITS_PER_SECOND)
_HEADER_RATIO = optional(finite(1.0, LARGEST_HEADER_RATIO))
_RANGE = optional(instance(MeasuredRange))


@frozen(kw_only=True)
class SchedulerSettings(CrossChecked):
    """How an engine puts requests into passes.

    `engine` names the rules by version, such as `vllm-0.32`; empty: the newest that is known. A
    `long_prefill_token_threshold` of 0 caps nothing. `kv_block_count` is as the engine counts, the block that it keeps
    for itself included; None: blocks never run out. Without accepted drafts a pass yields one token, as if none was.
    """

    engine: str = field(default="", metadata=OPTIONAL_CATALOG_NAME)
    max_num_batched_tokens: int = field(metadata=_TOKENS)
    long_prefill_token_threshold: int = field(default=0, metadata=whole(0, LARGEST_PROMPT_TOKENS))
    max_num_seqs: int | None = field(default=None, metadata=optional(whole(1, LARGEST_REQUEST_COUNT)))
    max_model_len: int | None = field(default=None, metadata=optional(whole(2, LARGEST_PROMPT_TOKENS)))
    kv_block_count: int | None = field(default=None, metadata=optional(whole(2, LARGEST_BLOCK_COUNT)))
    kv_block_tokens: int = field(default=DEFAULT_BLOCK_TOKENS, metadata=whole(1, 65_536))
    draft_token_count: int = field(default=0, metadata=whole(0, LARGEST_DRAFT_TOKEN_COUNT))
    accepted_draft_tokens_per_pass: float | None = field(
        default=None, metadata=optional(finite(0.0, float(LARGEST_DRAFT_TOKEN_COUNT)))
    )

    def cross_violations(self) -> Iterable[Violation]:
        """What is accepted was drafted."""
        accepted = self.accepted_draft_tokens_per_pass
        if accepted is not None and accepted > self.draft_token_count:
            yield Violation(
                "accepted_draft_tokens_per_pass", f"{accepted} is above the {self.draft_token_count} draft tokens"
            )

    def acceptance_violations(self, prefix: str) -> Iterable[Violation]:
        """What is accepted of drafts is said where answers depend on it."""
        if self.has_unknown_acceptance:
            yield Violation(
                f"{prefix}accepted_draft_tokens_per_pass", f"is missing, with {self.draft_token_count} draft tokens"
            )

    @property
    def has_unknown_acceptance(self) -> bool:
        """Whether drafts are made, and nothing says how many of them are accepted."""
        return bool(self.draft_token_count) and self.accepted_draft_tokens_per_pass is None


@frozen(kw_only=True)
class EngineRequest(CrossChecked):
    """One request to an engine. It arrives with the first pass, before `arrival_pass`, or at `arrival_seconds`."""

    prompt_tokens: int = field(metadata=_TOKENS)
    output_tokens: int = field(metadata=_TOKENS)
    arrival_pass: int | None = field(default=None, metadata=optional(whole(0, LARGEST_PASS_NUMBER)))
    arrival_seconds: float | None = field(default=None, metadata=optional(finite(0.0, LARGEST_SECONDS)))

    def cross_violations(self) -> Iterable[Violation]:
        """One way to say when it arrives."""
        if self.arrival_pass is not None and self.arrival_seconds is not None:
            yield Violation("arrival_seconds", "is given beside a pass of arrival")


@frozen(kw_only=True)
class BurstPoint(CrossChecked):
    """Rates that the counters of a link showed, headers included, while payloads of `message_bytes` were sent."""

    message_bytes: int = field(metadata=whole(1, LARGEST_MESSAGE_BYTES))
    least_bits_per_second: int = field(metadata=_RATE)
    largest_bits_per_second: int = field(metadata=_RATE)

    def cross_violations(self) -> Iterable[Violation]:
        """The ends are in order."""
        if self.least_bits_per_second > self.largest_bits_per_second:
            yield Violation("least_bits_per_second", "is above the largest")


@frozen(kw_only=True)
class BurstTable(CrossChecked):
    """Bursts on one link, a size once, in rising order; header ratios are counter bytes over payload bytes.

    Without a least ratio it follows from the headers of the link; without a largest one it is the least.
    """

    points: tuple[BurstPoint, ...] = field(metadata=sequence(1, LARGEST_BURST_POINT_COUNT))
    least_header_ratio: float | None = field(default=None, metadata=_HEADER_RATIO)
    largest_header_ratio: float | None = field(default=None, metadata=_HEADER_RATIO)

    def cross_violations(self) -> Iterable[Violation]:
        """Sizes rise, and the ratios are in order."""
        sizes = [point.message_bytes for point in self.points]
        if any(after <= before for before, after in itertools.pairwise(sizes)):
            yield Violation("points", "are not in rising order of their sizes, each once")
        least, largest = self.least_header_ratio, self.largest_header_ratio
        if largest is not None and least is None:
            yield Violation("least_header_ratio", "is missing, with a largest one")
        if least is not None and largest is not None and least > largest:
            yield Violation("least_header_ratio", f"{least} is above the largest, {largest}")


@frozen(kw_only=True)
class EnginePoint(CrossChecked):
    """Requests that were measured together, rounds averaged.

    `ttft_seconds` are those of every request in rising order; where they are not known, the last and the mean may be.
    `output_tokens_per_second` is what each request generates after its first token. Each figure may have the range of
    its rounds.
    """

    label: str = field(metadata=text(128, minimum_length=1))
    requests: tuple[EngineRequest, ...] = field(
        metadata=sequence(1, LARGEST_ENGINE_POINT_COUNT, instance(EngineRequest))
    )
    ttft_seconds: tuple[float, ...] = field(
        default=(), metadata=sequence(0, LARGEST_ENGINE_POINT_COUNT, POSITIVE_SECONDS)
    )
    last_ttft_seconds: float | None = field(default=None, metadata=optional(POSITIVE_SECONDS))
    mean_ttft_seconds: float | None = field(default=None, metadata=optional(POSITIVE_SECONDS))
    output_tokens_per_second: float | None = field(
        default=None, metadata=optional(finite(1e-9, LARGEST_OUTPUT_TOKENS_PER_SECOND))
    )
    ttft_range_seconds: tuple[MeasuredRange, ...] = field(
        default=(), metadata=sequence(0, LARGEST_ENGINE_POINT_COUNT, instance(MeasuredRange))
    )
    last_ttft_range_seconds: MeasuredRange | None = field(default=None, metadata=_RANGE)
    mean_ttft_range_seconds: MeasuredRange | None = field(default=None, metadata=_RANGE)
    output_range_tokens_per_second: MeasuredRange | None = field(default=None, metadata=_RANGE)

    def cross_violations(self) -> Iterable[Violation]:
        """Something was measured, one way; TTFTs rise and are those of all requests; ranges hold what they are of."""
        times = self.ttft_seconds
        of_all = self.last_ttft_seconds, self.mean_ttft_seconds
        if not times and of_all == (None, None) and self.output_tokens_per_second is None:
            yield Violation("ttft_seconds", "are missing, and so is every other figure")
        if times and of_all != (None, None):
            yield Violation("ttft_seconds", "are given beside their last or mean")
        if times and len(times) != len(self.requests):
            yield Violation("ttft_seconds", f"{len(times)} times are not those of {len(self.requests)} requests")
        if any(after < before for before, after in itertools.pairwise(times)):
            yield Violation("ttft_seconds", "are not in rising order")
        last, mean = of_all
        if last is not None and mean is not None and mean > last:
            yield Violation("mean_ttft_seconds", f"{mean} is above the last, {last}")
        yield from self._range_violations()

    def _range_violations(self) -> Iterable[Violation]:
        ranges, times = self.ttft_range_seconds, self.ttft_seconds
        if ranges and len(ranges) != len(times):
            yield Violation("ttft_range_seconds", f"{len(ranges)} ranges are not those of {len(times)} times")
        for index, (found, seconds) in enumerate(zip(ranges, times, strict=False)):
            yield from range_violations(f"ttft_range_seconds[{index}]", found, seconds)
        yield from range_violations("last_ttft_range_seconds", self.last_ttft_range_seconds, self.last_ttft_seconds)
        yield from range_violations("mean_ttft_range_seconds", self.mean_ttft_range_seconds, self.mean_ttft_seconds)
        speeds, speed = self.output_range_tokens_per_second, self.output_tokens_per_second
        yield from range_violations("output_range_tokens_per_second", speeds, speed)


@frozen(kw_only=True)
class EngineTable(AsksOfModel):
    """Measured times of one engine, with one model over one link, and how its requests were put into passes."""

    model: str = field(default="", metadata=OPTIONAL_CATALOG_NAME)
    model_config_json: str = field(default="", metadata=INLINE_CONFIG)
    layout: ParallelLayout = field(metadata=instance(ParallelLayout))
    link: Link = field(metadata=instance(Link))
    inner_link: Link | None = field(default=None, metadata=optional(instance(Link)))
    bursts: BurstTable | None = field(default=None, metadata=optional(instance(BurstTable)))
    scheduler: SchedulerSettings = field(metadata=instance(SchedulerSettings))
    points: tuple[EnginePoint, ...] = field(metadata=sequence(1, LARGEST_ENGINE_POINT_COUNT, instance(EnginePoint)))

    def cross_violations(self) -> Iterable[Violation]:
        """Labels are told apart, requests are few enough, and several ranks in a node need a link between them.

        Output speeds tell of passes only beside what these yield.
        """
        yield from inner_link_violations(self.layout.ranks_per_node, self.inner_link)
        if any(point.output_tokens_per_second is not None for point in self.points):
            yield from self.scheduler.acceptance_violations("scheduler.")
        request_count = sum(len(point.requests) for point in self.points)
        if request_count > LARGEST_SCHEDULED_REQUEST_COUNT:
            yield Violation("points", f"hold {request_count} requests, above {LARGEST_SCHEDULED_REQUEST_COUNT}")
        seen: set[str] = set()
        for index, point in enumerate(self.points):
            if point.label in seen:
                yield Violation(f"points[{index}].label", "is that of another point")
            seen.add(point.label)


class EngineTermKind(Choice):
    """What one term of a fit counts."""

    UNSPECIFIED = "ENGINE_TERM_KIND_UNSPECIFIED"
    PASS = "ENGINE_TERM_KIND_PASS"
    ROW = "ENGINE_TERM_KIND_ROW"
    ATTENTION = "ENGINE_TERM_KIND_ATTENTION"
    CHUNK = "ENGINE_TERM_KIND_CHUNK"
    BATCH = "ENGINE_TERM_KIND_BATCH"
    DECODE_PASS = "ENGINE_TERM_KIND_DECODE_PASS"
    DECODE_REQUEST = "ENGINE_TERM_KIND_DECODE_REQUEST"
    DECODE_CONTEXT = "ENGINE_TERM_KIND_DECODE_CONTEXT"
    UNKNOWN = "ENGINE_TERM_KIND_UNKNOWN"


@frozen(kw_only=True)
class EngineTerm:
    """Time of each of what a term counts, such as passes, token rows, or rows times the tokens that they attend to."""

    kind: EngineTermKind
    seconds: float


class EngineMetric(Choice):
    """What a measured figure is."""

    UNSPECIFIED = "ENGINE_METRIC_UNSPECIFIED"
    TTFT = "ENGINE_METRIC_TTFT"
    LAST_TTFT = "ENGINE_METRIC_LAST_TTFT"
    MEAN_TTFT = "ENGINE_METRIC_MEAN_TTFT"
    DECODE_PASS = "ENGINE_METRIC_DECODE_PASS"
    UNKNOWN = "ENGINE_METRIC_UNKNOWN"


@frozen(kw_only=True)
class EngineResidual:
    """Fitted over measured less one, with the point in the fit and without it.

    `request` is the place in rising order of TTFT. `left_out_error_ratio` is None where a term cannot be told without
    the point.
    """

    label: str
    metric: EngineMetric
    request: int = 0
    measured_seconds: float
    error_ratio: float
    left_out_error_ratio: float | None = None


@frozen(kw_only=True)
class EngineCalibration:
    """What passes take beside their transfers, fitted to `table`. The id is empty for one that is not stored.

    `interval_fraction` is the largest error of a TTFT at a point left out, fitted over measured less one, either way;
    None where no point could be.
    """

    engine_calibration_id: str = ""
    table: EngineTable
    terms: tuple[EngineTerm, ...]
    residuals: tuple[EngineResidual, ...] = ()
    interval_fraction: float | None = None
    assumptions: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()


@frozen(kw_only=True)
class FitEngineCalibrationRequest(Checked):
    """Fit the times of an engine to `table`; stored under `engine_calibration` where that is not empty."""

    table: EngineTable = field(metadata=instance(EngineTable))
    engine_calibration: str = field(default="", metadata=OPTIONAL_CATALOG_ID)
    sources: tuple[str, ...] = field(default=(), metadata=sequence(0, 100, text(1024, minimum_length=1)))


@frozen(kw_only=True)
class EngineCalibrationRequest(Checked):
    """Names one engine calibration, to read it."""

    engine_calibration: str = field(metadata=CATALOG_NAME)
