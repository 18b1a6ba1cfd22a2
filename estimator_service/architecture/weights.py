"""The weights of an architecture, one entry for each kind of matrix or vector in a layer, with how ranks share it."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve, field, frozen

from estimator_service.architecture.facts import (
    Architecture,
    DenseFeedForward,
    Experts,
    FeedForward,
    HyperConnections,
    LayerGroup,
)
from estimator_service.architecture.mixer_weights import weights_of_mixer
from estimator_service.architecture.mixers import StateSpace
from estimator_service.architecture.weight import Weight, matrix, vector
from linkbound.domain.catalog import ModelPart, WeightSplit

EMBEDDING_MODULE = "embed_tokens"
HEAD_MODULE = "lm_head"
VISION_MODULE = "vision"
DRAFT_PROJECTION_MODULE = "eh_proj"

_MODULE_PREFIX = "mlp."


@frozen(kw_only=True)
class LayerWeights:
    """The weights of each layer of a group. `is_draft`: they belong to draft modules, `copies` of each layer."""

    group: LayerGroup
    weights: tuple[Weight, ...]
    is_draft: bool = field(default=False)
    copies: int = field(default=1)

    @property
    def layer_count(self) -> int:
        """Layers that hold them."""
        return self.group.layer_count * self.copies


def layer_weights(architecture: Architecture) -> Iterator[LayerWeights]:
    """Weights by group of layers, draft modules last (`docs/formulas.md`, Parameters)."""
    for group in architecture.layers:
        yield LayerWeights(group=group, weights=tuple(weights_of_layer(group, architecture)))
    draft = architecture.draft
    if draft is None:
        return
    h = architecture.hidden_size
    for position, group in enumerate(draft.layers):
        weights = list(weights_of_layer(group, architecture, hyper_connections=None))
        if position == 0:
            weights.append(vector("norm", ModelPart.NORM, draft.norm_vectors * h))
            if draft.projection:
                weights.append(matrix(DRAFT_PROJECTION_MODULE, ModelPart.OTHER, h, 2 * h))
        as_draft = tuple(evolve(weight, part=ModelPart.MTP) for weight in weights)
        yield LayerWeights(group=group, weights=as_draft, is_draft=True, copies=draft.count)


def weights_around(architecture: Architecture) -> Iterator[Weight]:
    """Weights that belong to no layer: embedding, head, last norm, towers (`docs/formulas.md`, Parameters).

    A token reads one row of an input embedding that is not the head as well, which counts as none.
    """
    h = architecture.hidden_size
    rows = architecture.embedding_rows or architecture.vocabulary_size
    width = architecture.embedding_width or h
    active_copies = 1 if architecture.tied_embeddings else 0
    yield matrix(EMBEDDING_MODULE, ModelPart.EMBEDDING, rows, width, active_copies=active_copies, plain=True)
    yield vector("embed_layers", ModelPart.EMBEDDING, architecture.layer_embedding_parameters, active_copies=0)
    yield matrix("embed_positions", ModelPart.EMBEDDING, architecture.position_rows, h, active_copies=0, plain=True)
    if width != h:
        yield matrix("project", ModelPart.EMBEDDING, 2 * h, width, split=WeightSplit.REPLICATED)
    if not architecture.tied_embeddings:
        yield matrix(HEAD_MODULE, ModelPart.LM_HEAD, rows, width, plain=True)
    if architecture.head_bias:
        yield vector(HEAD_MODULE, ModelPart.LM_HEAD, rows, split=WeightSplit.SLICED)
    yield vector("norm", ModelPart.NORM, architecture.final_norm_vectors * width)
    yield vector("other", ModelPart.OTHER, architecture.other_parameters, split=WeightSplit.SLICED)
    yield vector("other", ModelPart.OTHER, architecture.other_replicated_parameters)
    if architecture.hyper_connections is not None and architecture.hyper_connections.head:
        streams = architecture.hyper_connections.stream_count
        yield vector("hc_head", ModelPart.OTHER, streams * streams * h + streams + 1)
    yield vector(VISION_MODULE, ModelPart.VISION_AUDIO, architecture.vision_audio_parameters, active_copies=0)
    yield vector(VISION_MODULE, ModelPart.OTHER, architecture.projection_parameters, active_copies=0)


def weights_of_layer(
    group: LayerGroup, architecture: Architecture, *, hyper_connections: HyperConnections | bool | None = True
) -> Iterator[Weight]:
    """Weights of one layer of `group` (`docs/formulas.md`, Parameters)."""
    h = architecture.hidden_size
    for mixer in group.mixers:
        if isinstance(mixer, StateSpace) or not group.reuses_weights:
            yield from weights_of_mixer(mixer, h)
    for feed_forward in () if group.reuses_weights else group.feed_forwards:
        yield from _feed_forward(feed_forward, h)
    yield vector("norm", ModelPart.NORM, group.norm_vectors * h)
    yield vector("other", ModelPart.OTHER, group.other_parameters)
    if hyper_connections is True and architecture.hyper_connections is not None:
        sites = len(group.mixers) + len(group.feed_forwards)
        yield vector("hc", ModelPart.OTHER, sites * _hyper_connection_values(architecture.hyper_connections, h))


def _hyper_connection_values(connections: HyperConnections, h: int) -> int:
    """One site: a matrix from all streams to s (s + 2) coefficients, as many offsets, and three scales."""
    streams = connections.stream_count
    coefficients = streams * (streams + 2)
    return coefficients * streams * h + coefficients + 3


def _feed_forward(block: FeedForward, h: int) -> Iterator[Weight]:
    if isinstance(block, DenseFeedForward):
        yield from _matrices(_MODULE_PREFIX, ModelPart.DENSE_MLP, block, h, block.inner_width)
    else:
        yield from _experts(block, h)


def _matrices(
    prefix: str, part: ModelPart, block: DenseFeedForward | Experts, h: int, inner_width: int
) -> Iterator[Weight]:
    if block.gated:
        yield matrix(f"{prefix}gate_proj", part, inner_width, h, bias=block.bias)
    yield matrix(f"{prefix}up_proj", part, inner_width, h, bias=block.bias)
    yield matrix(f"{prefix}down_proj", part, h, inner_width, bias=block.bias)


def _experts(block: Experts, h: int) -> Iterator[Weight]:
    width = block.latent_width or h
    for weight in _matrices("mlp.experts.", ModelPart.ROUTED_EXPERTS, block, width, block.inner_width):
        yield evolve(weight, copies=block.count, active_copies=min(block.active_count, block.count))
    if block.shared_inner_width:
        yield from _matrices("mlp.shared_experts.", ModelPart.SHARED_EXPERTS, block, h, block.shared_inner_width)
    if block.shared_gate:
        yield matrix("mlp.shared_expert_gate", ModelPart.SHARED_EXPERTS, 1, h, split=WeightSplit.REPLICATED, plain=True)
    if block.has_router:
        rows = block.count + block.identity_count
        router = matrix(
            "mlp.gate", ModelPart.ROUTER, rows, h, bias=block.router_bias, split=WeightSplit.REPLICATED, plain=True
        )
        yield evolve(router, values=router.values + block.router_values)
    if block.latent_width:
        whole = WeightSplit.REPLICATED
        yield matrix("mlp.fc1_latent_proj", ModelPart.OTHER, width, h, split=whole)
        yield matrix("mlp.fc2_latent_proj", ModelPart.OTHER, h, width, split=whole)
        if block.latent_norm:
            yield vector("mlp.latent_norm", ModelPart.NORM, width)
