"""The floor under a decode speed over another link."""

import pytest

from linkbound import EstimatorClient, FailedPreconditionError, Metric
from linkbound.demo.predictions import slowed_decode_value
from linkbound.domain.decode import DecodeEstimate
from linkbound.domain.estimate import Basis

SENT_BYTES_PER_PASS = 157 * 107_520 + 5 * 154_880 * 2 * 7 // 8
"""GLM-5.3 on TP8 with 5 rows: 157 all-reduces of 107,520 bytes and a gather of 5 x 154,880 x 2 x 7/8."""
FLOOR_SECONDS = 40e9 * 4.5 / 8 / 8 / 273e9
"""40 billion active parameters at 4.5 bits over 8 ranks, read at 273 GB/s."""


def decode(link: str, to_link: str | None) -> DecodeEstimate:
    with EstimatorClient() as estimator:
        return estimator.estimate_decode(
            model="glm-5.3",
            tensor_parallel_size=8,
            draft_token_count=4,
            hardware="dgx-spark",
            link=link,
            to_link=to_link,
        )


def test_a_slower_link_costs_at_most_the_bytes_of_a_pass() -> None:
    value = slowed_decode_value("P2", decode("200g", "109g"), 21.1)
    extra_seconds = SENT_BYTES_PER_PASS * 8 * (1 / 109e9 - 1 / 200e9)
    assert value.estimate is not None
    assert value.estimate.lower == pytest.approx(21.1 * FLOOR_SECONDS / (FLOOR_SECONDS + extra_seconds), rel=1e-6)
    assert value.estimate.upper is None
    assert value.estimate.lower_basis is Basis.MIXED
    assert value.metric is Metric.DECODE_TOKENS_PER_SECOND


def test_a_faster_link_does_not_lower_the_floor() -> None:
    value = slowed_decode_value("P2", decode("109g", "200g"), 20.6)
    assert value.estimate is not None
    assert value.estimate.lower == 20.6


def test_without_a_link_to_change_to_there_is_nothing_to_say() -> None:
    with pytest.raises(FailedPreconditionError, match="no difference between links"):
        slowed_decode_value("P2", decode("200g", None), 21.1)
