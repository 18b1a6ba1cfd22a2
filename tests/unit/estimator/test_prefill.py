"""Prefill answers: which parts are there, their ends, bases, effects and assumptions, and what is refused."""

import pytest

from estimator_service.core.prefill import estimate_prefill, logits_row_count
from linkbound.domain.errors import InvalidArgumentError
from linkbound.domain.estimate import Basis, Constraint, Effect
from linkbound.domain.link import Link
from linkbound.domain.prefill import PrefillRequest
from linkbound.domain.workload import PrefillWorkload
from tests.unit.estimator.models import small_model

# Two ranks: 60 bytes a token; 8 bit/s carry one byte a second.
SLOW = Link(line_rate_bits_per_second=8)
FAST = Link(line_rate_bits_per_second=80)


def workload(
    prompt_tokens: int = 100, request_count: int = 1, pass_tokens: int | None = None, size: int = 2
) -> PrefillWorkload:
    return PrefillWorkload(
        model="small",
        tensor_parallel_size=size,
        prompt_tokens=prompt_tokens,
        request_count=request_count,
        max_num_batched_tokens=pass_tokens,
    )


def test_bytes_and_network_time() -> None:
    answer = estimate_prefill(PrefillRequest(workload=workload(request_count=3), link=FAST), small_model())
    assert answer.all_reduce_count == 3
    assert answer.sent_bytes_per_prompt_token == 60
    assert answer.sent_bytes_per_rank == 60 * 300
    assert answer.counter_bytes_per_rank == round(60 * 300 * 1086 / 1024)
    assert answer.logits_gather_bytes_per_rank == 3 * 1024
    assert answer.network_seconds.lower == answer.network_seconds.upper == 60 * 300 / 10
    assert answer.network_seconds.lower_basis is answer.network_seconds.upper_basis is Basis.FORMULA
    assert answer.network_seconds.binding_constraint is Constraint.NETWORK_BANDWIDTH


def test_without_baseline_and_second_link_there_is_a_floor_only() -> None:
    answer = estimate_prefill(PrefillRequest(workload=workload(), link=FAST), small_model())
    assert answer.ttft_seconds.lower == 600
    assert answer.ttft_seconds.upper is None
    assert Effect.COMPUTE_TIME in answer.ttft_seconds.effects_left_out
    assert answer.to_link is None
    assert answer.extra_ttft_seconds is None
    assert answer.extra_ttft_fraction is None
    assert answer.network_share_fraction is None
    assert answer.nominal_extra_ttft_seconds is None
    assert answer.largest_pass is None


def test_without_baseline_the_floor_is_that_of_the_new_link() -> None:
    answer = estimate_prefill(PrefillRequest(workload=workload(), link=FAST, to_link=SLOW), small_model())
    assert answer.ttft_seconds.lower == 6000
    assert answer.ttft_seconds.upper is None


def test_a_baseline_alone_is_the_answer() -> None:
    request = PrefillRequest(workload=workload(), link=FAST, baseline_ttft_seconds=1000)
    answer = estimate_prefill(request, small_model())
    assert answer.ttft_seconds.lower == answer.ttft_seconds.upper == 1000
    assert answer.ttft_seconds.lower_basis is answer.ttft_seconds.upper_basis is Basis.MEASURED
    assert answer.network_share_fraction == 0.6


def test_a_slower_link_adds_from_nothing_to_the_bandwidth_term() -> None:
    request = PrefillRequest(workload=workload(), link=FAST, to_link=SLOW, baseline_ttft_seconds=1000)
    answer = estimate_prefill(request, small_model())
    assert answer.extra_ttft_seconds is not None
    assert answer.extra_ttft_fraction is not None
    assert answer.extra_ttft_seconds.lower == 0
    assert answer.extra_ttft_seconds.upper == pytest.approx(5400)
    assert answer.extra_ttft_fraction.lower == 0
    assert answer.extra_ttft_fraction.upper == pytest.approx(5.4)
    assert answer.ttft_seconds.lower == 6000  # below it the new link could not even carry the bytes
    assert answer.ttft_seconds.upper == pytest.approx(6400)
    assert answer.ttft_seconds.upper_basis is answer.extra_ttft_fraction.upper_basis is Basis.MIXED
    assert answer.extra_ttft_seconds.upper_basis is Basis.FORMULA


def test_a_faster_link_saves_up_to_the_bandwidth_term() -> None:
    request = PrefillRequest(workload=workload(), link=SLOW, to_link=FAST, baseline_ttft_seconds=8000)
    answer = estimate_prefill(request, small_model())
    assert answer.extra_ttft_seconds is not None
    assert answer.extra_ttft_seconds.lower == pytest.approx(-5400)
    assert answer.extra_ttft_seconds.upper == 0
    assert answer.ttft_seconds.lower == pytest.approx(2600)
    assert answer.ttft_seconds.upper == 8000


def test_measured_rates_make_measured_ends() -> None:
    measured = [Link(line_rate_bits_per_second=100, measured_bits_per_second=rate) for rate in (80, 8)]
    request = PrefillRequest(workload=workload(), link=measured[0], to_link=measured[1], baseline_ttft_seconds=1000)
    answer = estimate_prefill(request, small_model())
    assert answer.extra_ttft_seconds is not None
    assert answer.network_seconds.upper_basis is Basis.MEASURED
    assert answer.extra_ttft_seconds.upper_basis is answer.ttft_seconds.upper_basis is Basis.MEASURED
    assert Effect.PACKET_HEADERS not in answer.network_seconds.effects_left_out


def test_one_measured_rate_makes_mixed_ends() -> None:
    measured = Link(line_rate_bits_per_second=100, measured_bits_per_second=8)
    answer = estimate_prefill(PrefillRequest(workload=workload(), link=FAST, to_link=measured), small_model())
    assert answer.extra_ttft_seconds is not None
    assert answer.extra_ttft_seconds.upper_basis is Basis.MIXED
    assert Effect.PACKET_HEADERS in answer.extra_ttft_seconds.effects_left_out


def test_nominal_rates_are_answered_apart_where_they_differ() -> None:
    refined = Link(line_rate_bits_per_second=8, measured_bits_per_second=4)
    answer = estimate_prefill(PrefillRequest(workload=workload(), link=FAST, to_link=refined), small_model())
    assert answer.extra_ttft_seconds is not None
    assert answer.nominal_extra_ttft_seconds is not None
    assert answer.nominal_extra_ttft_seconds.upper == pytest.approx(5400)
    assert answer.nominal_extra_ttft_seconds.upper_basis is Basis.NOMINAL
    assert answer.extra_ttft_seconds.upper == pytest.approx(12_000 - 600)
    plain = estimate_prefill(PrefillRequest(workload=workload(), link=FAST, to_link=SLOW), small_model())
    assert plain.nominal_extra_ttft_seconds is None


def test_a_nominal_difference_needs_both_line_rates() -> None:
    measured = Link(measured_bits_per_second=8)
    for link, to_link in ((FAST, measured), (measured, FAST), (measured, measured)):
        answer = estimate_prefill(PrefillRequest(workload=workload(), link=link, to_link=to_link), small_model())
        assert answer.extra_ttft_seconds is not None
        assert answer.nominal_extra_ttft_seconds is None


@pytest.mark.parametrize("baseline_seconds", [None, 8000.0])
def test_the_logits_gather_is_counted_apart_and_named(baseline_seconds: float | None) -> None:
    request = PrefillRequest(workload=workload(), link=FAST, to_link=SLOW, baseline_ttft_seconds=baseline_seconds)
    answer = estimate_prefill(request, small_model())
    intervals = [answer.network_seconds, answer.ttft_seconds, answer.extra_ttft_seconds]
    if baseline_seconds is not None:
        intervals.append(answer.extra_ttft_fraction)
    for interval in intervals:
        assert interval is not None
        assert Effect.LOGITS_GATHER in interval.effects_left_out
    assert answer.logits_gather_bytes_per_rank == 1024
    assert answer.network_seconds.lower == 600  # the gather would add 102.4 s


def test_the_baseline_is_echoed_as_it_was_given() -> None:
    request = PrefillRequest(workload=workload(), link=FAST, baseline_ttft_seconds=1000.1)
    assert estimate_prefill(request, small_model()).baseline_ttft_seconds == 1000.1
    assert estimate_prefill(PrefillRequest(workload=workload(), link=FAST), small_model()).baseline_ttft_seconds is None


@pytest.mark.parametrize("request_count", [1, 2])
def test_several_prompts_leave_the_schedule_out(request_count: int) -> None:
    request = PrefillRequest(workload=workload(request_count=request_count), link=FAST, to_link=SLOW)
    answer = estimate_prefill(request, small_model())
    assert answer.extra_ttft_seconds is not None
    for estimate in (answer.extra_ttft_seconds, answer.ttft_seconds):
        assert (Effect.ENGINE_SCHEDULE in estimate.effects_left_out) is (request_count > 1)


def test_the_largest_pass_has_no_more_tokens_than_there_are() -> None:
    full = estimate_prefill(PrefillRequest(workload=workload(pass_tokens=40), link=FAST), small_model()).largest_pass
    short = estimate_prefill(PrefillRequest(workload=workload(pass_tokens=4000), link=FAST), small_model()).largest_pass
    assert full is not None
    assert short is not None
    assert (full.tokens, short.tokens) == (40, 100)
    assert full.message_bytes_per_all_reduce == full.sent_bytes_per_all_reduce == 800
    assert (full.ring_step_count, full.sent_bytes_per_ring_step) == (2, 400)
    assert full.send_seconds_per_all_reduce == 80


@pytest.mark.parametrize(
    ("prompt_tokens", "request_count", "pass_tokens", "rows"),
    [
        (8192, 1, 4096, 2),
        (8193, 1, 4096, 3),
        (1024, 4, 4096, 4),
        (3000, 2, 4096, 3),  # the second prompt starts in the first pass and ends in the second
        (100, 3, None, 3),
    ],
)
def test_logits_rows_of_passes(prompt_tokens: int, request_count: int, pass_tokens: int | None, rows: int) -> None:
    assert logits_row_count(workload(prompt_tokens, request_count, pass_tokens)) == rows


def test_assumptions_say_what_was_not_given() -> None:
    bare = " ".join(estimate_prefill(PrefillRequest(workload=workload(), link=FAST), small_model()).assumptions)
    for words in ("rings", "effective payload rate", "RoCE MTU of 1024 (Ethernet MTU 1500)", "one pass"):
        assert words in bare
    link = Link(line_rate_bits_per_second=80, roce_mtu_bytes=4096)
    request = PrefillRequest(workload=workload(request_count=2, pass_tokens=64), link=link)
    refined = " ".join(estimate_prefill(request, small_model()).assumptions)
    for words in ("effective payload rate", "RoCE MTU of 1024", "one pass"):
        assert words not in refined
    assert "first come, first served" in refined


def test_counter_bytes_use_the_given_mtu() -> None:
    link = Link(line_rate_bits_per_second=80, roce_mtu_bytes=4096)
    answer = estimate_prefill(PrefillRequest(workload=workload(), link=link), small_model())
    assert answer.counter_bytes_per_rank == round(6000 * 4158 / 4096)


def test_a_baseline_below_the_network_time_is_refused_with_both_numbers() -> None:
    request = PrefillRequest(workload=workload(), link=FAST, baseline_ttft_seconds=599.5)
    with pytest.raises(InvalidArgumentError) as raised:
        estimate_prefill(request, small_model())
    (violation,) = raised.value.field_violations
    assert violation.field == "baseline_ttft_seconds"
    assert "599.5 s" in violation.description
    assert "600.0 s" in violation.description


def test_every_violation_is_reported_at_once() -> None:
    request = PrefillRequest(workload=workload(size=3), link=FAST, baseline_ttft_seconds=1)
    with pytest.raises(InvalidArgumentError) as raised:
        estimate_prefill(request, small_model())
    assert [v.field for v in raised.value.field_violations] == [
        "workload.tensor_parallel_size",
        "baseline_ttft_seconds",
    ]
