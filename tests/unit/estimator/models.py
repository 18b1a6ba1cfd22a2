"""A small model that no catalogue ships, easy to count by hand."""

from linkbound.domain.catalog import Collective, Model, RowScope
from linkbound.domain.collective import CollectiveKind


def small_model(*, heads: int = 8, kv_heads: int = 4, vocabulary: int = 1000) -> Model:
    """10 values of 2 bytes a row, three all-reduces, a gather of 1,024 logits."""
    return Model(
        model_id="small",
        display_name="Small",
        hidden_size=10,
        layer_count=1,
        attention_head_count=heads,
        key_value_head_count=kv_heads,
        vocabulary_size=vocabulary,
        activation_value_bytes=2,
        collectives=(
            Collective(
                kind=CollectiveKind.ALL_REDUCE, width=10, count=3, row_scope=RowScope.TOKEN, reason="sums of one layer"
            ),
            Collective(kind=CollectiveKind.ALL_GATHER, width=1024, count=1, row_scope=RowScope.LOGITS, reason="logits"),
        ),
        active_parameters=1000,
        weight_bits_per_parameter=8.0,
    )
