"""Weights of one rank."""

from __future__ import annotations

from attrs import evolve, frozen

from estimator_service.core.elementwise import ceil_quotient
from estimator_service.core.memory.shares import (
    WHOLE,
    Share,
    Stage,
    fullest_stages,
    held_stage_share,
    is_held_whole,
    placement_of,
    rank_share,
)
from linkbound.domain.catalog import Model, ModelPart, ParameterGroup, WeightFormatSource
from linkbound.domain.layout import ParallelLayout
from linkbound.domain.link import BITS_PER_BYTE


@frozen(kw_only=True)
class RankWeights:
    """Weight bytes of one rank: what is cut over the tensor-parallel group, and what each of its ranks holds whole."""

    sliced_bytes: int
    replicated_bytes: int

    @property
    def total_bytes(self) -> int:
        """Both."""
        return self.sliced_bytes + self.replicated_bytes


def stored_at(model: Model, weight_bits_per_parameter: float | None) -> Model:
    """`model` with every weight stored at that many bits, and as it is for None (`docs/formulas.md`, Memory)."""
    if weight_bits_per_parameter is None:
        return model
    groups = tuple(evolve(group, weight_bytes=None) for group in model.parameter_groups)
    return evolve(
        model,
        weight_bits_per_parameter=weight_bits_per_parameter,
        parameter_groups=groups,
        weight_format_source=WeightFormatSource.STATED,
    )


def group_weight_bytes(group: ParameterGroup, model: Model) -> int | None:
    """Bytes of all ranks' shares of `group`: as stored, else W = p q / 8 (`docs/formulas.md`, Memory).

    None: neither the bytes nor the mean bits q of the model's weights are known.
    """
    if group.weight_bytes is not None:
        return group.weight_bytes
    if model.weight_bits_per_parameter is None:
        return None
    return _bytes_at(group.parameter_count, model.weight_bits_per_parameter)


def weights_of_rank(model: Model, layout: ParallelLayout, *, draft_token_count: int = 0) -> RankWeights | None:
    """Weights of the fullest rank of `layout`; None where the model does not say (`docs/formulas.md`, Memory).

    MTP layers count where drafts are made, and every rank of the last stage then holds them whole. A model of which
    only the total is known is cut evenly over tensor-parallel ranks and stages.
    """
    weights = [
        weights_of_stage(model, layout, stage, draft_token_count=draft_token_count)
        for stage in fullest_stages(model.layer_count, layout.pipeline_parallel_size)
    ]
    known = [of_stage for of_stage in weights if of_stage is not None]
    return max(known, key=lambda of_stage: of_stage.total_bytes) if known else None


def weights_of_stage(
    model: Model, layout: ParallelLayout, stage: Stage, *, draft_token_count: int = 0
) -> RankWeights | None:
    """Weights of one rank of `stage`; None where the model does not say (`docs/formulas.md`, Memory)."""
    if not model.parameter_groups:
        return _even_weights(model, layout)
    placement = placement_of(model)
    sliced_bytes = replicated_bytes = 0
    for group in model.parameter_groups:
        if group.part is ModelPart.MTP and not draft_token_count:
            continue
        whole_bytes = group_weight_bytes(group, model)
        if whole_bytes is None:
            return None
        held = _held(group, model, layout, held_stage_share(group, placement, stage)).of(whole_bytes)
        if group.part is ModelPart.MTP or is_held_whole(group, model):
            replicated_bytes += held
        else:
            sliced_bytes += held
    return RankWeights(sliced_bytes=sliced_bytes, replicated_bytes=replicated_bytes)


def _held(group: ParameterGroup, model: Model, layout: ParallelLayout, of_stage: Share) -> Share:
    of_rank = WHOLE if group.part is ModelPart.MTP else rank_share(group, model, layout)
    return Share(
        numerator=of_stage.numerator * of_rank.numerator, denominator=of_stage.denominator * of_rank.denominator
    )


def _even_weights(model: Model, layout: ParallelLayout) -> RankWeights | None:
    """Every weight cut evenly, for a model of which only the total is known."""
    if model.total_parameters is None or model.weight_bits_per_parameter is None:
        return None
    rank_count = layout.tensor_parallel_size * layout.pipeline_parallel_size
    total_bytes = _bytes_at(model.total_parameters, model.weight_bits_per_parameter)
    return RankWeights(sliced_bytes=ceil_quotient(total_bytes, rank_count), replicated_bytes=0)


def _bytes_at(parameter_count: int, bits: float) -> int:
    return round(parameter_count * bits / BITS_PER_BYTE)
