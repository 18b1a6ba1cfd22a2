"""Formats in which quantisers store weights, with their scales (`docs/formulas.md`, Parameters)."""

from __future__ import annotations

from estimator_service.architecture.facts import WeightFormat

FP8_BLOCK_SCALE_BITS = 32
"""One float32 for each block of a block-wise FP8 checkpoint (DeepSeek-V3)."""
NVFP4_GROUP_SIZE = 16
MX_GROUP_SIZE = 32
ONE_BYTE_SCALE_BITS = 8
"""E4M3 in NVFP4, E8M0 in the MX formats."""
MATRIX_SCALE_BYTES = 4
HALF_SCALE_BITS = 16


def fp8(block: tuple[int, int] | None, scale_bits: int = FP8_BLOCK_SCALE_BITS) -> WeightFormat:
    """FP8 with a scale for each block, or one for the matrix (`docs/formulas.md`, Parameters)."""
    if block is None:
        return WeightFormat(name="fp8", weight_bits=8, matrix_bytes=MATRIX_SCALE_BYTES)
    return WeightFormat(
        name="fp8_block", weight_bits=8, block_rows=block[0], block_columns=block[1], block_bits=scale_bits
    )


def fp8_channel() -> WeightFormat:
    """FP8 with a float32 for each output (`docs/formulas.md`, Parameters)."""
    return WeightFormat(name="fp8_channel", weight_bits=8, block_rows=1, block_bits=FP8_BLOCK_SCALE_BITS)


def nvfp4(group_size: int = NVFP4_GROUP_SIZE) -> WeightFormat:
    """FP4: a byte for 16 weights along the inputs, and a float32 for the matrix (`docs/formulas.md`, Parameters)."""
    return WeightFormat(
        name="nvfp4",
        weight_bits=4,
        block_rows=1,
        block_columns=group_size,
        block_bits=ONE_BYTE_SCALE_BITS,
        matrix_bytes=MATRIX_SCALE_BYTES,
    )


def mx(bits: int) -> WeightFormat:
    """MXFP4 or MXFP8: a byte for 32 weights along the inputs (`docs/formulas.md`, Parameters)."""
    return WeightFormat(
        name=f"mxfp{bits}",
        weight_bits=bits,
        block_rows=1,
        block_columns=MX_GROUP_SIZE,
        block_bits=ONE_BYTE_SCALE_BITS,
    )


def bits_and_bytes_4(*, doubled: bool) -> WeightFormat:
    """Bitsandbytes in 4 bits: a float32 for 64 weights, or a byte and a float32 for 256 such bytes.

    (`docs/formulas.md`, Parameters)
    """
    scale_bits = ONE_BYTE_SCALE_BITS + FP8_BLOCK_SCALE_BITS / 256 if doubled else FP8_BLOCK_SCALE_BITS
    return WeightFormat(name="bnb4", weight_bits=4, block_rows=1, block_columns=64, block_bits=scale_bits)


def bits_and_bytes() -> WeightFormat:
    """Bitsandbytes in 8 bits: a float32 for each output (`docs/formulas.md`, Parameters)."""
    return WeightFormat(name="bnb8", weight_bits=8, block_rows=1, block_bits=FP8_BLOCK_SCALE_BITS)


def grouped_integers(bits: int, group_size: int, *, zero_points: bool, column_bits: int = 0) -> WeightFormat:
    """Integers with a half-precision scale for each group along the inputs, and a packed zero point where there is one.

    `group_size` 0: one group for each output (`docs/formulas.md`, Parameters).
    """
    return WeightFormat(
        name=f"int{bits}" if not zero_points else f"int{bits}_zero",
        weight_bits=bits,
        block_rows=1,
        block_columns=group_size,
        block_bits=HALF_SCALE_BITS + (bits if zero_points else 0),
        column_bits=column_bits,
    )
