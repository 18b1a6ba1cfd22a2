"""Whether a model can be cut over a number of ranks. Memory and the inner widths of blocks are not part of it."""

from __future__ import annotations

from collections.abc import Iterator

from estimator_service.core.inventory import VOCABULARY_MULTIPLE, padded_vocabulary_size
from linkbound.domain.catalog import Model
from linkbound.domain.errors import Violation


def infeasible_reasons(model: Model, rank_count: int) -> tuple[str, ...]:
    """Why `model` cannot be cut over `rank_count` ranks, one sentence each (`docs/formulas.md`, Feasibility).

    N divides the attention heads; N divides the KV heads, or is a multiple of them and each is held by several ranks;
    N divides the padded vocabulary. Every expert is sliced, so the number of experts does not matter.
    """
    return tuple(_reasons(model, rank_count))


def size_violations(model: Model, rank_count: int, field: str) -> Iterator[Violation]:
    """The violation of `field`, a tensor-parallel size that does not fit `model` (`docs/formulas.md`, Feasibility)."""
    reasons = infeasible_reasons(model, rank_count)
    if reasons:
        yield Violation(field, "; ".join((f"{model.model_id} cannot be cut over {rank_count} ranks", *reasons)))


def _reasons(model: Model, rank_count: int) -> Iterator[str]:
    heads = model.attention_head_count
    if heads % rank_count:
        yield f"{rank_count} ranks do not divide {heads} attention heads"
    kv_heads = model.key_value_head_count
    if kv_heads % rank_count and rank_count % kv_heads:
        yield f"{rank_count} ranks neither divide {kv_heads} key-value heads nor are a multiple of them"
    padded = padded_vocabulary_size(model.vocabulary_size)
    if padded % rank_count:
        yield (
            f"{rank_count} ranks do not divide {padded}, the vocabulary of {model.vocabulary_size} padded to a multiple"
            f" of {VOCABULARY_MULTIPLE}"
        )
