"""The largest models and layouts: whole numbers of 64 bits, or a refusal."""

import math

import attrs
import pytest

from estimator_service.core.decode import estimate_decode
from estimator_service.core.layouts.comparison import compare_layouts
from estimator_service.core.prefill import estimate_prefill
from linkbound.domain.catalog import LARGEST_MESSAGE_BYTES_PER_ROW, Model
from linkbound.domain.cluster_workload import ClusterWorkload
from linkbound.domain.decode import DecodeRequest
from linkbound.domain.errors import InvalidArgumentError
from linkbound.domain.layout import ExpertParallelism
from linkbound.domain.layout_comparison import LayoutComparisonRequest
from linkbound.domain.link import Link
from linkbound.domain.prefill import PrefillRequest
from linkbound.domain.workload import DecodeWorkload, PrefillWorkload
from tests.property.estimator_strategies import parts_of
from tests.unit.estimator.layout_models import mixture

SLOWEST = Link(line_rate_bits_per_second=1, roce_mtu_bytes=256)
EXCHANGES = [ExpertParallelism.ALL_GATHER, ExpertParallelism.ALL_TO_ALL]


def largest_mixture() -> Model:
    """A row of the largest payload that a model may have, all of it in MoE blocks, with the most experts."""
    small = mixture(2, 0)
    width = LARGEST_MESSAGE_BYTES_PER_ROW // 4 // 16
    rows = tuple(
        attrs.evolve(row, width=width if row.part.name == "ROUTED_EXPERTS" else 1, count=2) for row in small.collectives
    )
    return attrs.evolve(
        small,
        hidden_size=width,
        activation_value_bytes=16,
        collectives=rows,
        expert_count=10**5,
        active_expert_count=10**5,
    )


def within_64_bits(answer: object) -> bool:
    return all(
        math.isfinite(part) if isinstance(part, float) else abs(part) < 2**63
        for part in parts_of(answer)
        if isinstance(part, int | float)
    )


@pytest.mark.parametrize("exchange", EXCHANGES)
@pytest.mark.parametrize("tokens", [1, 10**9])
def test_prefill(exchange: ExpertParallelism, tokens: int) -> None:
    workload = PrefillWorkload(
        model="decoder",
        tensor_parallel_size=64,
        data_parallel_size=1024,
        expert_parallelism=exchange,
        prompt_tokens=tokens,
        request_count=100,
    )
    request = PrefillRequest(workload=workload, link=SLOWEST)
    try:
        answer = estimate_prefill(request, largest_mixture())
    except InvalidArgumentError as error:
        assert [violation.field for violation in error.field_violations] == ["workload.prompt_tokens"]
        assert tokens > 1
    else:
        assert within_64_bits(answer)


@pytest.mark.parametrize("exchange", EXCHANGES)
@pytest.mark.parametrize("requests", [1, 10**5])
def test_decode(exchange: ExpertParallelism, requests: int) -> None:
    workload = DecodeWorkload(
        model="decoder",
        tensor_parallel_size=1,
        data_parallel_size=2,
        expert_parallelism=exchange,
        request_count=requests,
        draft_token_count=64,
    )
    request = DecodeRequest(workload=workload, link=SLOWEST)
    try:
        answer = estimate_decode(request, largest_mixture(), None)
    except InvalidArgumentError as error:
        assert [violation.field for violation in error.field_violations] == ["workload.request_count"]
        assert requests > 1
    else:
        assert within_64_bits(answer)


def test_a_comparison_says_which_layouts_are_too_much() -> None:
    request = LayoutComparisonRequest(
        workload=ClusterWorkload(model="decoder", node_count=2, prompt_tokens=10**9, request_count=100),
        link=SLOWEST,
        output_tokens=10**6,
    )
    answer = compare_layouts(request, largest_mixture(), None)
    assert within_64_bits(answer)
    too_much = [one for one in answer.layouts if any("bytes in all are above" in reason for reason in one.reasons)]
    assert [one.layout.expert_parallelism for one in too_much] == [ExpertParallelism.ALL_TO_ALL]
