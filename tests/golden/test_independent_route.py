"""The study's figures by another route: a ring that really runs, and arithmetic in exact fractions."""

from fractions import Fraction

import pytest

from estimator_service.service import default_estimator
from linkbound.domain.collective import CollectiveKind
from linkbound.domain.collective_estimate import CollectiveRequest
from linkbound.domain.link import Link
from linkbound.domain.prefill import PrefillRequest
from linkbound.domain.training import TrainingStepRequest
from linkbound.domain.workload import PrefillWorkload
from tests.golden.ring import ring_all_reduce

GIGABIT = 10**9
# 4,096 tokens of 6,144 values of 2 bytes; 78 layers with two sums each, and the embedding.
BLOCK_BYTES = 4096 * 6144 * 2
SUMS_PER_PASS = sum([1, *[1 + 1 for _layer in range(78)]])


@pytest.mark.parametrize("rank_count", [2, 3, 4, 5, 8, 16])
def test_a_ring_that_runs_sends_what_the_estimator_says(rank_count: int) -> None:
    run = ring_all_reduce(rank_count, BLOCK_BYTES)
    answer = default_estimator().estimate_collective(
        CollectiveRequest(
            kind=CollectiveKind.ALL_REDUCE,
            rank_count=rank_count,
            message_bytes=BLOCK_BYTES,
            link=Link(line_rate_bits_per_second=200 * GIGABIT),
        )
    )
    assert {round(sent) for sent in run.sent_bytes_by_rank} == {answer.sent_bytes_per_rank}
    assert run.step_count == answer.ring_step_count


@pytest.mark.parametrize("kind", [CollectiveKind.REDUCE_SCATTER, CollectiveKind.ALL_GATHER])
@pytest.mark.parametrize("rank_count", [2, 3, 8])
def test_each_half_of_the_ring_is_a_collective_of_its_own(kind: CollectiveKind, rank_count: int) -> None:
    run = ring_all_reduce(rank_count, BLOCK_BYTES)
    halves = {
        CollectiveKind.REDUCE_SCATTER: run.reduce_step_count,
        CollectiveKind.ALL_GATHER: run.step_count - run.reduce_step_count,
    }
    answer = default_estimator().estimate_collective(
        CollectiveRequest(
            kind=kind,
            rank_count=rank_count,
            message_bytes=BLOCK_BYTES,
            link=Link(line_rate_bits_per_second=200 * GIGABIT),
        )
    )
    assert answer.ring_step_count == halves[kind]
    assert answer.sent_bytes_per_rank == round(run.sent_bytes_by_rank[0] * halves[kind] / run.step_count)


@pytest.mark.parametrize("size", [2, 4, 8, 16])
@pytest.mark.parametrize("new_gigabits", [109, 100, 50])
def test_prefill_bytes_and_bound_in_exact_fractions(size: int, new_gigabits: int) -> None:
    prompt_tokens = 8192
    sent = ring_all_reduce(size, BLOCK_BYTES).sent_bytes_by_rank[0] * SUMS_PER_PASS * Fraction(prompt_tokens, 4096)
    bound = sent * 8 * (Fraction(1, new_gigabits * GIGABIT) - Fraction(1, 200 * GIGABIT))
    answer = default_estimator().estimate_prefill(
        PrefillRequest(
            workload=PrefillWorkload(model="glm-5.3", tensor_parallel_size=size, prompt_tokens=prompt_tokens),
            link=Link(line_rate_bits_per_second=200 * GIGABIT),
            to_link=Link(line_rate_bits_per_second=new_gigabits * GIGABIT),
        )
    )
    assert answer.sent_bytes_per_rank == sent
    assert answer.extra_ttft_seconds is not None
    assert answer.extra_ttft_seconds.upper == pytest.approx(float(bound), rel=1e-14)


@pytest.mark.parametrize("rank_count", [2, 3, 4])
def test_training_step_in_exact_fractions(rank_count: int) -> None:
    gradient_bytes, bytes_per_second, compute_seconds = 15_231_233_024, 1_180_000_000, 2.289
    sync = ring_all_reduce(rank_count, gradient_bytes).sent_bytes_by_rank[0] / bytes_per_second
    answer = default_estimator().estimate_training_step(
        TrainingStepRequest(
            gradient_bytes=gradient_bytes,
            rank_count=rank_count,
            link=Link(line_rate_bits_per_second=bytes_per_second * 8),
            compute_step_seconds=compute_seconds,
        )
    )
    assert answer.sync_seconds.lower == answer.sync_seconds.upper == pytest.approx(float(sync), rel=1e-14)
    assert answer.step_seconds.lower == pytest.approx(max(float(sync), compute_seconds), rel=1e-14)
    assert answer.step_seconds.upper == pytest.approx(float(sync) + compute_seconds, rel=1e-14)
