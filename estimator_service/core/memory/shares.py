"""Which share of a part one rank holds: stages of a pipeline, slices of a tensor-parallel group, whole experts."""

from __future__ import annotations

from attrs import frozen

from estimator_service.core.elementwise import ceil_quotient, larger, smaller
from linkbound.domain.catalog import Model, ModelPart, ParameterGroup, WeightSplit
from linkbound.domain.layout import ExpertParallelism, ParallelLayout

_FIRST_STAGE = (ModelPart.EMBEDDING, ModelPart.VISION_AUDIO)
_LAST_STAGE = (ModelPart.LM_HEAD, ModelPart.MTP)
_TABLES = (ModelPart.EMBEDDING, ModelPart.LM_HEAD)
_MOE_PARTS = (ModelPart.ROUTED_EXPERTS, ModelPart.SHARED_EXPERTS, ModelPart.ROUTER)


@frozen(kw_only=True)
class Stage:
    """One pipeline stage: its layers, from `start` up to and without `end`, and whether it is at an end."""

    start: int
    end: int
    is_first: bool
    is_last: bool

    @property
    def layer_count(self) -> int:
        """Layers of the stage."""
        return self.end - self.start


@frozen(kw_only=True)
class Share:
    """`numerator` parts in `denominator` of something."""

    numerator: int
    denominator: int

    def of(self, whole_bytes: int) -> int:
        """The share of `whole_bytes`, rounded up to whole bytes."""
        return ceil_quotient(whole_bytes * self.numerator, self.denominator)

    def at_least_of(self, whole_bytes: int) -> int:
        """The share of `whole_bytes`, rounded down to whole bytes."""
        return whole_bytes * self.numerator // self.denominator


WHOLE = Share(numerator=1, denominator=1)


def fullest_stages(layer_count: int, stage_count: int) -> tuple[Stage, ...]:
    """The stages of which one is the fullest: both ends, and the first and last of each length between them.

    floor(L / Q) layers each; those left over go one each to the stages before the last, from the back. Kinds of layers
    that come first fill the earlier of two equal stages, all others the later one (`docs/formulas.md`, Memory).
    """
    base, left_over = divmod(layer_count, stage_count)
    last = stage_count - 1
    first_longer = last - left_over

    def start_of(index: int) -> int:
        return index * base + larger(0, smaller(index, last) - first_longer)

    indexes = sorted({0, smaller(1, last), first_longer, larger(last - 1, 0), last})
    return tuple(
        Stage(
            start=start_of(index),
            end=layer_count if index == last else start_of(index + 1),
            is_first=index == 0,
            is_last=index == last,
        )
        for index in indexes
    )


def layers_on_stage(layer_count: int, model_layer_count: int, stage: Stage) -> int:
    """Of c layers of one kind, those on a stage of n: min(c, ceil(c n / L)) (`docs/formulas.md`, Memory).

    Kinds of layers are taken to alternate evenly; where they do not divide, the stage has one more.
    """
    return smaller(layer_count, ceil_quotient(layer_count * stage.layer_count, model_layer_count))


@frozen(kw_only=True)
class Placement:
    """What decides where the parts of a model go: its layers, dense ones that come first, a table of its own or not."""

    layer_count: int
    leading_dense_count: int
    has_one_table: bool
    """Whether embedding and LM head are one table, which the model then names as one of them."""


def placement_of(model: Model) -> Placement:
    """Where the parts of `model` go (`docs/formulas.md`, Memory).

    Dense layers come first where each layer has a dense MLP or experts, and both occur.
    """
    counts: dict[ModelPart, int] = {}
    for group in model.parameter_groups:
        counts[group.part] = larger(counts.get(group.part, 0), group.layer_count)
    dense, routed = counts.get(ModelPart.DENSE_MLP, 0), counts.get(ModelPart.ROUTED_EXPERTS, 0)
    return Placement(
        layer_count=model.layer_count,
        leading_dense_count=dense if dense and routed and dense + routed == model.layer_count else 0,
        has_one_table=not counts.keys() >= set(_TABLES),
    )


def stage_share(group: ParameterGroup, placement: Placement, stage: Stage) -> Share:
    """The share of `group` that `stage` runs (`docs/formulas.md`, Memory).

    Embeddings and towers: the first stage; LM head and MTP layers: the last. Everything else goes with its layers;
    where the first layers are dense and the others have experts, with these.
    """
    if group.part in _FIRST_STAGE:
        return Share(numerator=int(stage.is_first), denominator=1)
    if group.part in _LAST_STAGE:
        return Share(numerator=int(stage.is_last), denominator=1)
    layer_count = group.layer_count or placement.layer_count
    dense = placement.leading_dense_count
    if dense and group.part is ModelPart.DENSE_MLP:
        return Share(numerator=larger(0, smaller(stage.end, dense) - stage.start), denominator=layer_count)
    if dense and group.part in _MOE_PARTS:
        return Share(numerator=larger(0, stage.end - larger(stage.start, dense)), denominator=layer_count)
    return Share(numerator=layers_on_stage(layer_count, placement.layer_count, stage), denominator=layer_count)


def held_stage_share(group: ParameterGroup, placement: Placement, stage: Stage) -> Share:
    """The share of `group` that `stage` holds: what it runs, and at both ends a table that is embedding and head.

    (`docs/formulas.md`, Memory)
    """
    if placement.has_one_table and group.part in _TABLES:
        return Share(numerator=int(stage.is_first or stage.is_last), denominator=1)
    return stage_share(group, placement, stage)


def rank_share(group: ParameterGroup, model: Model, layout: ParallelLayout) -> Share:
    """The share of a stage's part that one of its ranks holds (`docs/formulas.md`, Memory).

    Sliced: 1 / N; routed experts 1 / (N D) over D attention groups, or ceil(E / (N D)) of E whole experts; cut by
    key-value heads: ceil(K / N) / K; replicated, and what a newer version knows: all of it.
    """
    size = layout.tensor_parallel_size
    if group.split is WeightSplit.KEY_VALUE_HEADS:
        return head_share(model.key_value_head_count, layout)
    if group.split is not WeightSplit.SLICED:
        return WHOLE
    if group.part is not ModelPart.ROUTED_EXPERTS:
        return Share(numerator=1, denominator=size)
    expert_rank_count = size * layout.data_parallel_size
    if holds_whole_experts(model, layout):
        experts = ceil_quotient(model.expert_count, expert_rank_count)
        return Share(numerator=experts, denominator=model.expert_count)
    return Share(numerator=1, denominator=expert_rank_count)


def head_share(head_count: int, layout: ParallelLayout) -> Share:
    """ceil(K / N) of K heads, and all of what is not cut by heads (K = 0) (`docs/formulas.md`, Memory)."""
    if not head_count:
        return WHOLE
    return Share(numerator=ceil_quotient(head_count, layout.tensor_parallel_size), denominator=head_count)


def holds_whole_experts(model: Model, layout: ParallelLayout) -> bool:
    """Whether a rank holds experts, not slices of all of them (`docs/formulas.md`, Memory)."""
    return layout.expert_parallelism is not ExpertParallelism.UNSPECIFIED and model.expert_count > 0


def is_held_whole(group: ParameterGroup, model: Model) -> bool:
    """Whether every rank of a tensor-parallel group holds all of `group` (`docs/formulas.md`, Memory)."""
    if group.split is WeightSplit.KEY_VALUE_HEADS:
        return model.key_value_head_count == 1
    return group.split is not WeightSplit.SLICED
