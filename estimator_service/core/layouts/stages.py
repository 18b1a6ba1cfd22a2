"""Pipeline stages: which layers they hold, and how many collectives of a kind these run."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from linkbound.domain.catalog import Collective, Model, ModelPart, RowScope
from linkbound.domain.collective import CollectiveKind


@frozen(kw_only=True)
class StageLayers:
    """The layers of one stage: from `start` up to and without `end`, of a pipeline of `stage_count` stages."""

    index: int
    start: int
    end: int
    stage_count: int

    @property
    def is_first(self) -> bool:
        """Whether the stage holds the embedding."""
        return self.index == 0

    @property
    def is_last(self) -> bool:
        """Whether the stage holds the LM head."""
        return self.index == self.stage_count - 1


def stage_layers(layer_count: int, stage_count: int) -> Iterator[StageLayers]:
    """The stages in their order, as vLLM fills them (`docs/formulas.md`, Layouts).

    floor(L / Q) layers each; those left over go one each to the stages before the last, from the back.
    """
    base, left_over = divmod(layer_count, stage_count)
    start = 0
    for index in range(stage_count):
        more = stage_count - 1 - left_over <= index < stage_count - 1
        end = start + base + more
        yield StageLayers(index=index, start=start, end=end, stage_count=stage_count)
        start = end


def collectives_in_stage(collective: Collective, model: Model, stage: StageLayers) -> int:
    """How many of `collective` a stage runs in a pass (`docs/formulas.md`, Layouts).

    The embedding's on the first stage, those of the logits on the last. Where dense MLPs and MoE blocks make up the
    layers, the dense ones come first; c collectives of any other kind are spread evenly: floor(c e / L) less
    floor(c s / L) from layer s to e. Over all stages they add up to c.
    """
    if collective.part is ModelPart.EMBEDDING:
        return collective.count if stage.is_first else 0
    if collective.part is ModelPart.LM_HEAD or collective.row_scope is RowScope.LOGITS:
        return collective.count if stage.is_last else 0
    start, end = stage.start, stage.end
    dense_count = _leading_dense_count(model)
    if dense_count and collective.part is ModelPart.DENSE_MLP:
        return max(0, min(end, dense_count) - start)
    if dense_count and collective.part is ModelPart.ROUTED_EXPERTS:
        return max(0, end - max(start, dense_count))
    return collective.count * end // model.layer_count - collective.count * start // model.layer_count


def _leading_dense_count(model: Model) -> int:
    """Dense MLPs before the MoE blocks, where there is one or the other in each layer; else 0."""
    dense, routed = (
        [
            collective.count
            for collective in model.collectives
            if collective.part is part and collective.kind is CollectiveKind.ALL_REDUCE
        ]
        for part in (ModelPart.DENSE_MLP, ModelPart.ROUTED_EXPERTS)
    )
    if len(dense) == len(routed) == 1 and dense[0] + routed[0] == model.layer_count:
        return dense[0]
    return 0
