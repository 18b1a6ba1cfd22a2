"""The slowest link is the inverse of the estimate: at the rate that it finds, TTFT is the target."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from linkbound.domain.estimate import Estimate
from linkbound.domain.link import LARGEST_RATE_BITS_PER_SECOND, Link
from linkbound.domain.planning import SlowestLinkRequest, Verdict
from linkbound.domain.prefill import PrefillRequest
from linkbound.domain.workload import PrefillWorkload
from tests.property.estimator_strategies import ESTIMATOR, LINKS, PREFILL_WORKLOADS
from tests.property.test_estimator_answers import check

# A rate is a whole number of bits per second: the slower it is, the coarser.
SMALLEST_RATE = 10**6
CLOSE = 1e-5
# Every answer holds a verdict for each link with a name, so it takes as long as thirty estimates.
SLOW = settings(max_examples=40)


REAL_LINKS = st.builds(Link, line_rate_bits_per_second=st.integers(10**9, 10**12))
SPLIT_WORKLOADS = st.builds(
    attrs.evolve,
    PREFILL_WORKLOADS,
    tensor_parallel_size=st.sampled_from([2, 4]),
    pipeline_parallel_size=st.sampled_from([1, 2, 4]),
    prompt_tokens=st.integers(1000, 10**6),
    request_count=st.integers(1, 100),
)


@st.composite
def targets(
    draw: st.DrawFn,
    links: st.SearchStrategy[Link] = LINKS,
    workloads: st.SearchStrategy[PrefillWorkload] = PREFILL_WORKLOADS,
    smallest_factor: float = 0.1,
) -> SlowestLinkRequest:
    """A baseline that its link allows, and a target from below its arithmetic to far above it."""
    workload, link = draw(workloads), draw(links)
    needed = ESTIMATOR.estimate_prefill(PrefillRequest(workload=workload, link=link)).network_seconds.lower
    # A target has a largest value.
    baseline_seconds = min(max(needed, 1e-3), 1e6) * draw(st.floats(1, 10))
    assume(baseline_seconds >= needed)
    return SlowestLinkRequest(
        workload=workload,
        target_ttft_seconds=baseline_seconds * draw(st.floats(smallest_factor, 10)),
        baseline_link=link,
        baseline_ttft_seconds=baseline_seconds,
    )


def ttft_over(request: SlowestLinkRequest, bits_per_second: float) -> Estimate:
    """TTFT after the baseline's link is replaced by one of this rate."""
    assert request.baseline_link is not None
    return ESTIMATOR.estimate_prefill(
        PrefillRequest(
            workload=request.workload,
            link=request.baseline_link,
            to_link=Link(line_rate_bits_per_second=round(bits_per_second)),
            baseline_ttft_seconds=request.baseline_ttft_seconds,
        )
    ).ttft_seconds


@SLOW
@given(targets(REAL_LINKS, SPLIT_WORKLOADS, smallest_factor=1.0))
def test_the_rate_that_is_enough_hits_the_target(request: SlowestLinkRequest) -> None:
    enough = ESTIMATOR.find_slowest_link(request).slowest_bits_per_second.upper
    assert enough is not None
    assume(enough >= SMALLEST_RATE)
    assert ttft_over(request, enough).upper == pytest.approx(request.target_ttft_seconds, rel=CLOSE)


@SLOW
@given(targets(REAL_LINKS, SPLIT_WORKLOADS))
def test_the_rate_that_is_necessary_hits_the_target(request: SlowestLinkRequest) -> None:
    least = ESTIMATOR.find_slowest_link(request).slowest_bits_per_second.lower
    assume(SMALLEST_RATE <= least < LARGEST_RATE_BITS_PER_SECOND)
    assert ttft_over(request, least).lower == pytest.approx(request.target_ttft_seconds, rel=CLOSE)


@SLOW
@given(targets())
def test_a_hopeless_target_is_not_kept_by_the_fastest_link(request: SlowestLinkRequest) -> None:
    answer = ESTIMATOR.find_slowest_link(request)
    if answer.slowest_bits_per_second.lower < LARGEST_RATE_BITS_PER_SECOND:
        return
    assert ttft_over(request, LARGEST_RATE_BITS_PER_SECOND).lower >= request.target_ttft_seconds * (1 - CLOSE)


@SLOW
@given(targets())
def test_verdicts_follow_the_interval(request: SlowestLinkRequest) -> None:
    answer = ESTIMATOR.find_slowest_link(request)
    check(answer)
    interval = answer.slowest_bits_per_second
    for entry in answer.presets:
        rate = entry.link.effective_bits_per_second
        if entry.verdict is Verdict.YES:
            assert interval.upper is not None or interval.lower == 0
            assert interval.upper is None or rate >= interval.upper * (1 - CLOSE)
        elif entry.verdict is Verdict.NO:
            assert rate <= interval.lower * (1 + CLOSE)
        else:
            assert rate >= interval.lower * (1 - CLOSE)


@SLOW
@given(targets(), st.floats(1, 10))
def test_a_looser_target_never_needs_a_faster_link(request: SlowestLinkRequest, factor: float) -> None:
    strict = ESTIMATOR.find_slowest_link(request).slowest_bits_per_second
    looser = attrs.evolve(request, target_ttft_seconds=request.target_ttft_seconds * factor)
    loose = ESTIMATOR.find_slowest_link(looser).slowest_bits_per_second
    assert loose.lower <= strict.lower * (1 + 1e-12)
    assert strict.upper is None or (loose.upper is not None and loose.upper <= strict.upper * (1 + 1e-12))


@SLOW
@given(SPLIT_WORKLOADS, st.floats(1e-3, 1e3))
def test_without_a_baseline_the_necessary_rate_carries_the_bytes_in_time(
    workload: PrefillWorkload, target_seconds: float
) -> None:
    answer = ESTIMATOR.find_slowest_link(SlowestLinkRequest(workload=workload, target_ttft_seconds=target_seconds))
    check(answer)
    least = answer.slowest_bits_per_second.lower
    assert answer.slowest_bits_per_second.upper is None
    assume(SMALLEST_RATE <= least < LARGEST_RATE_BITS_PER_SECOND)
    link = Link(line_rate_bits_per_second=round(least))
    network = ESTIMATOR.estimate_prefill(PrefillRequest(workload=workload, link=link)).network_seconds
    assert network.lower == pytest.approx(target_seconds, rel=CLOSE)
