"""What questions say of the links between ranks, and of what was measured on them."""

from __future__ import annotations

from collections.abc import Iterable

from linkbound.domain.calibration import CollectiveTable, calibration_violations
from linkbound.domain.errors import Violation
from linkbound.domain.layout import inner_link_violations, rank_link_violations
from linkbound.domain.link import Link
from linkbound.domain.rules import CrossChecked, instance, optional
from linkbound.domain.workload import CutIntoRanks

LINK = instance(Link)
OPTIONAL_LINK = optional(LINK)
OPTIONAL_TABLE = optional(instance(CollectiveTable))


class OverFabric(CrossChecked):
    """Something asked about transfers among ranks: `link` is that of every node, `inner_link` of each rank within one.

    `calibration`, an id of the catalogue, or `collective_table` say what collectives take on this system.
    """

    __slots__ = ()

    link: Link
    inner_link: Link | None
    calibration: str
    collective_table: CollectiveTable | None

    def fabric_violations(self, ranks_per_node: int) -> Iterable[Violation]:
        """Several ranks in a node need a link between them; one calibration at most."""
        yield from inner_link_violations(ranks_per_node, self.inner_link)
        yield from calibration_violations(self.calibration, self.collective_table)


class OfInstance(OverFabric):
    """Something asked about one instance of a model; `rank_links` are those of single nodes that have another one."""

    __slots__ = ()

    workload: CutIntoRanks
    rank_links: tuple[Link, ...]

    def cross_violations(self) -> Iterable[Violation]:
        """Several ranks in a node need a link between them; no more links than nodes; one calibration at most."""
        yield from self.fabric_violations(self.workload.ranks_per_node)
        if self.rank_links:
            yield from rank_link_violations(self.workload.layout, len(self.rank_links))
