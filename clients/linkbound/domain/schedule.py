"""The schedule question and its answer: which request takes what of which pass, and when its first token comes."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import field, frozen

from linkbound.domain.calibration import CollectiveTable, calibration_violations
from linkbound.domain.engine import (
    LARGEST_PASS_NUMBER,
    LARGEST_SCHEDULED_REQUEST_COUNT,
    BurstTable,
    EngineCalibration,
    EngineRequest,
    EngineTable,
    SchedulerSettings,
)
from linkbound.domain.errors import Violation
from linkbound.domain.estimate import Estimate
from linkbound.domain.layout import ParallelLayout, inner_link_violations
from linkbound.domain.link import Link, ResolvedLink
from linkbound.domain.memory import DEFAULT_MAX_NUM_BATCHED_TOKENS
from linkbound.domain.names import OPTIONAL_CATALOG_NAME
from linkbound.domain.rules import Checked, CrossChecked, instance, optional, sequence, whole
from linkbound.domain.workload import INLINE_CONFIG

DEFAULT_SCHEDULER = SchedulerSettings(max_num_batched_tokens=DEFAULT_MAX_NUM_BATCHED_TOKENS)
"""What holds where neither a question nor a calibration says how requests are put into passes."""

_OPTIONAL_LINK = optional(instance(Link))


@frozen(kw_only=True)
class ScheduleRequest(Checked, CrossChecked):
    """Which passes does an engine make of these requests, what do links take of them, and when do first tokens come?

    Without a model the passes alone are answered. `engine_calibration`, an id of the catalogue, or `engine_table` say
    what passes take; model, layout, link and scheduler are theirs where the request has none. Without either, the
    scheduler is `DEFAULT_SCHEDULER`. `arrivals_may_split`: requests of the same arrival may reach the engine apart, and
    intervals cover every way to part them. `start_index` is the first entry of the passes that is answered.
    """

    requests: tuple[EngineRequest, ...] = field(
        metadata=sequence(1, LARGEST_SCHEDULED_REQUEST_COUNT, instance(EngineRequest))
    )
    scheduler: SchedulerSettings | None = field(default=None, metadata=optional(instance(SchedulerSettings)))
    arrivals_may_split: bool = False
    model: str = field(default="", metadata=OPTIONAL_CATALOG_NAME)
    model_config_json: str = field(default="", metadata=INLINE_CONFIG)
    layout: ParallelLayout | None = field(default=None, metadata=optional(instance(ParallelLayout)))
    link: Link | None = field(default=None, metadata=_OPTIONAL_LINK)
    to_link: Link | None = field(default=None, metadata=_OPTIONAL_LINK)
    inner_link: Link | None = field(default=None, metadata=_OPTIONAL_LINK)
    to_bursts: BurstTable | None = field(default=None, metadata=optional(instance(BurstTable)))
    calibration: str = field(default="", metadata=OPTIONAL_CATALOG_NAME)
    collective_table: CollectiveTable | None = field(default=None, metadata=optional(instance(CollectiveTable)))
    engine_calibration: str = field(default="", metadata=OPTIONAL_CATALOG_NAME)
    engine_table: EngineTable | None = field(default=None, metadata=optional(instance(EngineTable)))
    start_index: int = field(default=0, metadata=whole(0, LARGEST_PASS_NUMBER))

    @property
    def has_engine_times(self) -> bool:
        """Whether measured times of an engine are named or given."""
        return bool(self.engine_calibration) or self.engine_table is not None

    @property
    def has_model(self) -> bool:
        """Whether a model is named or given."""
        return bool(self.model or self.model_config_json)

    def missing_violations(self) -> Iterable[Violation]:
        """What nothing stands in for."""
        if self.model and self.model_config_json:
            yield Violation("model_config_json", "is given beside a model")
        if self.engine_calibration and self.engine_table is not None:
            yield Violation("engine_table", "is given beside an engine calibration")
        if self.has_engine_times:
            return
        for name in ("layout", "link") if self.has_model else ():
            if getattr(self, name) is None:
                yield Violation(name, "is missing, with a model")
        for name in () if self.has_model else ("layout", "link", "to_link", "inner_link"):
            if getattr(self, name) is not None:
                yield Violation(name, "is given without a model")

    def cross_violations(self) -> Iterable[Violation]:
        """Requests come in the order of their arrival, all by pass or all by time; links fit the layout."""
        yield from calibration_violations(self.calibration, self.collective_table)
        if self.layout is not None:
            yield from inner_link_violations(self.layout.ranks_per_node, self.inner_link)
        if self.to_bursts is not None and self.to_link is None:
            yield Violation("to_bursts", "are given without a link to change to")
        yield from arrival_violations(self.requests)
        if self.scheduler is not None and not self.has_engine_times:
            yield from self.scheduler.acceptance_violations("scheduler.")
        has_seconds = any(request.arrival_seconds is not None for request in self.requests)
        if has_seconds and not self.has_engine_times:
            yield Violation("requests[0].arrival_seconds", "needs an engine calibration: passes have no times without")


def arrival_violations(requests: tuple[EngineRequest, ...]) -> Iterable[Violation]:
    """Requests come in the order of their arrival, all of them by pass or all by time."""
    in_seconds = any(request.arrival_seconds is not None for request in requests)
    before = 0.0
    for index, request in enumerate(requests):
        if in_seconds and request.arrival_pass is not None:
            yield Violation(f"requests[{index}].arrival_pass", "is given where others arrive by time")
            return
        arrival = (request.arrival_seconds if in_seconds else request.arrival_pass) or 0
        if arrival < before:
            name, unit = ("arrival_seconds", " s") if in_seconds else ("arrival_pass", "")
            problem = f"{arrival}{unit} is before that of the request before it, {before}{unit}"
            yield Violation(f"requests[{index}].{name}", problem)
        before = arrival


@frozen
class PassShare:
    """Token rows of one request in a pass; `request` is its index."""

    request: int
    tokens: int


@frozen(kw_only=True)
class SchedulePass:
    """`repeat` passes after each other in which the same requests take as many tokens each, in the engine's order.

    `network_seconds` is of one of them, `seconds` of all together.
    """

    scheduled: tuple[PassShare, ...]
    repeat: int
    network_seconds: Estimate | None = None
    seconds: Estimate | None = None


@frozen(kw_only=True)
class TtftEstimates:
    """A TTFT from the bytes alone and beside it from a calibrated engine; extras are those of a change of link."""

    ttft_seconds: Estimate
    extra_ttft_seconds: Estimate | None = None
    calibrated_ttft_seconds: Estimate | None = None
    calibrated_extra_ttft_seconds: Estimate | None = None


@frozen(kw_only=True)
class RequestTimes:
    """When one request gets its tokens. `output_tokens` are fewer than asked where its length is at the limit."""

    request: int
    first_token_pass: int
    last_token_pass: int
    preemption_count: int
    output_tokens: int
    ttft: TtftEstimates | None = None
    output_tokens_per_second: Estimate | None = None


@frozen(kw_only=True)
class ScheduleSummary:
    """What follows from the passes. The last TTFT is that of the last first token, from the arrival of its request."""

    requests: tuple[RequestTimes, ...]
    pass_count: int
    last_ttft: TtftEstimates | None = None
    mean_ttft: TtftEstimates | None = None
    scheduler: SchedulerSettings
    model: str = ""
    layout: ParallelLayout | None = None
    link: ResolvedLink | None = None
    to_link: ResolvedLink | None = None
    engine_calibration: EngineCalibration | None = None
    assumptions: tuple[str, ...] = ()
    estimator_version: str


@frozen(kw_only=True)
class SchedulePasses:
    """Entries of an answer in a row, the first of which is the one with the number `start_index`."""

    start_index: int
    passes: tuple[SchedulePass, ...]
    estimator_version: str

    @property
    def end_index(self) -> int:
        """The number of the entry after them."""
        return self.start_index + len(self.passes)


@frozen(kw_only=True)
class ScheduledRequests:
    """Requests in a row of a summary that is too long for one message."""

    requests: tuple[RequestTimes, ...]


SchedulePart = SchedulePasses | ScheduledRequests | ScheduleSummary
"""What an answer comes in: passes in their order, then requests if there are many, then the summary with the rest."""


@frozen(kw_only=True)
class ScheduleEstimate:
    """The passes in their order, and what follows from them."""

    passes: tuple[SchedulePass, ...]
    summary: ScheduleSummary
