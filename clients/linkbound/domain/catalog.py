"""Models and hardware as the estimator sees them."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from attrs import field, frozen

from linkbound.domain.collective import CollectiveKind
from linkbound.domain.errors import Violation
from linkbound.domain.names import CATALOG_ID, CATALOG_NAME, OPTIONAL_CATALOG_ID
from linkbound.domain.rules import (
    Checked,
    CrossChecked,
    document,
    member,
    optional,
    real,
    sequence,
    text,
    whole,
)

LARGEST_CONFIG_BYTES = 4 * 2**20
"""The largest published config, with a quantisation entry for every expert, has 3 MB."""
_LARGEST_WIDTH = 10**6
_LARGEST_COUNT = 10**5
_LARGEST_PARAMETERS = 10**15
LARGEST_MESSAGE_BYTES_PER_ROW = 35_000_000
"""Payload of one row over all collectives of its scope: the largest workload, with headers, stays within 64 bits."""

_NOTES = sequence(0, 100, text(1024, minimum_length=1))
_PARAMETERS = optional(whole(0, _LARGEST_PARAMETERS))


class RowScope(Enum):
    """What the payload of a collective has one row for."""

    UNSPECIFIED = "ROW_SCOPE_UNSPECIFIED"
    TOKEN = "ROW_SCOPE_TOKEN"
    LOGITS = "ROW_SCOPE_LOGITS"
    UNKNOWN = "ROW_SCOPE_UNKNOWN"


class ModelPart(Enum):
    """A part of a model."""

    UNSPECIFIED = "MODEL_PART_UNSPECIFIED"
    EMBEDDING = "MODEL_PART_EMBEDDING"
    LM_HEAD = "MODEL_PART_LM_HEAD"
    ATTENTION = "MODEL_PART_ATTENTION"
    SPARSE_INDEXER = "MODEL_PART_SPARSE_INDEXER"
    LINEAR_MIXER = "MODEL_PART_LINEAR_MIXER"
    DENSE_MLP = "MODEL_PART_DENSE_MLP"
    ROUTED_EXPERTS = "MODEL_PART_ROUTED_EXPERTS"
    SHARED_EXPERTS = "MODEL_PART_SHARED_EXPERTS"
    ROUTER = "MODEL_PART_ROUTER"
    NORM = "MODEL_PART_NORM"
    MTP = "MODEL_PART_MTP"
    VISION_AUDIO = "MODEL_PART_VISION_AUDIO"
    OTHER = "MODEL_PART_OTHER"
    UNKNOWN = "MODEL_PART_UNKNOWN"


@frozen(kw_only=True)
class Collective:
    """One kind of collective of a pass: `count` times, each with `width` values per row.

    `part` decides what layouts other than tensor-parallel ones do with it. UNKNOWN is what a client of an older version
    sees of a newer service.
    """

    kind: CollectiveKind = field(metadata=member(CollectiveKind, CollectiveKind.UNSPECIFIED))
    width: int = field(metadata=whole(1, _LARGEST_WIDTH))
    count: int = field(metadata=whole(1, _LARGEST_COUNT))
    row_scope: RowScope = field(metadata=member(RowScope, RowScope.UNSPECIFIED))
    reason: str = field(metadata=text(256, minimum_length=1))
    part: ModelPart = field(default=ModelPart.UNSPECIFIED, metadata=member(ModelPart))


class WeightSplit(Enum):
    """How a part is spread over the ranks of a tensor-parallel group."""

    UNSPECIFIED = "WEIGHT_SPLIT_UNSPECIFIED"
    SLICED = "WEIGHT_SPLIT_SLICED"
    REPLICATED = "WEIGHT_SPLIT_REPLICATED"
    KEY_VALUE_HEADS = "WEIGHT_SPLIT_KEY_VALUE_HEADS"
    UNKNOWN = "WEIGHT_SPLIT_UNKNOWN"


class WeightFormatSource(Enum):
    """Where the format comes from in which the weights of a model are counted.

    STATED: a source says how they are stored. DATA_TYPE: the number type of a config that names no quantisation, which
    a file beside it may do. UNSPECIFIED: nobody says.
    """

    UNSPECIFIED = "WEIGHT_FORMAT_SOURCE_UNSPECIFIED"
    STATED = "WEIGHT_FORMAT_SOURCE_STATED"
    DATA_TYPE = "WEIGHT_FORMAT_SOURCE_DATA_TYPE"
    UNKNOWN = "WEIGHT_FORMAT_SOURCE_UNKNOWN"


@frozen(kw_only=True)
class ParameterGroup(CrossChecked):
    """Parameters that are stored alike, used alike and cut alike. A part may have several groups.

    `weight_bytes` are those of the part as stored, scales included; None: the source does not say. `layer_count` is
    the number of layers that hold a share of it; 0 for what belongs to no layer, as embeddings do.
    """

    part: ModelPart = field(metadata=member(ModelPart, ModelPart.UNSPECIFIED))
    parameter_count: int = field(metadata=whole(0, _LARGEST_PARAMETERS))
    active_parameter_count: int = field(metadata=whole(0, _LARGEST_PARAMETERS))
    weight_bytes: int | None = field(default=None, metadata=optional(whole(0, 8 * _LARGEST_PARAMETERS)))
    split: WeightSplit = field(metadata=member(WeightSplit, WeightSplit.UNSPECIFIED))
    layer_count: int = field(default=0, metadata=whole(0, _LARGEST_COUNT))

    def cross_violations(self) -> Iterable[Violation]:
        """A token uses at most all of them."""
        if self.active_parameter_count > self.parameter_count:
            yield Violation("active_parameter_count", f"{self.active_parameter_count} is above {self.parameter_count}")


@frozen(kw_only=True)
class CacheGroup:
    """What one kind of layer keeps for a request, and what a pass reads of it.

    `values_per_token` counts one layer over all heads, which are cut over `split_head_count` heads; 0 heads: every
    rank keeps all of it. `window_tokens` bounds what is kept, `read_tokens` what a row of a pass reads.
    `fp8_bytes_per_token` is one token in one layer of an FP8 cache, scales included where the engine stores them.
    `fixed_bytes_per_token`: the engine stores so much whatever the type of the cache; 0: the type decides.
    """

    reason: str = field(metadata=text(256, minimum_length=1))
    layer_count: int = field(metadata=whole(1, _LARGEST_COUNT))
    values_per_token: int = field(default=0, metadata=whole(0, 10**9))
    split_head_count: int = field(default=0, metadata=whole(0, _LARGEST_COUNT))
    window_tokens: int | None = field(default=None, metadata=optional(whole(1, 10**9)))
    state_bytes_per_request: int = field(default=0, metadata=whole(0, 10**12))
    read_tokens: int | None = field(default=None, metadata=optional(whole(1, 10**9)))
    fp8_bytes_per_token: int = field(default=0, metadata=whole(0, 10**9))
    fixed_bytes_per_token: int = field(default=0, metadata=whole(0, 10**9))


# The hash is kept: what depends on a model alone is computed once for a model.
@frozen(kw_only=True, cache_hash=True)
class Model(CrossChecked):
    """A model's facts. None: no source states it. Parameters: total is without MTP layers.

    0 heads: it has no attention, or no source states them; a vocabulary of 0: no source states it.
    The rules are checked where the catalogue reads a model; a client takes what a newer service knows.
    """

    model_id: str = field(metadata=CATALOG_ID)
    display_name: str = field(metadata=text(128, minimum_length=1))
    hidden_size: int = field(metadata=whole(1, _LARGEST_WIDTH))
    layer_count: int = field(metadata=whole(1, _LARGEST_COUNT))
    attention_head_count: int = field(metadata=whole(0, _LARGEST_COUNT))
    key_value_head_count: int = field(metadata=whole(0, _LARGEST_COUNT))
    vocabulary_size: int = field(metadata=whole(0, 10**8))
    expert_count: int = field(default=0, metadata=whole(0, _LARGEST_COUNT))
    activation_value_bytes: int = field(metadata=whole(1, 16))
    collectives: tuple[Collective, ...] = field(metadata=sequence(1, 64))
    total_parameters: int | None = field(default=None, metadata=_PARAMETERS)
    mtp_parameters: int | None = field(default=None, metadata=_PARAMETERS)
    active_parameters: int | None = field(default=None, metadata=_PARAMETERS)
    weight_bits_per_parameter: float | None = field(default=None, metadata=optional(real(64)))
    parameter_groups: tuple[ParameterGroup, ...] = field(default=(), metadata=sequence(0, 64))
    cache_groups: tuple[CacheGroup, ...] = field(default=(), metadata=sequence(0, 64))
    active_expert_count: int = field(default=0, metadata=whole(0, _LARGEST_COUNT))
    mtp_layer_count: int = field(default=0, metadata=whole(0, _LARGEST_COUNT))
    weight_format_source: WeightFormatSource = field(
        default=WeightFormatSource.UNSPECIFIED, metadata=member(WeightFormatSource)
    )
    unused_keys: tuple[str, ...] = field(default=(), metadata=_NOTES)
    undetermined: tuple[str, ...] = field(default=(), metadata=_NOTES)
    assumptions: tuple[str, ...] = field(default=(), metadata=_NOTES)
    sources: tuple[str, ...] = field(default=(), metadata=_NOTES)

    @property
    def all_reduce_count(self) -> int:
        """All-reduces of one pass."""
        return sum(c.count for c in self.collectives if c.kind is CollectiveKind.ALL_REDUCE)

    def cross_violations(self) -> Iterable[Violation]:
        """Active parameters are part of the total, and the payload of a row keeps byte counts within 64 bits."""
        total, active = self.total_parameters, self.active_parameters
        if total is not None and active is not None and active > total:
            yield Violation("active_parameters", f"{active} is above total_parameters, {total}")
        for scope in (RowScope.TOKEN, RowScope.LOGITS):
            values = sum(c.width * c.count for c in self.collectives if c.row_scope is scope)
            if values * self.activation_value_bytes > LARGEST_MESSAGE_BYTES_PER_ROW:
                yield Violation(
                    "collectives",
                    f"{values} values of {self.activation_value_bytes} bytes in each {scope.name} row are above"
                    f" {LARGEST_MESSAGE_BYTES_PER_ROW} bytes",
                )


@frozen(kw_only=True)
class Hardware:
    """One accelerator, checked like a model. `memory_bandwidth_bytes_per_second` is the data-sheet rate of a read."""

    hardware_id: str = field(metadata=CATALOG_ID)
    display_name: str = field(metadata=text(128, minimum_length=1))
    memory_bytes: int = field(metadata=whole(1, 10**15))
    memory_bandwidth_bytes_per_second: int = field(metadata=whole(1, 10**17))
    sources: tuple[str, ...] = field(default=(), metadata=_NOTES)


@frozen(kw_only=True)
class ModelRequest(Checked):
    """Names one model, to read it."""

    model: str = field(metadata=CATALOG_NAME)


@frozen(kw_only=True)
class ImportModelRequest(Checked, CrossChecked):
    """The contents of a Hugging Face `config.json`, to be stored as `model`, or only read.

    `display_name` empty: the name. With `validate_only` the name may be left out. `quantization_json`: the contents of
    the file beside it that says how the weights are quantised, where the config does not. `weight_bits_per_parameter`
    replaces what both say.
    """

    model: str = field(default="", metadata=OPTIONAL_CATALOG_ID)
    config_json: str = field(metadata=document(LARGEST_CONFIG_BYTES))
    display_name: str = field(default="", metadata=text(128))
    validate_only: bool = False
    quantization_json: str = field(default="", metadata=document(LARGEST_CONFIG_BYTES))
    weight_bits_per_parameter: float | None = field(default=None, metadata=optional(real(64)))

    def cross_violations(self) -> Iterable[Violation]:
        """There is something to read, and a name for what is to be stored."""
        if not self.config_json:
            yield Violation("config_json", "is missing")
        if not self.model and not self.validate_only:
            yield Violation("model", "is missing; without a name nothing is stored, so validate_only has to be set")


@frozen(kw_only=True)
class HardwareRequest(Checked):
    """Names one kind of hardware, to read it."""

    hardware: str = field(metadata=CATALOG_NAME)
