"""Which instances of a model the nodes at hand have room for, and how many of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from attrs import frozen

from estimator_service.core.elementwise import ceil_quotient, smaller
from estimator_service.core.feasibility import infeasible_reasons
from estimator_service.core.layouts.comparison import divisors, fits_nodes
from linkbound.domain.catalog import Model
from linkbound.domain.layout import LARGEST_PARALLEL_SIZE, ParallelLayout

Fits = Callable[[ParallelLayout], bool]
"""Whether an instance cut so fits into memory."""


@frozen(kw_only=True)
class Instances:
    """`count` instances side by side, and the nodes that are left over."""

    layout: ParallelLayout
    count: int
    idle_node_count: int


def instance_layout(size: int, ranks_per_node: int, stage_count: int = 1) -> ParallelLayout:
    """One instance of N ranks in each of Q stages, which fills nodes or a part of one.

    (`docs/formulas.md`, Recommendation)
    """
    return ParallelLayout(
        tensor_parallel_size=size,
        pipeline_parallel_size=stage_count,
        ranks_per_node=smaller(size * stage_count, ranks_per_node),
    )


def node_count_of(layout: ParallelLayout, ranks_per_node: int) -> int:
    """Nodes of which an instance fills all or a part (`docs/formulas.md`, Recommendation)."""
    return ceil_quotient(layout.rank_count, ranks_per_node)


def instances_on(node_count: int, ranks_per_node: int, layout: ParallelLayout) -> Instances:
    """As many as there is room for: floor(nodes / nodes of one), or nodes times those in one.

    (`docs/formulas.md`, Recommendation)
    """
    per_node = ranks_per_node // layout.rank_count
    if per_node:
        return Instances(layout=layout, count=node_count * per_node, idle_node_count=0)
    count, idle = divmod(node_count, node_count_of(layout, ranks_per_node))
    return Instances(layout=layout, count=count, idle_node_count=idle)


def cuttable_sizes(model: Model, largest_size: int, ranks_per_node: int) -> list[int]:
    """Tensor-parallel sizes that a model can be cut to and that do not straddle nodes.

    (`docs/formulas.md`, Recommendation)
    """
    return [
        size
        for size in range(1, smaller(largest_size, LARGEST_PARALLEL_SIZE) + 1)
        if fits_nodes(size, ranks_per_node) and not infeasible_reasons(model, size)
    ]


def sizes_to_show(model: Model, node_count: int, ranks_per_node: int) -> list[int]:
    """Those sizes, and the ones that would fill all nodes and say why they cannot.

    (`docs/formulas.md`, Recommendation)
    """
    rank_count = node_count * ranks_per_node
    filling = [size for size in divisors(rank_count) if fits_nodes(size, ranks_per_node)]
    return sorted({*filling, *cuttable_sizes(model, rank_count, ranks_per_node)})


def pipelines_that_fit(
    model: Model, largest_rank_count: int, ranks_per_node: int, fits: Fits
) -> Iterator[ParallelLayout]:
    """Of each size the instance with the fewest stages that fits, two at least (`docs/formulas.md`, Recommendation).

    Of stage counts that straddle no node, the fewest for each length of the longest stage.
    """
    for size in cuttable_sizes(model, largest_rank_count // 2, ranks_per_node):
        most = smaller(model.layer_count, largest_rank_count // size)
        stage_counts = (
            stage_count for stage_count in range(2, most + 1) if fits_nodes(size * stage_count, ranks_per_node)
        )
        layouts = (
            instance_layout(size, ranks_per_node, stage_count)
            for stage_count in _shortening(stage_counts, model.layer_count)
        )
        first = next((layout for layout in layouts if fits(layout)), None)
        if first is not None:
            yield first


def _shortening(stage_counts: Iterable[int], layer_count: int) -> Iterator[int]:
    """Of counts in rising order the first for each length of the longest stage."""
    longest = layer_count
    for stage_count in stage_counts:
        length = ceil_quotient(layer_count, stage_count)
        if length < longest:
            longest = length
            yield stage_count
