"""The links under a layout, as resolved: between nodes, and within them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import evolve, frozen

from estimator_service.core.elementwise import larger
from estimator_service.core.intervals import between, link_basis, link_effects, network_constraint
from estimator_service.core.layouts.load import FabricLoad
from estimator_service.core.links import resolve, send_seconds
from estimator_service.core.transfers import baseline_violations
from linkbound.domain.errors import Violation
from linkbound.domain.estimate import Effect, Estimate
from linkbound.domain.layout import ParallelLayout
from linkbound.domain.link import Link, ResolvedLink


@frozen(kw_only=True)
class Fabric:
    """The slowest link between nodes, and the link of each rank within a node, where a node has several.

    `slowest_index` says which of the links of single nodes is the slowest; None: the link that all others have.
    `kindest` is the slowest link between nodes that bounds a time from below wherever slow nodes stand.
    """

    outer: ResolvedLink
    kindest: ResolvedLink
    inner: ResolvedLink | None = None
    slowest_index: int | None = None

    @property
    def at_best(self) -> Fabric:
        """The same where the slow node stands in the stage or attention group that does not count."""
        return self if self.kindest is self.outer else evolve(self, outer=self.kindest)

    @property
    def links(self) -> tuple[ResolvedLink, ...]:
        """All that an end of a time comes from, each once."""
        between_nodes = (self.outer,) if self.kindest is self.outer else (self.outer, self.kindest)
        return between_nodes if self.inner is None else (*between_nodes, self.inner)


def resolve_fabric(link: Link, rank_links: Sequence[Link], inner_link: Link | None, layout: ParallelLayout) -> Fabric:
    """The links that count: the slowest between nodes sets the rate of every group (`docs/formulas.md`, Layouts).

    Nobody says which stage or attention group a node belongs to. With one of each, a slow node is in it. With several
    it may be in the one that sends least, so that from below all others count with the link that they have.
    """
    of_all = resolve(link)
    outer, slowest_index = of_all, None
    for index, other in enumerate(map(resolve, rank_links)):
        if other.effective_bits_per_second < outer.effective_bits_per_second:
            outer, slowest_index = other, index
    is_one_group = layout.pipeline_parallel_size == layout.data_parallel_size == 1
    inner = None if inner_link is None or layout.ranks_per_node == 1 else resolve(inner_link)
    return Fabric(outer=outer, kindest=outer if is_one_group else of_all, inner=inner, slowest_index=slowest_index)


def fabric_baseline_violations(
    field: str, baseline_seconds: float | None, load: FabricLoad, fabric: Fabric
) -> Iterable[Violation]:
    """The violation of a measured time below what either kind of link needs (`docs/formulas.md`, Layouts)."""
    if baseline_seconds is None:
        return ()
    sent, link = load.outer.pipelined_bytes, fabric.kindest
    of_any_node = send_seconds(load.outer.any_node_bytes, fabric.outer.effective_bits_per_second)
    if of_any_node > send_seconds(sent, link.effective_bits_per_second):
        sent, link = load.outer.any_node_bytes, fabric.outer
    if fabric.inner is not None:
        within = send_seconds(load.inner.pipelined_bytes, fabric.inner.effective_bits_per_second)
        if within > send_seconds(sent, link.effective_bits_per_second):
            sent, link = load.inner.pipelined_bytes, fabric.inner
    return baseline_violations(field, baseline_seconds, sent, link)


def fabric_seconds(load: FabricLoad, fabric: Fabric, effects: Sequence[Effect] = ()) -> Estimate:
    """Time of transfers: [max(8 S_o / B_o, 8 S_i / B_i), 8 S'_o / B_o + 8 S'_i / B_i] (`docs/formulas.md`, Layouts).

    S are bytes of passes that follow each other without a gap while both kinds of links are busy, S' those of every
    stage one after another while one link waits for the other. With one stage and one rank per node both ends are
    8 S / B. Where a slow node may stand in any stage, 8 S_o over the link of the others, or what any node carries over
    the slowest link, whichever takes longer.
    """
    outer_rate = fabric.outer.effective_bits_per_second
    lower = send_seconds(load.outer.pipelined_bytes, fabric.kindest.effective_bits_per_second)
    if fabric.kindest is not fabric.outer:
        lower = larger(lower, send_seconds(load.outer.any_node_bytes, outer_rate))
    upper = send_seconds(load.outer.sequential_bytes, outer_rate)
    if fabric.inner is not None:
        inner_rate = fabric.inner.effective_bits_per_second
        lower = larger(lower, send_seconds(load.inner.pipelined_bytes, inner_rate))
        upper += send_seconds(load.inner.sequential_bytes, inner_rate)
    constraint = network_constraint(load.outer.sequential_bytes + load.inner.sequential_bytes)
    links = fabric.links
    return between(
        lower,
        larger(lower, upper),
        link_basis(*links),
        constraint=constraint,
        effects=(*link_effects(*links), *effects),
    )
