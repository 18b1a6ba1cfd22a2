"""Models and hardware as the estimator sees them."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from attrs import field, frozen

from linkbound.domain.collective import CollectiveKind
from linkbound.domain.errors import Violation
from linkbound.domain.names import CATALOG_ID, CATALOG_NAME
from linkbound.domain.rules import (
    Checked,
    CrossChecked,
    member,
    optional,
    real,
    sequence,
    text,
    whole,
)

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


@frozen(kw_only=True)
class Collective:
    """One kind of collective of a pass: `count` times, each with `width` values per row.

    UNKNOWN is what a client of an older version sees of a newer service.
    """

    kind: CollectiveKind = field(metadata=member(CollectiveKind, CollectiveKind.UNSPECIFIED))
    width: int = field(metadata=whole(1, _LARGEST_WIDTH))
    count: int = field(metadata=whole(1, _LARGEST_COUNT))
    row_scope: RowScope = field(metadata=member(RowScope, RowScope.UNSPECIFIED))
    reason: str = field(metadata=text(256, minimum_length=1))


@frozen(kw_only=True)
class Model(CrossChecked):
    """A model's facts. None: no source states it. Parameters: total is without MTP layers.

    The rules are checked where the catalogue reads a model; a client takes what a newer service knows.
    """

    model_id: str = field(metadata=CATALOG_ID)
    display_name: str = field(metadata=text(128, minimum_length=1))
    hidden_size: int = field(metadata=whole(1, _LARGEST_WIDTH))
    layer_count: int = field(metadata=whole(1, _LARGEST_COUNT))
    attention_head_count: int = field(metadata=whole(1, _LARGEST_COUNT))
    key_value_head_count: int = field(metadata=whole(1, _LARGEST_COUNT))
    vocabulary_size: int = field(metadata=whole(1, 10**8))
    expert_count: int = field(default=0, metadata=whole(0, _LARGEST_COUNT))
    activation_value_bytes: int = field(metadata=whole(1, 16))
    collectives: tuple[Collective, ...] = field(metadata=sequence(1, 64))
    total_parameters: int | None = field(default=None, metadata=_PARAMETERS)
    mtp_parameters: int | None = field(default=None, metadata=_PARAMETERS)
    active_parameters: int | None = field(default=None, metadata=_PARAMETERS)
    weight_bits_per_parameter: float | None = field(default=None, metadata=optional(real(64)))
    unused_keys: tuple[str, ...] = field(default=(), metadata=_NOTES)
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
class HardwareRequest(Checked):
    """Names one kind of hardware, to read it."""

    hardware: str = field(metadata=CATALOG_NAME)
