"""Law 6 of `docs/invariants.md`: with every rate k times as high, every bandwidth time is one k-th."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkbound.domain.collective_estimate import CollectiveRequest
from linkbound.domain.decode import DecodeRequest
from linkbound.domain.estimate import Estimate
from linkbound.domain.layout_comparison import LayoutComparisonRequest
from linkbound.domain.link import Link
from linkbound.domain.link_comparison import LinkComparisonRequest
from linkbound.domain.planning import SlowestLinkRequest
from linkbound.domain.prefill import PrefillRequest
from linkbound.domain.training import TrainingStepRequest
from linkbound.domain.workload import PrefillWorkload
from tests.property.estimator_strategies import COLLECTIVE_REQUESTS, ESTIMATOR, PREFILL_WORKLOADS, TRAINING_REQUESTS
from tests.property.layout_strategies import comparison_requests, decode_requests, prefill_requests

FACTORS = st.integers(2, 1000)
RATES = st.integers(1, 10**12)
FLOAT = 1e-12


def bare(bits_per_second: int) -> Link:
    return Link(line_rate_bits_per_second=bits_per_second)


def divided(before: Estimate | None, after: Estimate | None, factor: float, rounding: float = 0.0) -> None:
    """Both ends of `after`, times `factor`, are those of `before`."""
    assert (before is None) == (after is None)
    if before is None or after is None:
        return
    assert after.lower * factor == pytest.approx(before.lower, rel=FLOAT, abs=rounding)
    assert (before.upper is None) == (after.upper is None)
    if before.upper is not None and after.upper is not None:
        assert after.upper * factor == pytest.approx(before.upper, rel=FLOAT, abs=rounding)


@given(prefill_requests(), st.tuples(RATES, RATES, RATES, RATES), FACTORS)
def test_prompts(request: PrefillRequest, rates: tuple[int, int, int, int], factor: int) -> None:
    def asked(scale: int) -> PrefillRequest:
        link, to_link, inner_link, of_one_node = (bare(rate * scale) for rate in rates)
        return PrefillRequest(
            workload=request.workload, link=link, to_link=to_link, inner_link=inner_link, rank_links=(of_one_node,)
        )

    before, after = (ESTIMATOR.estimate_prefill(asked(scale)) for scale in (1, factor))
    assert before.sent_bytes_per_rank == after.sent_bytes_per_rank
    divided(before.network_seconds, after.network_seconds, factor)
    divided(before.ttft_seconds, after.ttft_seconds, factor)
    # A difference of nearly equal times keeps the rounding of the times.
    rounding = FLOAT * (before.network_seconds.upper or 0) * max(1, rates[0] / rates[1])
    divided(before.extra_ttft_seconds, after.extra_ttft_seconds, factor, rounding)


@given(decode_requests(), RATES, RATES, FACTORS)
def test_passes_without_a_memory_rate(request: DecodeRequest, rate: int, inner_rate: int, factor: int) -> None:
    workload = attrs.evolve(request.workload, hardware="")
    before, after = (
        ESTIMATOR.estimate_decode(
            DecodeRequest(workload=workload, link=bare(rate * scale), inner_link=bare(inner_rate * scale))
        )
        for scale in (1, factor)
    )
    divided(before.network_seconds, after.network_seconds, factor)
    divided(before.pass_seconds, after.pass_seconds, factor)
    divided(after.traffic_bits_per_second, before.traffic_bits_per_second, factor)
    assert after.send_seconds_per_all_reduce * factor == pytest.approx(before.send_seconds_per_all_reduce, rel=FLOAT)


@given(COLLECTIVE_REQUESTS, RATES, FACTORS)
def test_one_collective(request: CollectiveRequest, rate: int, factor: int) -> None:
    before, after = (
        ESTIMATOR.estimate_collective(attrs.evolve(request, link=bare(rate * scale))) for scale in (1, factor)
    )
    divided(before.seconds, after.seconds, factor)
    divided(after.bus_bandwidth_bytes_per_second, before.bus_bandwidth_bytes_per_second, factor)


@given(TRAINING_REQUESTS, RATES, FACTORS)
def test_a_training_exchange(request: TrainingStepRequest, rate: int, factor: int) -> None:
    before, after = (
        ESTIMATOR.estimate_training_step(attrs.evolve(request, link=bare(rate * scale))) for scale in (1, factor)
    )
    divided(before.sync_seconds, after.sync_seconds, factor)


@given(prefill_requests(), st.tuples(RATES, RATES, RATES), FACTORS)
def test_a_comparison_of_links(request: PrefillRequest, rates: tuple[int, int, int], factor: int) -> None:
    def asked(scale: int) -> LinkComparisonRequest:
        old, new, inner = (bare(rate * scale) for rate in rates)
        return LinkComparisonRequest(prefill=request.workload, old_link=old, new_link=new, inner_link=inner)

    before, after = (ESTIMATOR.compare_links(asked(scale)) for scale in (1, factor))
    divided(before.old_network_seconds, after.old_network_seconds, factor)
    divided(before.new_network_seconds, after.new_network_seconds, factor)
    divided(before.speedup_ratio, after.speedup_ratio, 1)


@given(comparison_requests(), RATES, RATES, FACTORS)
def test_every_layout(request: LayoutComparisonRequest, rate: int, inner_rate: int, factor: int) -> None:
    workload = attrs.evolve(request.workload, hardware="")
    alone = attrs.evolve(request, workload=workload, collective_table=None)
    by_layout = [
        {
            one.layout: one
            for one in ESTIMATOR.compare_layouts(
                attrs.evolve(alone, link=bare(rate * scale), inner_link=bare(inner_rate * scale))
            ).layouts
        }
        for scale in (1, factor)
    ]
    for layout, before in by_layout[0].items():
        after = by_layout[1][layout]
        divided(before.network_seconds, after.network_seconds, factor)
        divided(before.pass_seconds, after.pass_seconds, factor)


@given(PREFILL_WORKLOADS, st.floats(1e-3, 1e3), st.floats(1.5, 1000))
def test_the_slowest_link_for_a_shorter_target(workload: PrefillWorkload, seconds: float, factor: float) -> None:
    """Without a baseline: a target of one k-th needs k times the rate."""
    before, after = (
        ESTIMATOR.find_slowest_link(
            SlowestLinkRequest(workload=workload, target_ttft_seconds=target)
        ).slowest_bits_per_second.lower
        for target in (seconds, seconds / factor)
    )
    assert after == pytest.approx(min(before * factor, 10**15), rel=FLOAT) or before == 10**15
