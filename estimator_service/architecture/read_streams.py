"""Gemma 3n: several residual streams that are predicted and corrected (AltUp), and a branch of low rank (LAuReL)."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from estimator_service.architecture.fields import Fields
from estimator_service.architecture.read_layers import Layer


def with_streams(layers: Sequence[Layer], config: Fields, hidden_size: int) -> tuple[Layer, ...]:
    """`layers`, each with what reads from and writes to the streams, and its branch of low rank.

    A layer predicts every stream from coefficients that a router makes and corrects them: h and s values of the
    router, s^3 + s^2 of the coefficients, a norm and a scale; the branch is two matrices of rank r and a norm.
    """
    streams, rank = _stream_count(config), config.whole("laurel_rank", minimum=0) or 0
    config.use("altup_active_idx", "altup_coef_clip", "altup_correct_scale", "activation_sparsity_pattern")
    more = streams * hidden_size + streams**3 + streams**2 + 2 * hidden_size if streams > 1 else 0
    if rank:
        more += 2 * hidden_size * rank + hidden_size
    if not more:
        return tuple(layers)
    return tuple(evolve(layer, other_parameters=layer.other_parameters + more) for layer in layers)


def stream_projections(config: Fields, hidden_size: int) -> int:
    """A square matrix into and out of each stream but the first."""
    return 2 * (_stream_count(config) - 1) * hidden_size * hidden_size


def _stream_count(config: Fields) -> int:
    return config.whole("altup_num_inputs", maximum=64) or 1
