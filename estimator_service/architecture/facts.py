"""An architecture in reduced form: groups of equal layers and what stands around them."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import field, frozen

from estimator_service.architecture.mixers import MIXERS, Mixer
from estimator_service.architecture.ranges import indexes_of, is_ranges
from linkbound.domain.catalog import WeightFormatSource
from linkbound.domain.errors import Violation
from linkbound.domain.rules import CrossChecked, instance, member, optional, pattern, real, sequence, text, whole

LARGEST_LAYER_COUNT = 1024
"""Layers of the largest model that is read; the largest published ones have under 200."""

LARGEST_FORMAT_COUNT = 16
"""Formats of weights in one model; published ones have up to three."""

_WIDTH = whole(1, 10**6)
_OPTIONAL_WIDTH = whole(0, 10**6)
_COUNT = whole(0, 10**5)
_VALUES = whole(0, 10**14)
_FLAG = instance(bool)
_ID = pattern(r"[a-z0-9_.]{1,64}", "a name of 1 to 64 of a-z, 0-9, '_' and '.'")


@frozen(kw_only=True)
class DenseFeedForward:
    """A dense block: two matrices, three where one gates."""

    inner_width: int = field(metadata=_WIDTH)
    gated: bool = field(default=True, metadata=_FLAG)
    bias: bool = field(default=False, metadata=_FLAG)


@frozen(kw_only=True)
class Experts:
    """Routed experts, of which a token uses `active_count`, and shared ones of `shared_inner_width` in all.

    `latent_width`: routed experts work at this width, between two projections; 0: at the hidden size.
    `latent_norm`: a norm stands between them. `identity_count` experts are routed to and hold nothing. `shared_apart`:
    shared experts end in a sum over the ranks of their own.
    """

    count: int = field(metadata=whole(1, 10**5))
    active_count: int = field(metadata=whole(1, 10**5))
    inner_width: int = field(metadata=_WIDTH)
    gated: bool = field(default=True, metadata=_FLAG)
    bias: bool = field(default=False, metadata=_FLAG)
    shared_inner_width: int = field(default=0, metadata=_OPTIONAL_WIDTH)
    shared_gate: bool = field(default=False, metadata=_FLAG)
    shared_apart: bool = field(default=False, metadata=_FLAG)
    latent_width: int = field(default=0, metadata=_OPTIONAL_WIDTH)
    latent_norm: bool = field(default=False, metadata=_FLAG)
    identity_count: int = field(default=0, metadata=_COUNT)
    has_router: bool = field(default=True, metadata=_FLAG)
    router_bias: bool = field(default=False, metadata=_FLAG)
    router_values: int = field(default=0, metadata=_VALUES)


FeedForward = DenseFeedForward | Experts
FEED_FORWARDS = (DenseFeedForward, Experts)


@frozen(kw_only=True)
class StoredModules:
    """Modules of a layer that are stored in `weight_format`; every other one has the format of the whole model."""

    weight_format: str = field(metadata=_ID)
    modules: tuple[str, ...] = field(metadata=sequence(1, 100, _ID))


@frozen(kw_only=True)
class LayerGroup(CrossChecked):
    """Layers that are made alike: `layers` are their indexes, as ranges.

    Several mixers or feed-forward blocks of a layer each add to the residual stream. `all_reduce_count` is how many
    sums over the ranks the engine makes of them; None: one for each. `norm_vectors` are vectors of the hidden size.
    `reuses_weights`: attention and feed-forward blocks run with the weights of an earlier layer.
    """

    layers: str = field(metadata=text(20_000, minimum_length=1))
    mixers: tuple[Mixer, ...] = field(default=(), metadata=sequence(0, 4, instance(MIXERS)))
    feed_forwards: tuple[FeedForward, ...] = field(default=(), metadata=sequence(0, 4, instance(FEED_FORWARDS)))
    norm_vectors: int = field(default=2, metadata=whole(0, 64))
    all_reduce_count: int | None = field(default=None, metadata=optional(whole(0, 64)))
    other_parameters: int = field(default=0, metadata=_VALUES)
    reuses_weights: bool = field(default=False, metadata=_FLAG)
    stored: tuple[StoredModules, ...] = field(default=(), metadata=sequence(0, 32, instance(StoredModules)))

    @property
    def layer_indexes(self) -> tuple[int, ...]:
        """The layers, in order."""
        return indexes_of(self.layers)

    @property
    def layer_count(self) -> int:
        """How many layers."""
        return len(self.layer_indexes)

    def cross_violations(self) -> Iterable[Violation]:
        """The ranges can be read."""
        if not is_ranges(self.layers, LARGEST_LAYER_COUNT):
            yield Violation("layers", f"is not ranges of layers below {LARGEST_LAYER_COUNT}, such as 0-2,5")


@frozen(kw_only=True)
class DraftModule:
    """Multi-token prediction: `count` modules, each of the layers in `layers` with a projection of 2 hidden sizes to 1.

    `norm_vectors` are those besides the layers' own: of the hidden state, of the embedding, before the head.
    """

    count: int = field(metadata=whole(1, 64))
    layers: tuple[LayerGroup, ...] = field(metadata=sequence(1, 16, instance(LayerGroup)))
    norm_vectors: int = field(default=3, metadata=whole(0, 64))
    projection: bool = field(default=True, metadata=_FLAG)


@frozen(kw_only=True)
class HyperConnections:
    """Several residual streams that each block reads from and writes to, with a mixing matrix made for each token."""

    stream_count: int = field(metadata=whole(2, 64))
    head: bool = field(default=True, metadata=_FLAG)


@frozen(kw_only=True)
class WeightFormat:
    """How a matrix is stored: bits of a weight, and what scales it, per block of `block_rows` by `block_columns`.

    `block_rows` 0: one scale for the matrix; `block_columns` 0: one for each row. `block_bits` belong to each block,
    `matrix_bytes` to each matrix.
    """

    name: str = field(metadata=_ID)
    weight_bits: float = field(converter=float, metadata=real(64))
    block_rows: int = field(default=0, metadata=_OPTIONAL_WIDTH)
    block_columns: int = field(default=0, metadata=_OPTIONAL_WIDTH)
    block_bits: float = field(default=0.0, converter=float, metadata=real(1024, above=-1))
    column_bits: float = field(default=0.0, converter=float, metadata=real(1024, above=-1))
    matrix_bytes: int = field(default=0, metadata=whole(0, 1024))


_FORMATS = sequence(0, LARGEST_FORMAT_COUNT, instance(WeightFormat))


@frozen(kw_only=True)
class Architecture(CrossChecked):
    """What a model is made of. Widths are values, `value_bytes` the bytes of a weight or activation as the model runs.

    0 heads or a vocabulary of 0: the source does not say. `embedding_rows` and `embedding_width` where they are not
    vocabulary and hidden size; `layer_embedding_parameters` are those of an embedding that layers read beside their
    input. `is_complete`: every block is known, else totals are left out. `formats` are those that `stored` names;
    `stored_around` names modules that belong to no layer.
    """

    hidden_size: int = field(metadata=_WIDTH)
    vocabulary_size: int = field(default=0, metadata=whole(0, 10**8))
    embedding_rows: int = field(default=0, metadata=whole(0, 10**8))
    head_count: int = field(default=0, metadata=_COUNT)
    key_value_head_count: int = field(default=0, metadata=_COUNT)
    layers: tuple[LayerGroup, ...] = field(metadata=sequence(1, LARGEST_LAYER_COUNT, instance(LayerGroup)))
    tied_embeddings: bool = field(default=False, metadata=_FLAG)
    head_bias: bool = field(default=False, metadata=_FLAG)
    position_rows: int = field(default=0, metadata=whole(0, 10**8))
    embedding_width: int = field(default=0, metadata=_OPTIONAL_WIDTH)
    final_norm_vectors: int = field(default=1, metadata=whole(0, 64))
    other_parameters: int = field(default=0, metadata=_VALUES)
    other_replicated_parameters: int = field(default=0, metadata=_VALUES)
    vision_audio_parameters: int = field(default=0, metadata=_VALUES)
    projection_parameters: int = field(default=0, metadata=_VALUES)
    layer_embedding_parameters: int = field(default=0, metadata=_VALUES)
    hyper_connections: HyperConnections | None = field(default=None, metadata=optional(instance(HyperConnections)))
    draft: DraftModule | None = field(default=None, metadata=optional(instance(DraftModule)))
    value_bytes: int = field(default=2, metadata=whole(1, 16))
    is_complete: bool = field(default=True, metadata=_FLAG)
    weight_format_source: WeightFormatSource = field(
        default=WeightFormatSource.STATED, metadata=member(WeightFormatSource)
    )
    formats: tuple[WeightFormat, ...] = field(
        default=(), metadata=sequence(0, LARGEST_FORMAT_COUNT, instance(WeightFormat))
    )
    stored_around: tuple[StoredModules, ...] = field(default=(), metadata=sequence(0, 16, instance(StoredModules)))

    @property
    def knows_formats(self) -> bool:
        """Whether bytes can be counted: `formats`, and for what has none of them the type that the model runs in."""
        return self.weight_format_source is not WeightFormatSource.UNSPECIFIED

    @property
    def layer_count(self) -> int:
        """Layers without draft modules."""
        return sum(group.layer_count for group in self.layers)

    def cross_violations(self) -> Iterable[Violation]:
        """Layers are numbered without gaps or repetition, and every format that is used is there."""
        indexes = sorted(index for group in self.layers for index in group.layer_indexes)
        if indexes != list(range(len(indexes))):
            yield Violation("layers", "the groups together do not hold each layer from 0 once")
        known = {weight_format.name for weight_format in self.formats}
        drafts = self.draft.layers if self.draft else ()
        groups = (*self.layers, *drafts)
        used = {s.weight_format for s in self.stored_around} | {s.weight_format for g in groups for s in g.stored}
        for name in sorted(used - known):
            yield Violation("formats", f"{name} is used and not described")


@frozen(kw_only=True)
class Reading:
    """An architecture with what was said on the way: keys that were not understood, assumptions, what is open."""

    architecture: Architecture
    unused_keys: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    undetermined: tuple[str, ...] = ()
