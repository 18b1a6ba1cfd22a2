"""One collective among the ranks of a group: the question and its answer."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import field, frozen

from linkbound.domain.calibration import Calibration, CollectiveTable
from linkbound.domain.collective import (
    LARGEST_MESSAGE_BYTES,
    LARGEST_RANK_COUNT,
    CollectiveAlgorithm,
    CollectiveKind,
    CollectiveProtocol,
)
from linkbound.domain.errors import Violation
from linkbound.domain.estimate import Estimate
from linkbound.domain.fabric import LINK, OPTIONAL_LINK, OPTIONAL_TABLE, OverFabric
from linkbound.domain.layout import RANKS_PER_NODE
from linkbound.domain.link import Link, ResolvedLink
from linkbound.domain.names import OPTIONAL_CATALOG_NAME
from linkbound.domain.rules import Checked, member, optional, whole

LARGEST_SENT_BYTES = 2**63 - 1
"""What an answer can count."""


@frozen(kw_only=True)
class CollectiveRequest(Checked, OverFabric):
    """What does one collective of `message_bytes` take over `link`? Without a size only rates are answered.

    With several ranks in a node, `link` is the one between nodes and `inner_link` the one within them.
    `calibration`, an id of the catalogue, or `collective_table` say what was measured on this system.
    """

    kind: CollectiveKind = field(metadata=member(CollectiveKind, CollectiveKind.UNSPECIFIED, CollectiveKind.UNKNOWN))
    rank_count: int = field(metadata=whole(2, LARGEST_RANK_COUNT))
    message_bytes: int | None = field(default=None, metadata=optional(whole(1, LARGEST_MESSAGE_BYTES)))
    link: Link = field(metadata=LINK)
    ranks_per_node: int = field(default=1, metadata=RANKS_PER_NODE)
    inner_link: Link | None = field(default=None, metadata=OPTIONAL_LINK)
    algorithm: CollectiveAlgorithm = field(
        default=CollectiveAlgorithm.UNSPECIFIED, metadata=member(CollectiveAlgorithm, CollectiveAlgorithm.UNKNOWN)
    )
    calibration: str = field(default="", metadata=OPTIONAL_CATALOG_NAME)
    collective_table: CollectiveTable | None = field(default=None, metadata=OPTIONAL_TABLE)

    @property
    def one_shot_bytes(self) -> int:
        """At least what one node sends where each of its ranks sends all to every other one; 0 without a size."""
        return self.ranks_per_node * self.rank_count * (self.message_bytes or 0)

    def cross_violations(self) -> Iterable[Violation]:
        """Whole nodes with a link within them, one calibration at most, and an algorithm that there is."""
        if self.rank_count % self.ranks_per_node:
            yield Violation("ranks_per_node", f"{self.ranks_per_node} does not divide {self.rank_count} ranks")
        yield from self.fabric_violations(self.ranks_per_node)
        if self.algorithm is CollectiveAlgorithm.DOUBLE_BINARY_TREE and self.kind is not CollectiveKind.ALL_REDUCE:
            yield Violation("algorithm", f"double binary trees run all-reduces, not {self.kind.name}")
        if self.algorithm is CollectiveAlgorithm.ONE_SHOT and self.one_shot_bytes > LARGEST_SENT_BYTES:
            yield Violation("message_bytes", f"{self.one_shot_bytes} bytes of one node are above {LARGEST_SENT_BYTES}")


@frozen(kw_only=True)
class CollectiveChoice:
    """One way in which a library could run a collective, as its own time model sees it.

    `fixed_seconds` is the part that no link changes, `wire_bytes_per_rank` what the busiest link carries, flags of
    the protocol included. `chosen`: the library would take it.
    """

    algorithm: CollectiveAlgorithm
    protocol: CollectiveProtocol
    fixed_seconds: float
    seconds: float
    wire_bytes_per_rank: int
    chosen: bool


@frozen(kw_only=True)
class CollectiveEstimate:
    """Bytes of one rank, time and bandwidth of one collective.

    Bytes and times are those of the algorithm that was asked for, of a ring where none was. `choices` are fastest
    first, `calibration` is the one that expected times come from. `inner_link` and `inner_sent_bytes_per_rank` are
    there with several ranks in a node.
    """

    sent_bytes_per_rank: int | None = None
    ring_step_count: int
    seconds: Estimate | None = None
    bus_bandwidth_bytes_per_second: Estimate
    algorithm_bandwidth_bytes_per_second: Estimate
    link: ResolvedLink
    assumptions: tuple[str, ...] = ()
    estimator_version: str
    choices: tuple[CollectiveChoice, ...] = ()
    calibration: Calibration | None = None
    inner_sent_bytes_per_rank: int | None = None
    inner_link: ResolvedLink | None = None
