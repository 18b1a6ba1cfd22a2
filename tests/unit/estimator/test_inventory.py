"""The collectives of a pass follow from the blocks of a decoder, each with its reason."""

import pytest

from estimator_service.core.inventory import (
    DecoderStructure,
    collectives_of,
    message_bytes_per_all_reduce,
    padded_vocabulary_size,
    sent_bytes_per_logits_row,
    sent_bytes_per_token,
)
from linkbound.domain.catalog import RowScope
from linkbound.domain.collective import CollectiveKind
from linkbound.domain.errors import InvalidArgumentError
from tests.unit.estimator.models import small_model


@pytest.mark.parametrize(("size", "padded"), [(1, 64), (64, 64), (65, 128), (154_880, 154_880), (50_257, 50_304)])
def test_vocabulary_is_padded_to_64(size: int, padded: int) -> None:
    assert padded_vocabulary_size(size) == padded


def test_a_mixed_decoder_sums_once_per_block_and_once_for_the_embedding() -> None:
    rows = collectives_of(
        DecoderStructure(
            hidden_size=6144,
            vocabulary_size=1000,
            attention_block_count=78,
            dense_mlp_block_count=3,
            moe_block_count=75,
        )
    )
    sums = [row for row in rows if row.kind is CollectiveKind.ALL_REDUCE]
    assert [row.count for row in sums] == [1, 78, 3, 75]
    assert {row.width for row in sums} == {6144}
    assert {row.row_scope for row in sums} == {RowScope.TOKEN}
    (gather,) = [row for row in rows if row.kind is CollectiveKind.ALL_GATHER]
    assert (gather.width, gather.count, gather.row_scope) == (1024, 1, RowScope.LOGITS)
    assert len({row.reason for row in rows}) == len(rows)


def test_attention_blocks_that_are_left_out_send_nothing() -> None:
    """A pruned decoder with 49 of 80 attention blocks has 130 sums, not 161."""
    rows = collectives_of(
        DecoderStructure(hidden_size=8192, vocabulary_size=128_256, attention_block_count=49, dense_mlp_block_count=80)
    )
    assert sum(row.count for row in rows if row.kind is CollectiveKind.ALL_REDUCE) == 130


def test_blocks_that_a_decoder_does_not_have_are_no_rows() -> None:
    rows = collectives_of(DecoderStructure(hidden_size=8, vocabulary_size=64, attention_block_count=2))
    assert [row.count for row in rows] == [1, 2, 1]


def test_a_structure_is_checked() -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        DecoderStructure(hidden_size=0, vocabulary_size=64, attention_block_count=-1)
    assert [violation.field for violation in raised.value.field_violations] == ["hidden_size", "attention_block_count"]


def test_bytes_of_rows() -> None:
    model = small_model()
    assert message_bytes_per_all_reduce(model, 7) == 7 * 10 * 2
    # Two ranks send the payload once for a sum, half of it for a gather.
    assert sent_bytes_per_token(model, 2) == 3 * 20
    assert sent_bytes_per_logits_row(model, 2) == 1024
    # Four ranks: 1.5 times, and three quarters.
    assert sent_bytes_per_token(model, 4) == 3 * 30
    assert sent_bytes_per_logits_row(model, 4) == 1536
    assert sent_bytes_per_token(model, 1) == sent_bytes_per_logits_row(model, 1) == 0
