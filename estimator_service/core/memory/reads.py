"""Weights that one decode pass reads."""

from __future__ import annotations

from attrs import frozen

from estimator_service.core.elementwise import ceil_quotient, smaller
from estimator_service.core.memory.shares import (
    Share,
    Stage,
    fullest_stages,
    holds_whole_experts,
    placement_of,
    rank_share,
    stage_share,
)
from estimator_service.core.memory.weights import group_weight_bytes
from linkbound.domain.catalog import Model, ModelPart, ParameterGroup
from linkbound.domain.layout import ParallelLayout
from linkbound.domain.link import BITS_PER_BYTE

_NOT_READ = (ModelPart.MTP, ModelPart.VISION_AUDIO)
"""Draft steps are passes of their own, and towers run on prompts."""


@frozen(kw_only=True)
class ReadBytes:
    """What one rank reads in a pass, at least and at most, if nothing is read twice."""

    lower_bytes: int
    upper_bytes: int


def weight_bytes_read(model: Model, layout: ParallelLayout, row_count: int) -> ReadBytes | None:
    """Weight bytes that the busiest rank reads in a pass of `row_count` token rows (`docs/formulas.md`, Memory).

    At least: the parts that one row uses, with the experts of one row; whatever every rank holds is read by every
    rank. At most: every row has experts of its own, whole ones on the same rank. None where the model does not say. For
    the passes of every stage one after another, ask with `pipeline_parallel_size=1`.
    """
    if not model.parameter_groups:
        return _even_read(model, layout)
    reads = [
        _of_stage(model, layout, stage, row_count)
        for stage in fullest_stages(model.layer_count, layout.pipeline_parallel_size)
    ]
    known = [read for read in reads if read is not None]
    if not known:
        return None
    return ReadBytes(
        lower_bytes=max(read.lower_bytes for read in known), upper_bytes=max(read.upper_bytes for read in known)
    )


def _of_stage(model: Model, layout: ParallelLayout, stage: Stage, row_count: int) -> ReadBytes | None:
    placement = placement_of(model)
    lower_bytes = upper_bytes = 0
    for group in model.parameter_groups:
        if group.part in _NOT_READ or not group.parameter_count:
            continue
        whole_bytes = group_weight_bytes(group, model)
        if whole_bytes is None:
            return None
        of_stage = stage_share(group, placement, stage)
        lower_bytes += of_stage.at_least_of(_used_at_least(group, model, layout).at_least_of(whole_bytes))
        upper_bytes += of_stage.of(_used_at_most(group, model, layout, row_count).of(whole_bytes))
    return ReadBytes(lower_bytes=lower_bytes, upper_bytes=upper_bytes)


def _used_at_least(group: ParameterGroup, model: Model, layout: ParallelLayout) -> Share:
    """The share of a stage's part that the busiest rank reads for one row, with its experts on all ranks."""
    if group.part is ModelPart.ROUTED_EXPERTS and holds_whole_experts(model, layout):
        # One row has experts on at most that many ranks, so the busiest of them reads the ceiling.
        expert_rank_count = layout.tensor_parallel_size * layout.data_parallel_size
        return _whole_experts(group, model, layout, ceil_quotient(model.active_expert_count, expert_rank_count))
    return _used_at_most(group, model, layout, 1)


def _whole_experts(group: ParameterGroup, model: Model, layout: ParallelLayout, count: int) -> Share:
    held = rank_share(group, model, layout)
    return Share(numerator=smaller(held.numerator, count), denominator=model.expert_count)


def _used_at_most(group: ParameterGroup, model: Model, layout: ParallelLayout, row_count: int) -> Share:
    """The share of a stage's part that one rank reads where no two of `row_count` rows use the same."""
    if group.part is ModelPart.ROUTED_EXPERTS and holds_whole_experts(model, layout):
        return _whole_experts(group, model, layout, row_count * model.active_expert_count)
    held = rank_share(group, model, layout)
    per_row = group.part in (ModelPart.ROUTED_EXPERTS, ModelPart.EMBEDDING)
    used = smaller(group.parameter_count, group.active_parameter_count * (row_count if per_row else 1))
    return Share(numerator=held.numerator * used, denominator=held.denominator * group.parameter_count)


def _even_read(model: Model, layout: ParallelLayout) -> ReadBytes | None:
    """Every active parameter, cut evenly, for a model of which only totals are known.

    At least: over the attention groups too, which share the experts. At most: each of them has all weights.
    """
    bits, active = model.weight_bits_per_parameter, model.active_parameters
    if active is None or bits is None:
        return None
    rank_count = layout.tensor_parallel_size * layout.pipeline_parallel_size
    total = active if model.total_parameters is None else model.total_parameters
    return ReadBytes(
        lower_bytes=round(active * bits / BITS_PER_BYTE) // (rank_count * layout.data_parallel_size),
        upper_bytes=ceil_quotient(round(total * bits / BITS_PER_BYTE), rank_count),
    )
