"""Whether a model can be cut as a layout says. Memory is not part of it."""

from __future__ import annotations

from collections.abc import Iterator

from estimator_service.core.feasibility import infeasible_reasons, size_violations
from linkbound.domain.catalog import Model, ModelPart
from linkbound.domain.errors import Violation
from linkbound.domain.layout import ExpertParallelism, ParallelLayout

_EXCHANGES = (ExpertParallelism.ALL_GATHER, ExpertParallelism.ALL_TO_ALL)


def layout_reasons(model: Model, layout: ParallelLayout) -> tuple[str, ...]:
    """Why `model` cannot be cut as `layout` says, one sentence each (`docs/formulas.md`, Layouts).

    Beside the rules of a tensor-parallel group: no more stages than layers, no group that straddles nodes, experts for
    what spreads them, at least two attention groups for an exchange between them, and no more ranks than experts.
    """
    beside = (violation.description for violation in _violations(model, layout, ""))
    return (*infeasible_reasons(model, layout.tensor_parallel_size), *beside)


def layout_violations(model: Model, layout: ParallelLayout, prefix: str) -> Iterator[Violation]:
    """The violations of a request, `prefix` the path of what holds the layout (`docs/formulas.md`, Layouts)."""
    yield from size_violations(model, layout.tensor_parallel_size, f"{prefix}tensor_parallel_size")
    yield from _violations(model, layout, prefix)


def _violations(model: Model, layout: ParallelLayout, prefix: str) -> Iterator[Violation]:
    size, stages, in_node = layout.tensor_parallel_size, layout.pipeline_parallel_size, layout.ranks_per_node
    if stages > model.layer_count:
        yield Violation(f"{prefix}pipeline_parallel_size", f"{stages} stages are more than {model.layer_count} layers")
    if size % in_node and in_node % size:
        yield Violation(f"{prefix}ranks_per_node", f"groups of {size} ranks straddle nodes of {in_node}")
    yield from _expert_violations(model, layout, prefix)


def _expert_violations(model: Model, layout: ParallelLayout, prefix: str) -> Iterator[Violation]:
    groups, experts = layout.data_parallel_size, layout.expert_parallelism
    if not model.expert_count:
        if groups > 1:
            yield Violation(
                f"{prefix}data_parallel_size", f"{model.model_id} has no experts that attention groups could share"
            )
        if experts is not ExpertParallelism.UNSPECIFIED:
            yield Violation(f"{prefix}expert_parallelism", f"{model.model_id} has no experts")
        return
    if groups == 1 and experts in _EXCHANGES:
        yield Violation(
            f"{prefix}data_parallel_size", "an exchange of tokens between attention groups needs at least 2 of them"
        )
    if groups > 1 and experts is ExpertParallelism.ALL_REDUCE:
        yield Violation(
            f"{prefix}expert_parallelism",
            f"an all-reduce among {layout.tensor_parallel_size} ranks does not reach"
            f" the other {groups - 1} attention groups",
        )
    if groups > 1 and not any(c.part is ModelPart.ROUTED_EXPERTS for c in model.collectives):
        yield Violation(
            f"{prefix}data_parallel_size",
            f"which collectives of {model.model_id} belong to its experts is not known",
        )
    if groups > 1 and experts is ExpertParallelism.ALL_TO_ALL and not model.active_expert_count:
        yield Violation(
            f"{prefix}expert_parallelism", f"how many experts a token of {model.model_id} uses is not known"
        )
    expert_rank_count = layout.tensor_parallel_size * groups
    if experts is not ExpertParallelism.UNSPECIFIED and expert_rank_count > model.expert_count:
        yield Violation(
            f"{prefix}expert_parallelism", f"{expert_rank_count} ranks are more than {model.expert_count} experts"
        )
