"""What the collectives of a pass put on the network, by row."""

import pytest

from estimator_service.core.inventory import (
    message_bytes_per_all_reduce,
    padded_vocabulary_size,
    sent_bytes_per_logits_row,
    sent_bytes_per_token,
)
from tests.unit.estimator.models import small_model


@pytest.mark.parametrize(("size", "padded"), [(1, 64), (64, 64), (65, 128), (154_880, 154_880), (50_257, 50_304)])
def test_vocabulary_is_padded_to_64(size: int, padded: int) -> None:
    assert padded_vocabulary_size(size) == padded


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
