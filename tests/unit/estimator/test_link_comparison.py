"""Comparing links: the interval of the change, the speed-up, and what an emulated link says."""

import attrs
import pytest

from estimator_service.core.link_comparison import compare_links
from linkbound.domain.errors import InvalidArgumentError
from linkbound.domain.estimate import Basis, Effect
from linkbound.domain.link import Link
from linkbound.domain.link_comparison import EmulatedLink, LinkComparisonRequest
from linkbound.domain.workload import DecodeWorkload, PrefillWorkload
from tests.unit.estimator.models import small_model

# 100 tokens of 60 bytes over 80 bit/s: 600 s; over 40 bit/s: 1,200 s; over 50 bit/s: 960 s.
OLD = Link(line_rate_bits_per_second=80)
NEW = Link(line_rate_bits_per_second=40)
EMULATED = Link(line_rate_bits_per_second=50)
PREFILL = PrefillWorkload(model="small", tensor_parallel_size=2, prompt_tokens=100)
DECODE = DecodeWorkload(model="small", tensor_parallel_size=2)
REQUEST = LinkComparisonRequest(prefill=PREFILL, old_link=OLD, new_link=NEW)
DECODE_REQUEST = LinkComparisonRequest(decode=DECODE, old_link=OLD, new_link=NEW)


def test_without_baseline_the_network_parts_are_compared() -> None:
    answer = compare_links(REQUEST, small_model())
    assert answer.sent_bytes_per_rank == 6000
    assert answer.old_network_seconds.lower == answer.old_network_seconds.upper == 600
    assert answer.new_network_seconds.lower == answer.new_network_seconds.upper == 1200
    assert answer.extra_seconds.lower == 0
    assert answer.extra_seconds.upper == pytest.approx(600)
    assert answer.extra_fraction is None
    assert answer.speedup_ratio.lower == answer.speedup_ratio.upper == 0.5
    assert answer.emulation is None


def test_with_a_baseline_the_whole_is_compared() -> None:
    answer = compare_links(attrs.evolve(REQUEST, baseline_seconds=2400.0), small_model())
    assert answer.extra_fraction is not None
    assert answer.extra_fraction.upper == pytest.approx(0.25)
    assert answer.speedup_ratio.lower == pytest.approx(2400 / 3000)
    assert answer.speedup_ratio.upper == 1
    assert answer.speedup_ratio.upper_basis is Basis.MIXED


def test_a_faster_link_speeds_up_from_nothing_to_the_network_part() -> None:
    request = LinkComparisonRequest(prefill=PREFILL, old_link=NEW, new_link=OLD, baseline_seconds=2400)
    answer = compare_links(request, small_model())
    assert answer.speedup_ratio.lower == 1
    assert answer.speedup_ratio.upper == pytest.approx(2400 / 1800)


def test_one_rank_gains_nothing() -> None:
    request = attrs.evolve(REQUEST, prefill=attrs.evolve(PREFILL, tensor_parallel_size=1))
    answer = compare_links(request, small_model())
    assert answer.sent_bytes_per_rank == 0
    assert answer.speedup_ratio.lower == answer.speedup_ratio.upper == 1


def test_a_decode_is_compared_by_its_pass() -> None:
    answer = compare_links(DECODE_REQUEST, small_model())
    assert answer.sent_bytes_per_rank == 60 + 1024
    assert answer.extra_seconds.upper == pytest.approx(1084 / 10)


def emulated(counter_bytes: int | None = None, new_link: Link = NEW) -> LinkComparisonRequest:
    emulation = EmulatedLink(link=EMULATED, ttft_seconds=2700, counter_bytes_per_prompt_token=counter_bytes)
    return attrs.evolve(REQUEST, new_link=new_link, baseline_seconds=2400.0, emulation=emulation)


def test_a_measured_increase_is_carried_over_with_the_bytes_of_the_formula() -> None:
    answer = compare_links(emulated(), small_model())
    assert answer.emulation is not None
    assert answer.emulation.measured_extra_seconds == 300
    assert answer.emulation.measured_extra_fraction == 0.125
    assert answer.emulation.real_link_extra_seconds.lower == 0
    assert answer.emulation.real_link_extra_seconds.upper == pytest.approx(240)
    assert answer.emulation.real_link_extra_fraction.lower == 0.125
    assert answer.emulation.real_link_extra_fraction.upper == pytest.approx(0.225)
    assert any("no measured bytes" in sentence for sentence in answer.assumptions)


def test_measured_bytes_replace_those_of_the_formula() -> None:
    answer = compare_links(emulated(counter_bytes=66), small_model())
    assert answer.emulation is not None
    assert answer.emulation.real_link_extra_seconds.upper == pytest.approx(264)
    assert not any("no measured bytes" in sentence for sentence in answer.assumptions)
    assert any("include headers" in sentence for sentence in answer.assumptions)


def test_a_real_link_above_the_emulated_one_saves() -> None:
    answer = compare_links(emulated(new_link=Link(line_rate_bits_per_second=60)), small_model())
    assert answer.emulation is not None
    assert answer.emulation.real_link_extra_seconds.lower == pytest.approx(-160)
    assert answer.emulation.real_link_extra_seconds.upper == 0
    assert answer.emulation.real_link_extra_fraction.upper == 0.125


@pytest.mark.parametrize("request_of_a_kind", [REQUEST, DECODE_REQUEST])
def test_a_baseline_below_the_network_time_is_refused(request_of_a_kind: LinkComparisonRequest) -> None:
    request = attrs.evolve(request_of_a_kind, baseline_seconds=100.0)
    with pytest.raises(InvalidArgumentError) as raised:
        compare_links(request, small_model())
    assert [violation.field for violation in raised.value.field_violations] == ["baseline_seconds"]


@pytest.mark.parametrize(
    ("request_of_odd_size", "field"),
    [
        (attrs.evolve(REQUEST, prefill=attrs.evolve(PREFILL, tensor_parallel_size=3)), "prefill"),
        (attrs.evolve(DECODE_REQUEST, decode=attrs.evolve(DECODE, tensor_parallel_size=3)), "decode"),
    ],
)
def test_a_size_that_does_not_fit_is_refused(request_of_odd_size: LinkComparisonRequest, field: str) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        compare_links(request_of_odd_size, small_model())
    assert [violation.field for violation in raised.value.field_violations] == [f"{field}.tensor_parallel_size"]


def test_a_measured_ttft_below_what_the_emulated_link_needs_is_refused() -> None:
    """6,000 bytes take 960 s over 50 bit/s."""
    request = emulated()
    assert request.emulation is not None
    impossible = attrs.evolve(request, emulation=attrs.evolve(request.emulation, ttft_seconds=959.5))
    with pytest.raises(InvalidArgumentError) as raised:
        compare_links(impossible, small_model())
    (violation,) = raised.value.field_violations
    assert violation.field == "emulation.ttft_seconds"
    assert "959.5 s is below 960.0 s" in violation.description
    compare_links(attrs.evolve(request, emulation=attrs.evolve(request.emulation, ttft_seconds=960.0)), small_model())


def test_the_logits_gather_is_left_out_of_a_prefill_and_counted_in_a_decode() -> None:
    for request, is_left_out in ((emulated(), True), (DECODE_REQUEST, False)):
        answer = compare_links(request, small_model())
        intervals = [answer.old_network_seconds, answer.new_network_seconds, answer.extra_seconds, answer.speedup_ratio]
        if answer.emulation is not None:
            intervals += [answer.emulation.real_link_extra_seconds, answer.emulation.real_link_extra_fraction]
        assert {Effect.LOGITS_GATHER in interval.effects_left_out for interval in intervals} == {is_left_out}
