"""The gradient exchange of data-parallel training: the question and its answer."""

from __future__ import annotations

from attrs import field, frozen

from linkbound.domain.collective import LARGEST_MESSAGE_BYTES, LARGEST_RANK_COUNT
from linkbound.domain.estimate import Estimate
from linkbound.domain.link import Link, ResolvedLink
from linkbound.domain.rules import Checked, instance, whole
from linkbound.domain.workload import POSITIVE_SECONDS


@frozen(kw_only=True)
class TrainingStepRequest(Checked):
    """What does one step take on `rank_count` nodes, if one node alone takes `compute_step_seconds`?"""

    gradient_bytes: int = field(metadata=whole(1, LARGEST_MESSAGE_BYTES))
    rank_count: int = field(metadata=whole(1, LARGEST_RANK_COUNT))
    link: Link = field(metadata=instance(Link))
    compute_step_seconds: float = field(metadata=POSITIVE_SECONDS)


@frozen(kw_only=True)
class TrainingStepEstimate:
    """Bytes that one rank sends per step, the time of the all-reduce and the step time that follows."""

    sent_bytes_per_rank: int
    sync_seconds: Estimate
    step_seconds: Estimate
    scaling_efficiency_fraction: Estimate
    link: ResolvedLink
    compute_step_seconds: float
    assumptions: tuple[str, ...] = ()
    estimator_version: str
