"""The collectives of a layout: what becomes of a model's inventory when it is not cut by tensors alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from functools import lru_cache

from attrs import evolve, field, frozen

from estimator_service.core.elementwise import quotient
from estimator_service.core.layouts.placement import (
    Placement,
    SplitBytes,
    boundary_bytes,
    expert_group,
    split_bytes,
    tensor_group,
)
from estimator_service.core.layouts.stages import StageLayers, collectives_in_stage, stage_layers
from linkbound.domain.catalog import Collective, Model, ModelPart, RowScope
from linkbound.domain.collective import CollectiveKind
from linkbound.domain.layout import ExpertParallelism, ParallelLayout, RankGroup

STREAMS_PER_BOUNDARY = 2
"""vLLM hands two tensors of the hidden size to the next stage: the hidden states and the residual."""


class Payload(Enum):
    """What a collective has one row for."""

    GROUP_TOKEN = "token of one attention group"
    ANY_TOKEN = "token of any attention group"
    LOGITS = "position of one attention group whose logits are needed"


@frozen(kw_only=True)
class LayoutCollective:
    """One kind of collective: what it is, and the bytes of one of them for one row, by link.

    `least_share` of the bytes is sent in any case: less than all of them where copies of a token may be one.
    """

    kind: CollectiveKind
    rank_group: RankGroup
    placement: Placement
    payload: Payload
    message_bytes: float
    sent: SplitBytes
    reason: str
    least_share: float = 1.0


@frozen(kw_only=True)
class StageRow:
    """`count` times a collective in one pass of a stage."""

    collective: LayoutCollective
    count: int
    outer_bytes: float = field(init=False)
    """Bytes of one row over the link between nodes, of all of them."""
    inner_bytes: float = field(init=False)
    """Bytes of one row over the link within a node, of all of them."""

    @property
    def sends(self) -> bool:
        """Whether there is another rank to send to."""
        return self.collective.placement.rank_count > 1

    @outer_bytes.default
    def _all_outer_bytes(self) -> float:
        return self.count * self.collective.sent.outer_bytes

    @inner_bytes.default
    def _all_inner_bytes(self) -> float:
        return self.count * self.collective.sent.inner_bytes


@frozen(kw_only=True)
class RowBytes:
    """Bytes over one kind of link for one row of each payload, over all collectives of a stage."""

    group_token: float
    any_token: float
    logits: float


@frozen(kw_only=True)
class StageKind:
    """`stage_count` stages that run the same collectives, and their bytes by link.

    `least_outer` and `least_inner` are those bytes that are sent in any case. `all_reduce_count` are those of one stage
    in one pass, `sending_all_reduce_count` those among several ranks; `sends_within`: any bytes stay in a node.
    """

    rows: tuple[StageRow, ...]
    stage_count: int
    is_last: bool
    outer: RowBytes
    inner: RowBytes
    least_outer: RowBytes
    least_inner: RowBytes
    all_reduce_count: int
    sending_all_reduce_count: int
    sends: bool
    sends_within: bool


def stage_kinds(model: Model, layout: ParallelLayout) -> tuple[StageKind, ...]:
    """What the stages of an instance run in one pass, each kind of stage with their number.

    (`docs/formulas.md`, Layouts) The sum over all stages is what one pass of one prompt goes through. It is kept for
    the models and layouts that were asked for last.
    """
    return _stage_kinds(model, layout)


@lru_cache(maxsize=256)
def _stage_kinds(model: Model, layout: ParallelLayout) -> tuple[StageKind, ...]:
    replaced = [(collective, tuple(_replacements(collective, model, layout))) for collective in model.collectives]
    gathered = _gathered_states(
        model, layout, "pipeline: the ranks of a stage put together the shares that they received"
    )
    kinds: dict[tuple[StageRow, ...], int] = {}
    last: tuple[StageRow, ...] = ()
    for stage in stage_layers(model.layer_count, layout.pipeline_parallel_size):
        last = tuple(_stage_rows(model, layout, stage, replaced, gathered))
        kinds[last] = kinds.get(last, 0) + 1
    return tuple(
        StageKind(
            rows=rows,
            stage_count=count,
            is_last=rows == last,
            outer=row_bytes(rows, lambda row: row.outer_bytes),
            inner=row_bytes(rows, lambda row: row.inner_bytes),
            least_outer=row_bytes(rows, lambda row: row.outer_bytes * row.collective.least_share),
            least_inner=row_bytes(rows, lambda row: row.inner_bytes * row.collective.least_share),
            all_reduce_count=sum(row.count for row in rows if row.collective.kind is CollectiveKind.ALL_REDUCE),
            sending_all_reduce_count=sum(
                row.count for row in rows if row.sends and row.collective.kind is CollectiveKind.ALL_REDUCE
            ),
            sends=any(row.sends for row in rows),
            sends_within=any(row.inner_bytes for row in rows),
        )
        for rows, count in kinds.items()
    )


def row_bytes(rows: Iterable[StageRow], bytes_of_row: Callable[[StageRow], float]) -> RowBytes:
    """The bytes of `rows`, summed by what they have one row for (`docs/formulas.md`, Layouts)."""
    sums = dict.fromkeys(Payload, 0.0)
    for row in rows:
        sums[row.collective.payload] += bytes_of_row(row)
    return RowBytes(
        group_token=sums[Payload.GROUP_TOKEN], any_token=sums[Payload.ANY_TOKEN], logits=sums[Payload.LOGITS]
    )


def _stage_rows(
    model: Model,
    layout: ParallelLayout,
    stage: StageLayers,
    replaced: list[tuple[Collective, tuple[LayoutCollective, ...]]],
    gathered: LayoutCollective,
) -> Iterator[StageRow]:
    if not stage.is_first and layout.tensor_parallel_size > 1:
        yield StageRow(collective=gathered, count=STREAMS_PER_BOUNDARY)
    for collective, instead in replaced:
        count = collectives_in_stage(collective, model, stage)
        if count:
            yield from (StageRow(collective=one, count=count) for one in instead)
    if not stage.is_last:
        yield StageRow(collective=_sent_states(model, layout, stage), count=STREAMS_PER_BOUNDARY)


def _replacements(collective: Collective, model: Model, layout: ParallelLayout) -> Iterator[LayoutCollective]:
    """What `layout` runs in place of one collective of the model."""
    if collective.part is ModelPart.ROUTED_EXPERTS and layout.data_parallel_size > 1:
        if collective.width == model.hidden_size:
            yield from _exchange(model, layout)
        return
    group = tensor_group(layout)
    payload = Payload.LOGITS if collective.row_scope is RowScope.LOGITS else Payload.GROUP_TOKEN
    message_bytes = collective.width * model.activation_value_bytes
    kinds: tuple[CollectiveKind, ...] = (collective.kind,)
    if layout.sequence_parallel and collective.kind is CollectiveKind.ALL_REDUCE:
        kinds = (CollectiveKind.REDUCE_SCATTER, CollectiveKind.ALL_GATHER)
    for kind in kinds:
        yield _collective(kind, RankGroup.TENSOR, group, payload, message_bytes, _reason(collective, layout))


def _reason(collective: Collective, layout: ParallelLayout) -> str:
    if collective.part is ModelPart.ROUTED_EXPERTS and layout.expert_parallelism is ExpertParallelism.ALL_REDUCE:
        return "mixture of experts, shared experts added first: each rank holds the sum over its own experts"
    return collective.reason


def _exchange(model: Model, layout: ParallelLayout) -> Iterator[LayoutCollective]:
    """What takes tokens of every attention group to the experts and brings their results back, of one MoE block."""
    experts = expert_group(layout)
    width_bytes = model.hidden_size * model.activation_value_bytes
    if layout.expert_parallelism is ExpertParallelism.ALL_TO_ALL:
        copies = model.active_expert_count * width_bytes / layout.tensor_parallel_size
        for reason in (
            "dispatch: each token goes to the ranks of its experts",
            "combine: the results of its experts come back to each token",
        ):
            row = _collective(CollectiveKind.ALL_TO_ALL, RankGroup.EXPERT, experts, Payload.GROUP_TOKEN, copies, reason)
            # Where all experts of a token share a rank, it is sent once.
            yield evolve(row, least_share=quotient(1.0, model.active_expert_count, if_zero=1.0))
    else:
        logits_bytes = model.expert_count * model.activation_value_bytes
        for kind, message_bytes, reason in (
            (CollectiveKind.ALL_GATHER, width_bytes, "dispatch: every rank gets the tokens of all attention groups"),
            (CollectiveKind.ALL_GATHER, logits_bytes, "dispatch: router logits of the tokens"),
            (CollectiveKind.REDUCE_SCATTER, width_bytes, "combine: results are summed and go back to their ranks"),
        ):
            yield _collective(kind, RankGroup.EXPERT, experts, Payload.ANY_TOKEN, message_bytes, reason)
    if layout.tensor_parallel_size > 1:
        yield _gathered_states(
            model,
            layout,
            "experts: each rank of an attention group dispatched a share of its tokens, and gets all again",
        )


def _collective(
    kind: CollectiveKind,
    rank_group: RankGroup,
    placement: Placement,
    payload: Payload,
    message_bytes: float,
    reason: str,
) -> LayoutCollective:
    """One that every rank of a group takes part in."""
    return LayoutCollective(
        kind=kind,
        rank_group=rank_group,
        placement=placement,
        payload=payload,
        message_bytes=message_bytes,
        sent=split_bytes(kind, placement, message_bytes),
        reason=reason,
    )


def _sent_states(model: Model, layout: ParallelLayout, stage: StageLayers) -> LayoutCollective:
    share_bytes = model.hidden_size * model.activation_value_bytes / layout.tensor_parallel_size
    return LayoutCollective(
        kind=CollectiveKind.SEND_RECEIVE,
        rank_group=RankGroup.PIPELINE,
        placement=Placement(rank_count=2, ranks_in_node=1),
        payload=Payload.GROUP_TOKEN,
        message_bytes=share_bytes,
        sent=boundary_bytes(layout, stage.index, share_bytes),
        reason="pipeline: each rank sends its share of the hidden states and of the residual to the next stage",
    )


def _gathered_states(model: Model, layout: ParallelLayout, reason: str) -> LayoutCollective:
    """The hidden states of a token, of which each rank of a tensor-parallel group has a share."""
    message_bytes = model.hidden_size * model.activation_value_bytes
    return _collective(
        CollectiveKind.ALL_GATHER, RankGroup.TENSOR, tensor_group(layout), Payload.GROUP_TOKEN, message_bytes, reason
    )
