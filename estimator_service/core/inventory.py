"""The collectives of a forward pass: derived from a decoder's structure, counted in bytes of one row."""

from __future__ import annotations

from attrs import field, frozen

from estimator_service.core.collectives import sent_bytes
from estimator_service.core.elementwise import ceil_quotient
from linkbound.domain.catalog import Collective, Model, RowScope
from linkbound.domain.collective import CollectiveKind
from linkbound.domain.rules import Checked, whole

VOCABULARY_MULTIPLE = 64
"""vLLM pads the vocabulary to a multiple of this before it is cut over the ranks."""

_BLOCK_COUNT = whole(0, 10**5)


@frozen(kw_only=True)
class DecoderStructure(Checked):
    """The blocks of a decoder that end in a sum over the ranks, each with a residual connection of its own.

    An MoE block adds its shared experts to the routed ones before the sum, so it counts once.
    """

    hidden_size: int = field(metadata=whole(1, 10**6))
    vocabulary_size: int = field(metadata=whole(1, 10**6))
    attention_block_count: int = field(metadata=_BLOCK_COUNT)
    dense_mlp_block_count: int = field(default=0, metadata=_BLOCK_COUNT)
    moe_block_count: int = field(default=0, metadata=_BLOCK_COUNT)


def padded_vocabulary_size(vocabulary_size: int) -> int:
    """Vocabulary as the engine cuts it: V_p = 64 ceil(V / 64) (`docs/formulas.md`, Collectives of a pass)."""
    return VOCABULARY_MULTIPLE * ceil_quotient(vocabulary_size, VOCABULARY_MULTIPLE)


def collectives_of(structure: DecoderStructure) -> tuple[Collective, ...]:
    """Every collective of one pass under tensor parallelism (`docs/formulas.md`, Collectives of a pass).

    One all-reduce of width h for the embedding and for each block, one all-gather of the padded vocabulary for the
    logits. With attention and a feed-forward block in each of L layers these are 2 L + 1 all-reduces.
    """
    all_reduces = (
        (1, "vocabulary-parallel embedding: each rank looks up its share of the tokens"),
        (structure.attention_block_count, "attention output: each rank holds the sum over its own heads"),
        (structure.dense_mlp_block_count, "dense MLP: each rank holds the sum over its slice of the inner width"),
        (
            structure.moe_block_count,
            "mixture of experts, shared experts added first: each rank holds a slice of every expert",
        ),
    )
    rows = [
        Collective(
            kind=CollectiveKind.ALL_REDUCE,
            width=structure.hidden_size,
            count=count,
            row_scope=RowScope.TOKEN,
            reason=reason,
        )
        for count, reason in all_reduces
        if count
    ]
    logits = Collective(
        kind=CollectiveKind.ALL_GATHER,
        width=padded_vocabulary_size(structure.vocabulary_size),
        count=1,
        row_scope=RowScope.LOGITS,
        reason=f"LM head: each rank holds the logits of its slice of the vocabulary, padded to {VOCABULARY_MULTIPLE}",
    )
    return (*rows, logits)


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
