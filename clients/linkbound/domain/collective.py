"""One collective among the ranks of a group: the question and its answer."""

from __future__ import annotations

from enum import Enum

from attrs import field, frozen

from linkbound.domain.estimate import Estimate
from linkbound.domain.link import Link, ResolvedLink
from linkbound.domain.rules import Checked, instance, member, optional, whole

LARGEST_RANK_COUNT = 65_536
LARGEST_MESSAGE_BYTES = 10**15


class CollectiveKind(Enum):
    """A collective operation."""

    UNSPECIFIED = "COLLECTIVE_KIND_UNSPECIFIED"
    ALL_REDUCE = "COLLECTIVE_KIND_ALL_REDUCE"
    ALL_GATHER = "COLLECTIVE_KIND_ALL_GATHER"
    REDUCE_SCATTER = "COLLECTIVE_KIND_REDUCE_SCATTER"
    ALL_TO_ALL = "COLLECTIVE_KIND_ALL_TO_ALL"
    UNKNOWN = "COLLECTIVE_KIND_UNKNOWN"


@frozen(kw_only=True)
class CollectiveRequest(Checked):
    """What does one collective of `message_bytes` take over `link`? Without a size only rates are answered."""

    kind: CollectiveKind = field(metadata=member(CollectiveKind, CollectiveKind.UNSPECIFIED, CollectiveKind.UNKNOWN))
    rank_count: int = field(metadata=whole(2, LARGEST_RANK_COUNT))
    message_bytes: int | None = field(default=None, metadata=optional(whole(1, LARGEST_MESSAGE_BYTES)))
    link: Link = field(metadata=instance(Link))


@frozen(kw_only=True)
class CollectiveEstimate:
    """Bytes of one rank, time and bandwidth of one collective with the ring algorithm."""

    sent_bytes_per_rank: int | None = None
    ring_step_count: int
    seconds: Estimate | None = None
    bus_bandwidth_bytes_per_second: Estimate
    algorithm_bandwidth_bytes_per_second: Estimate
    link: ResolvedLink
    assumptions: tuple[str, ...] = ()
    estimator_version: str
