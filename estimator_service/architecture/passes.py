"""The collectives of a pass under tensor parallelism, a row for each kind with its reason.

How many there are is a fact of the engine as much as of the model: the counts are those of vLLM.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from estimator_service.architecture.facts import Architecture, DenseFeedForward, Experts, LayerGroup
from estimator_service.architecture.mixers import Attention, CompressedAttention, LatentAttention, Mixer
from estimator_service.core.inventory import VOCABULARY_MULTIPLE, padded_vocabulary_size
from linkbound.domain.catalog import Collective, ModelPart, RowScope
from linkbound.domain.collective import CollectiveKind

_LATENT_OUTPUT = "mlp.fc2_latent_proj"


@frozen(kw_only=True)
class _Sum:
    """One kind of sum over the ranks within layers: of what, how wide, and why."""

    part: ModelPart
    width: int
    reason: str


_EMBEDDING = "vocabulary-parallel embedding: each rank looks up its share of the tokens"
_ATTENTION = "attention output: each rank holds the sum over its own heads"
_LINEAR = "linear attention or state-space output: each rank holds the sum over its own heads"
_DENSE = "dense MLP: each rank holds the sum over its slice of the inner width"
_EXPERTS = "mixture of experts, shared experts added first: each rank holds a slice of every expert"
_EXPERTS_APART = "mixture of experts beside a dense MLP, summed apart: each rank holds a slice of every expert"
_EXPERTS_BESIDE = "mixture of experts and a dense MLP side by side, added before one sum over the ranks"
_EXPERTS_ALONE = "mixture of experts without the shared ones: each rank holds a slice of every expert"
_SHARED_APART = "shared experts, summed apart: each rank holds the sum over its slice of the inner width"
_LATENT = "experts in a latent space whose way back is not linear: summed at that width before it"
_MERGED = "parallel block: attention and MLP are added before one sum over the ranks"
_OPEN = "block whose parts are not known: taken to end in a sum over the ranks"


def collectives_of(architecture: Architecture) -> tuple[Collective, ...]:
    """Every collective of one pass under tensor parallelism (`docs/formulas.md`, Collectives of a pass).

    One all-reduce of width h for the embedding and for each block of a layer, one all-gather of the padded vocabulary
    for the logits. With attention and a feed-forward block in each of L layers these are 2 L + 1 all-reduces.
    """
    counts: dict[_Sum, int] = {_sum(architecture, ModelPart.EMBEDDING, _EMBEDDING): 1}
    for group in architecture.layers:
        for entry in _sums(group, architecture):
            counts[entry] = counts.get(entry, 0) + group.layer_count
    rows = [
        Collective(
            kind=CollectiveKind.ALL_REDUCE,
            width=entry.width,
            count=count,
            row_scope=RowScope.TOKEN,
            reason=entry.reason,
            part=entry.part,
        )
        for entry, count in counts.items()
    ]
    return (*rows, *_logits(architecture))


def _logits(architecture: Architecture) -> Iterator[Collective]:
    if not architecture.vocabulary_size:
        return
    yield Collective(
        kind=CollectiveKind.ALL_GATHER,
        width=padded_vocabulary_size(architecture.vocabulary_size),
        count=1,
        row_scope=RowScope.LOGITS,
        reason=f"LM head: each rank holds the logits of its slice of the vocabulary, padded to {VOCABULARY_MULTIPLE}",
        part=ModelPart.LM_HEAD,
    )


def _sums(group: LayerGroup, architecture: Architecture) -> Iterator[_Sum]:
    block_count = len(group.mixers) + len(group.feed_forwards)
    wanted = group.all_reduce_count
    added_blocks = wanted is not None and wanted == len(group.mixers) + 1 and len(group.feed_forwards) > 1
    if wanted is not None and wanted < block_count and not added_blocks:
        for _ in range(wanted):
            yield _sum(architecture, ModelPart.ATTENTION, _MERGED)
        return
    for mixer in group.mixers:
        yield _of_mixer(mixer, architecture)
    if added_blocks:
        yield _sum(architecture, ModelPart.ROUTED_EXPERTS, _EXPERTS_BESIDE)
        return
    apart = any(isinstance(block, DenseFeedForward) for block in group.feed_forwards)
    for block in group.feed_forwards:
        if isinstance(block, DenseFeedForward):
            yield _sum(architecture, ModelPart.DENSE_MLP, _DENSE)
        else:
            yield from _of_experts(block, group, architecture, _EXPERTS_APART if apart else _EXPERTS)
    for _ in range((wanted or block_count) - block_count):
        yield _sum(architecture, ModelPart.OTHER, _OPEN)


def _of_mixer(mixer: Mixer, architecture: Architecture) -> _Sum:
    if isinstance(mixer, Attention | LatentAttention | CompressedAttention):
        return _sum(architecture, ModelPart.ATTENTION, _ATTENTION)
    return _sum(architecture, ModelPart.LINEAR_MIXER, _LINEAR)


def _of_experts(block: Experts, group: LayerGroup, architecture: Architecture, reason: str) -> Iterator[_Sum]:
    if block.shared_apart and block.shared_inner_width:
        yield _sum(architecture, ModelPart.SHARED_EXPERTS, _SHARED_APART)
        reason = _EXPERTS_ALONE
    yield _sum(architecture, ModelPart.ROUTED_EXPERTS, reason)
    # Linear: no norm before it and stored as the model runs. Then the sum may come after it, with the rest.
    quantised = any(_LATENT_OUTPUT in entry.modules for entry in group.stored)
    if block.latent_width and (block.latent_norm or quantised):
        yield _Sum(part=ModelPart.ROUTED_EXPERTS, width=block.latent_width, reason=_LATENT)


def _sum(architecture: Architecture, part: ModelPart, reason: str) -> _Sum:
    return _Sum(part=part, width=architecture.hidden_size, reason=reason)
