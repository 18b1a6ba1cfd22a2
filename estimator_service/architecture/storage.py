"""Bytes of stored weights: each matrix in its format, with its scales (`docs/formulas.md`, Parameters)."""

from __future__ import annotations

from collections.abc import Mapping

from estimator_service.architecture.facts import Architecture, LayerGroup, StoredModules, WeightFormat
from estimator_service.architecture.weight import Weight
from estimator_service.core.elementwise import ceil_quotient
from linkbound.domain.link import BITS_PER_BYTE


def format_bytes(weight_format: WeightFormat, rows: int, columns: int) -> float:
    """Bytes of one matrix: q R C / 8 and the scales of its blocks, columns and of itself.

    B = (q R C + s_b ceil(R / R_b) ceil(C / C_b) + s_c C) / 8 + s_m (`docs/formulas.md`, Parameters).
    """
    block_rows, block_columns = weight_format.block_rows or rows, weight_format.block_columns or columns
    block_count = ceil_quotient(rows, block_rows) * ceil_quotient(columns, block_columns)
    bits = weight_format.weight_bits * rows * columns + weight_format.block_bits * block_count
    return (bits + weight_format.column_bits * columns) / BITS_PER_BYTE + weight_format.matrix_bytes


def weight_bytes(weight: Weight, weight_format: WeightFormat | None, value_bytes: int) -> float:
    """Bytes of all copies of `weight`; None: stored as the model runs (`docs/formulas.md`, Parameters)."""
    if weight_format is None or not weight.rows:
        return weight.parameter_count * value_bytes
    matrix_bytes = format_bytes(weight_format, weight.rows, weight.columns)
    return weight.copies * (matrix_bytes + weight.values * value_bytes)


def formats_of_group(architecture: Architecture, group: LayerGroup) -> Mapping[str, WeightFormat]:
    """The format of each module of `group` that has one of its own (`docs/formulas.md`, Parameters)."""
    return _by_module(architecture, group.stored)


def formats_around(architecture: Architecture) -> Mapping[str, WeightFormat]:
    """The format of each module outside the layers that has one of its own (`docs/formulas.md`, Parameters)."""
    return _by_module(architecture, architecture.stored_around)


def _by_module(architecture: Architecture, stored: tuple[StoredModules, ...]) -> Mapping[str, WeightFormat]:
    formats = {weight_format.name: weight_format for weight_format in architecture.formats}
    return {module: formats[entry.weight_format] for entry in stored for module in entry.modules}
