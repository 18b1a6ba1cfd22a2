"""Planning: the slowest link that keeps a TTFT target, and the checklist before a link is chosen."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from attrs import field, frozen

from linkbound.domain.errors import Violation
from linkbound.domain.estimate import Estimate
from linkbound.domain.layout import LARGEST_PARALLEL_SIZE, inner_link_violations
from linkbound.domain.link import Link, ResolvedLink
from linkbound.domain.names import OPTIONAL_CATALOG_NAME
from linkbound.domain.rules import Checked, CrossChecked, instance, optional, whole
from linkbound.domain.sizing import NODE_COUNT
from linkbound.domain.workload import LARGEST_PROMPT_TOKENS, POSITIVE_SECONDS, PrefillWorkload

_OPTIONAL_LINK = optional(instance(Link))
_OPTIONAL_SECONDS = optional(POSITIVE_SECONDS)


class Verdict(Enum):
    """Whether something holds. MAYBE: the interval contains the border."""

    UNSPECIFIED = "VERDICT_UNSPECIFIED"
    YES = "VERDICT_YES"
    MAYBE = "VERDICT_MAYBE"
    NO = "VERDICT_NO"
    UNKNOWN = "VERDICT_UNKNOWN"


class PlanStatus(Enum):
    """How a line of the checklist stands."""

    UNSPECIFIED = "PLAN_STATUS_UNSPECIFIED"
    OK = "PLAN_STATUS_OK"
    CONCERN = "PLAN_STATUS_CONCERN"
    MISSING = "PLAN_STATUS_MISSING"
    VERIFY_BY_HAND = "PLAN_STATUS_VERIFY_BY_HAND"
    UNKNOWN = "PLAN_STATUS_UNKNOWN"


@frozen(kw_only=True)
class SlowestLinkRequest(Checked, CrossChecked):
    """Which link keeps `target_ttft_seconds`, of the last request where several arrive together?

    `baseline_ttft_seconds` was measured over `baseline_link`. Without it only the time on the network is known.
    `inner_link` is that of each rank within a node, and stays.
    """

    workload: PrefillWorkload = field(metadata=instance(PrefillWorkload))
    target_ttft_seconds: float = field(metadata=POSITIVE_SECONDS)
    baseline_link: Link | None = field(default=None, metadata=_OPTIONAL_LINK)
    baseline_ttft_seconds: float | None = field(default=None, metadata=_OPTIONAL_SECONDS)
    inner_link: Link | None = field(default=None, metadata=_OPTIONAL_LINK)

    def cross_violations(self) -> Iterable[Violation]:
        """A baseline is a time and the link that it was measured over; ranks of one node have a link between them."""
        yield from inner_link_violations(self.workload.ranks_per_node, self.inner_link)
        if self.baseline_ttft_seconds is not None and self.baseline_link is None:
            yield Violation("baseline_link", "is missing; the baseline TTFT was measured over some link")
        if self.baseline_link is not None and self.baseline_ttft_seconds is None:
            yield Violation("baseline_ttft_seconds", "is missing; the link it was measured over says nothing alone")


@frozen(kw_only=True)
class LinkVerdict:
    """What a link with a name means for a target."""

    preset: str
    link: ResolvedLink
    ttft_seconds: Estimate
    verdict: Verdict


@frozen(kw_only=True)
class SlowestLink:
    """The slowest effective rate that keeps a target, both ends, and what links with a name do to it, slowest first.

    Below `slowest_bits_per_second.lower` the target cannot be kept; from its upper end on it is kept. None: no rate is
    known to keep it. `reasons` say why the ends are where they are.
    """

    slowest_bits_per_second: Estimate
    presets: tuple[LinkVerdict, ...]
    reasons: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    estimator_version: str


@frozen(kw_only=True)
class PlanRequest(Checked):
    """Nodes, their link and as much of a plan as is made: what else is None, 0 or empty is answered as missing."""

    model: str = field(default="", metadata=OPTIONAL_CATALOG_NAME)
    node_count: int = field(metadata=NODE_COUNT)
    link: Link = field(metadata=instance(Link))
    reference_link: Link | None = field(default=None, metadata=_OPTIONAL_LINK)
    tensor_parallel_size: int = field(default=0, metadata=whole(0, LARGEST_PARALLEL_SIZE))
    prompt_tokens: int = field(default=0, metadata=whole(0, LARGEST_PROMPT_TOKENS))
    target_ttft_seconds: float | None = field(default=None, metadata=_OPTIONAL_SECONDS)
    baseline_ttft_seconds: float | None = field(default=None, metadata=_OPTIONAL_SECONDS)
    switch: str = field(default="", metadata=OPTIONAL_CATALOG_NAME)
    nic: str = field(default="", metadata=OPTIONAL_CATALOG_NAME)
    hardware: str = field(default="", metadata=OPTIONAL_CATALOG_NAME)
    counter_interval_seconds: float | None = field(default=None, metadata=_OPTIONAL_SECONDS)


@frozen(kw_only=True)
class PlanItem:
    """One line of the checklist: how it stands, the answers with their numbers, and what to do next."""

    topic: str
    question: str
    status: PlanStatus
    answers: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()


@frozen(kw_only=True)
class PlanCheck:
    """The checklist, answered."""

    items: tuple[PlanItem, ...]
    assumptions: tuple[str, ...] = ()
    estimator_version: str
