"""The collectives of a forward pass, counted in bytes of one row."""

from __future__ import annotations

from estimator_service.core.collectives import sent_bytes
from estimator_service.core.elementwise import ceil_quotient
from linkbound.domain.catalog import Model, RowScope

VOCABULARY_MULTIPLE = 64
"""vLLM pads the vocabulary to a multiple of this before it is cut over the ranks."""


def padded_vocabulary_size(vocabulary_size: int) -> int:
    """Vocabulary as the engine cuts it: V_p = 64 ceil(V / 64) (`docs/formulas.md`, Collectives of a pass)."""
    return VOCABULARY_MULTIPLE * ceil_quotient(vocabulary_size, VOCABULARY_MULTIPLE)


def message_bytes_per_all_reduce(model: Model, row_count: int) -> int:
    """Payload of one all-reduce of the residual stream: P = T h b (`docs/formulas.md`, Collectives of a pass)."""
    return row_count * model.hidden_size * model.activation_value_bytes


def sent_bytes_per_row(model: Model, rank_count: int, row_scope: RowScope) -> float:
    """Bytes one rank sends for each row of `row_scope`, over all collectives of a pass.

    s = sum of c r (N - 1) w b / N, c collectives of width w (`docs/formulas.md`, Collectives of a pass).
    """
    return sum(
        collective.count * sent_bytes(collective.kind, rank_count, collective.width * model.activation_value_bytes)
        for collective in model.collectives
        if collective.row_scope is row_scope
    )


def sent_bytes_per_token(model: Model, rank_count: int) -> float:
    """Bytes one rank sends for each token of a pass, logits apart (`docs/formulas.md`, Collectives of a pass)."""
    return sent_bytes_per_row(model, rank_count, RowScope.TOKEN)


def sent_bytes_per_logits_row(model: Model, rank_count: int) -> float:
    """Bytes one rank sends to gather the logits of one position (`docs/formulas.md`, Collectives of a pass)."""
    return sent_bytes_per_row(model, rank_count, RowScope.LOGITS)
