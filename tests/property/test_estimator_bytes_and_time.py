"""Relations that bytes and times keep: monotone, proportional, additive, symmetric."""

from fractions import Fraction

import attrs
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from estimator_service.core.collectives import ring_step_count, sent_bytes
from estimator_service.core.inventory import sent_bytes_per_token
from estimator_service.core.links import resolve
from estimator_service.core.prefill import logits_row_count
from linkbound.domain.catalog import Model
from linkbound.domain.collective import CollectiveKind
from linkbound.domain.decode import DecodeRequest
from linkbound.domain.estimate import Estimate
from linkbound.domain.link import Link
from linkbound.domain.link_comparison import LinkComparisonRequest
from linkbound.domain.prefill import PrefillRequest
from linkbound.domain.tp_projection import TpProjectionRequest
from linkbound.domain.workload import DecodeWorkload, PrefillWorkload
from tests.property.estimator_strategies import (
    DECODE_REQUESTS,
    ESTIMATOR,
    KINDS,
    LINKS,
    MODELS,
    PREFILL_WORKLOADS,
    RATES,
    SIZES,
    decode_workloads,
    prefill_requests,
)

CLOSE = 1e-12
ANY_MODEL = st.sampled_from(MODELS)


def upper(estimate: Estimate | None) -> float:
    assert estimate is not None
    assert estimate.upper is not None
    return estimate.upper


def bare(bits_per_second: int) -> Link:
    return Link(line_rate_bits_per_second=bits_per_second)


@given(KINDS, st.integers(1, 65_536), st.integers(0, 10**15), st.integers(0, 10**15))
def test_more_payload_never_sends_less(kind: CollectiveKind, rank_count: int, first: int, second: int) -> None:
    small, large = sorted((first, second))
    assert sent_bytes(kind, rank_count, small) <= sent_bytes(kind, rank_count, large)


@given(KINDS, st.integers(2, 65_536), st.integers(1, 10**15))
def test_a_rank_sends_a_share_of_the_payload_in_each_step(
    kind: CollectiveKind, rank_count: int, message_bytes: int
) -> None:
    share = Fraction(message_bytes, rank_count)
    exact = share * ring_step_count(kind, rank_count)
    assert sent_bytes(kind, rank_count, message_bytes) == pytest.approx(float(exact), rel=CLOSE)
    assert sent_bytes(kind, rank_count, message_bytes) < 2 * message_bytes


@given(ANY_MODEL)
def test_tp8_sends_seven_sixths_of_tp4(model: Model) -> None:
    assert sent_bytes_per_token(model, 8) * 6 == sent_bytes_per_token(model, 4) * 7
    assert sent_bytes_per_token(model, 4) * 2 == sent_bytes_per_token(model, 2) * 3


@given(PREFILL_WORKLOADS, LINKS, LINKS)
def test_a_single_rank_sends_nothing(workload: PrefillWorkload, link: Link, to_link: Link) -> None:
    alone = attrs.evolve(workload, tensor_parallel_size=1)
    answer = ESTIMATOR.estimate_prefill(PrefillRequest(workload=alone, link=link, to_link=to_link))
    assert answer.sent_bytes_per_rank == answer.counter_bytes_per_rank == answer.logits_gather_bytes_per_rank == 0
    assert answer.network_seconds.lower == upper(answer.network_seconds) == 0
    assert upper(answer.extra_ttft_seconds) == 0
    if answer.largest_pass is not None:
        assert answer.largest_pass.sent_bytes_per_all_reduce == 0
        assert answer.largest_pass.sent_bytes_per_ring_step == answer.largest_pass.ring_step_count == 0


@given(decode_workloads(), LINKS, LINKS)
def test_a_single_rank_sends_nothing_while_it_generates(workload: DecodeWorkload, link: Link, to_link: Link) -> None:
    alone = attrs.evolve(workload, tensor_parallel_size=1)
    answer = ESTIMATOR.estimate_decode(DecodeRequest(workload=alone, link=link, to_link=to_link))
    assert answer.sent_bytes_per_pass == 0
    assert upper(answer.traffic_bits_per_second) == upper(answer.extra_pass_seconds) == 0


@given(PREFILL_WORKLOADS, RATES, RATES)
def test_more_bandwidth_is_never_slower(workload: PrefillWorkload, first: int, second: int) -> None:
    slow, fast = sorted((first, second))
    slow_answer = ESTIMATOR.estimate_prefill(PrefillRequest(workload=workload, link=bare(slow)))
    fast_answer = ESTIMATOR.estimate_prefill(PrefillRequest(workload=workload, link=bare(fast)))
    assert fast_answer.network_seconds.lower <= slow_answer.network_seconds.lower


@given(PREFILL_WORKLOADS, LINKS, st.integers(1, 10**6))
def test_more_tokens_never_take_less(workload: PrefillWorkload, link: Link, added_tokens: int) -> None:
    longer = attrs.evolve(workload, prompt_tokens=workload.prompt_tokens + added_tokens, request_count=1)
    shorter = attrs.evolve(workload, request_count=1)
    answers = [ESTIMATOR.estimate_prefill(PrefillRequest(workload=w, link=link)) for w in (shorter, longer)]
    assert answers[0].sent_bytes_per_rank <= answers[1].sent_bytes_per_rank
    assert answers[0].network_seconds.lower <= answers[1].network_seconds.lower
    assert answers[0].logits_gather_bytes_per_rank <= answers[1].logits_gather_bytes_per_rank


@given(DECODE_REQUESTS, st.integers(1, 64))
def test_more_requests_never_make_a_pass_shorter(request: DecodeRequest, added_requests: int) -> None:
    fewer = attrs.evolve(request.workload, request_count=1)
    more = attrs.evolve(request.workload, request_count=1 + added_requests)
    answers = [ESTIMATOR.estimate_decode(attrs.evolve(request, workload=w)) for w in (fewer, more)]
    assert answers[0].sent_bytes_per_pass <= answers[1].sent_bytes_per_pass
    assert answers[0].pass_seconds.lower <= answers[1].pass_seconds.lower


@given(PREFILL_WORKLOADS, st.integers(1, 10**12), st.integers(1, 10**12), st.integers(2, 1000))
def test_scaling_all_rates_divides_every_time(workload: PrefillWorkload, old: int, new: int, factor: int) -> None:
    plain = ESTIMATOR.estimate_prefill(PrefillRequest(workload=workload, link=bare(old), to_link=bare(new)))
    scaled = ESTIMATOR.estimate_prefill(
        PrefillRequest(workload=workload, link=bare(old * factor), to_link=bare(new * factor))
    )
    assert scaled.network_seconds.lower * factor == pytest.approx(plain.network_seconds.lower, rel=CLOSE)
    assert plain.extra_ttft_seconds is not None
    assert scaled.extra_ttft_seconds is not None
    rounding_seconds = max(plain.network_seconds.lower, plain.ttft_seconds.lower) * CLOSE
    for plain_end, scaled_end in (
        (plain.extra_ttft_seconds.lower, scaled.extra_ttft_seconds.lower),
        (upper(plain.extra_ttft_seconds), upper(scaled.extra_ttft_seconds)),
    ):
        assert scaled_end * factor == pytest.approx(plain_end, rel=1e-9, abs=rounding_seconds)


@given(PREFILL_WORKLOADS, RATES, RATES)
def test_a_slower_link_adds_at_most_the_bandwidth_term(workload: PrefillWorkload, first: int, second: int) -> None:
    new_rate, old_rate = sorted((first, second))
    answer = ESTIMATOR.estimate_prefill(PrefillRequest(workload=workload, link=bare(old_rate), to_link=bare(new_rate)))
    term = answer.sent_bytes_per_rank * 8 * (Fraction(1, new_rate) - Fraction(1, old_rate))
    assert answer.extra_ttft_seconds is not None
    assert answer.extra_ttft_seconds.lower == 0
    rounding_seconds = CLOSE * answer.ttft_seconds.lower
    assert upper(answer.extra_ttft_seconds) == pytest.approx(float(term), rel=1e-9, abs=rounding_seconds)


@given(PREFILL_WORKLOADS, LINKS, LINKS)
def test_there_and_back_are_opposite(workload: PrefillWorkload, first: Link, second: Link) -> None:
    there = ESTIMATOR.estimate_prefill(PrefillRequest(workload=workload, link=first, to_link=second))
    back = ESTIMATOR.estimate_prefill(PrefillRequest(workload=workload, link=second, to_link=first))
    assert there.extra_ttft_seconds is not None
    assert back.extra_ttft_seconds is not None
    assert there.extra_ttft_seconds.lower == -upper(back.extra_ttft_seconds)
    assert upper(there.extra_ttft_seconds) == -back.extra_ttft_seconds.lower


@given(prefill_requests())
def test_a_comparison_answers_the_same_difference_as_a_prefill(request: PrefillRequest) -> None:
    assume(request.to_link is not None)
    assert request.to_link is not None
    prefill = ESTIMATOR.estimate_prefill(request)
    comparison = ESTIMATOR.compare_links(
        LinkComparisonRequest(
            prefill=request.workload,
            old_link=request.link,
            new_link=request.to_link,
            baseline_seconds=request.baseline_ttft_seconds,
        )
    )
    assert comparison.sent_bytes_per_rank == prefill.sent_bytes_per_rank
    assert comparison.old_network_seconds == prefill.network_seconds
    assert comparison.extra_seconds == prefill.extra_ttft_seconds
    assert comparison.extra_fraction == prefill.extra_ttft_fraction


@given(decode_workloads(), LINKS, LINKS)
def test_a_comparison_answers_the_same_difference_as_a_decode(
    workload: DecodeWorkload, link: Link, to_link: Link
) -> None:
    decode = ESTIMATOR.estimate_decode(DecodeRequest(workload=workload, link=link, to_link=to_link))
    comparison = ESTIMATOR.compare_links(LinkComparisonRequest(decode=workload, old_link=link, new_link=to_link))
    assert comparison.sent_bytes_per_rank == decode.sent_bytes_per_pass
    assert comparison.extra_seconds == decode.extra_pass_seconds


@given(PREFILL_WORKLOADS, LINKS, st.integers(1, 4096), st.floats(1, 10), st.floats(0, 1))
def test_a_projected_ttft_holds_every_overlap(
    workload: PrefillWorkload, link: Link, size: int, factor: float, hidden_share: float
) -> None:
    """Whatever share of the transfers was hidden at the measured size, and is at the other one, nothing or all."""
    assume(size != workload.tensor_parallel_size)
    network = ESTIMATOR.estimate_prefill(PrefillRequest(workload=workload, link=link)).network_seconds.lower
    baseline_seconds = max(network * factor, 1e-6)
    assume(baseline_seconds <= 1e9)
    (projection,) = ESTIMATOR.project_tp_sizes(
        TpProjectionRequest(
            workload=workload,
            baseline_ttft_seconds=baseline_seconds,
            link=link,
            to_link=link,
            tensor_parallel_sizes=(size,),
        )
    ).projections
    transfer = projection.sent_bytes_per_rank * 8 / resolve(link).effective_bits_per_second
    arithmetic = (baseline_seconds - network * (1 - hidden_share)) * workload.tensor_parallel_size / size
    # Whole bytes are answered, and fractions of one counted.
    rounding_seconds = 8 / resolve(link).effective_bits_per_second + CLOSE * (
        transfer + baseline_seconds * workload.tensor_parallel_size
    )
    no_overlap, full_overlap = transfer + arithmetic, max(transfer, arithmetic)
    assert projection.ttft_seconds.lower <= full_overlap + rounding_seconds
    assert no_overlap - rounding_seconds <= upper(projection.ttft_seconds)


@given(PREFILL_WORKLOADS, LINKS, LINKS)
def test_a_nominal_difference_is_answered_where_both_line_rates_are_known_and_one_does_not_count(
    workload: PrefillWorkload, link: Link, to_link: Link
) -> None:
    answer = ESTIMATOR.estimate_prefill(PrefillRequest(workload=workload, link=link, to_link=to_link))
    assert answer.to_link is not None
    known = link.line_rate_bits_per_second is not None and to_link.line_rate_bits_per_second is not None
    resolved = (answer.link, answer.to_link)
    other = any(end.effective_bits_per_second != end.link.line_rate_bits_per_second for end in resolved)
    assert (answer.nominal_extra_ttft_seconds is not None) == (known and other)


@given(DECODE_REQUESTS)
def test_a_pass_is_the_sum_of_its_collectives(request: DecodeRequest) -> None:
    answer = ESTIMATOR.estimate_decode(request)
    all_reduces = answer.all_reduce_count * answer.sent_bytes_per_all_reduce
    # Each part is rounded to whole bytes by itself.
    rounding_bytes = answer.all_reduce_count + 1
    total = all_reduces + answer.logits_gather_bytes_per_rank
    assert abs(answer.sent_bytes_per_pass - total) <= rounding_bytes


@given(PREFILL_WORKLOADS, LINKS)
def test_all_prompts_are_the_sum_of_single_ones(workload: PrefillWorkload, link: Link) -> None:
    together = ESTIMATOR.estimate_prefill(PrefillRequest(workload=workload, link=link))
    single = ESTIMATOR.estimate_prefill(
        PrefillRequest(workload=attrs.evolve(workload, request_count=1), link=link),
    )
    count = workload.request_count
    assert abs(together.sent_bytes_per_rank - count * single.sent_bytes_per_rank) <= count
    assert together.network_seconds.lower == pytest.approx(count * single.network_seconds.lower, rel=CLOSE)


@given(st.integers(1, 40), st.integers(1, 12), st.integers(1, 60))
def test_logits_rows_are_those_of_passes_filled_one_by_one(
    prompt_tokens: int, request_count: int, pass_tokens: int
) -> None:
    workload = PrefillWorkload(
        model="glm-5.3",
        tensor_parallel_size=8,
        prompt_tokens=prompt_tokens,
        request_count=request_count,
        max_num_batched_tokens=pass_tokens,
    )
    remaining = [prompt_tokens] * request_count
    rows = 0
    while any(remaining):
        budget = pass_tokens
        for index, tokens in enumerate(remaining):
            taken = min(tokens, budget)
            remaining[index] -= taken
            budget -= taken
            rows += taken > 0
    assert logits_row_count(workload) == rows


@given(SIZES, st.integers(2, 4096), RATES)
def test_a_faster_link_means_the_same_bytes(size: int, prompt_tokens: int, rate: int) -> None:
    assume(rate != 1)
    workload = PrefillWorkload(model="qwen3-32b", tensor_parallel_size=size, prompt_tokens=prompt_tokens)
    slow = ESTIMATOR.estimate_prefill(PrefillRequest(workload=workload, link=bare(1)))
    fast = ESTIMATOR.estimate_prefill(PrefillRequest(workload=workload, link=bare(rate)))
    assert slow.sent_bytes_per_rank == fast.sent_bytes_per_rank
    assert slow.counter_bytes_per_rank == fast.counter_bytes_per_rank
