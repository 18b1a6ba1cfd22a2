"""Memory beside weights and caches, and how much of the memory an engine may use.

The figures here are EMPIRICAL: constants of the open-source estimator AIConfigurator (its memory rules for dense models
and mixtures of experts, and its description of an H100; commit 095f58a), chosen there to be on the safe side. They
depend on engine, version and kernels.
"""

from __future__ import annotations

from estimator_service.core.memory.shares import Share
from linkbound.domain.catalog import Hardware, Model
from linkbound.domain.layout import ParallelLayout

DENSE_ACTIVATION_WIDTHS = ((8, 5.0), (4, 5.0), (2, 6.5), (1, 11.0))
"""EMPIRICAL: from how many tensor-parallel ranks on, how many hidden vectors of each token a pass holds at its peak."""
MOE_ACTIVATION_RATIO = 2.0
"""EMPIRICAL: a mixture of experts holds twice of that."""
SMALLEST_ACTIVATION_BYTES = 70 * 2**20
"""EMPIRICAL."""
PAIR_BUFFER_BYTES = 358_612_992
"""EMPIRICAL: what NCCL allocates on each of two GPUs."""
GROUP_BUFFER_BYTES = 411_041_792
"""EMPIRICAL: the same on each of four or eight GPUs; taken for larger groups too."""
RUNTIME_BYTES = 3_758_096_384
"""EMPIRICAL: 3.5 GiB for driver, framework, graphs and workspaces."""

_PAIR = 2


def activation_bytes(model: Model, layout: ParallelLayout, token_count: int) -> int:
    """Peak of one pass of `token_count` tokens: max(70 MiB, c(N) T h b) (`docs/formulas.md`, Memory).

    c falls from 11 hidden vectors a token on one rank to 5 on four or more, and is twice that for a mixture of experts.
    """
    size = layout.tensor_parallel_size
    widths = next(width for from_size, width in DENSE_ACTIVATION_WIDTHS if size >= from_size)
    if model.expert_count:
        widths *= MOE_ACTIVATION_RATIO
    at_peak = round(widths * token_count * model.hidden_size * model.activation_value_bytes)
    return max(SMALLEST_ACTIVATION_BYTES, at_peak)


def communication_buffer_bytes(layout: ParallelLayout) -> int:
    """Buffers of the collective library on one rank, 0 for a rank alone (`docs/formulas.md`, Memory)."""
    if layout.rank_count == 1:
        return 0
    return PAIR_BUFFER_BYTES if layout.rank_count == _PAIR else GROUP_BUFFER_BYTES


def runtime_bytes() -> int:
    """Driver, framework and graphs of one rank (`docs/formulas.md`, Memory)."""
    return RUNTIME_BYTES


def usable_bytes(hardware: Hardware, gpu_memory_utilization_fraction: float) -> int:
    """What the engine may use: U = u x memory (`docs/formulas.md`, Memory)."""
    numerator, denominator = gpu_memory_utilization_fraction.as_integer_ratio()
    return Share(numerator=numerator, denominator=denominator).at_least_of(hardware.memory_bytes)
