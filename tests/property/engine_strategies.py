"""Engines, links and requests that laws of engine times are tried on."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from attrs import evolve
from hypothesis import strategies as st

from estimator_service.core.engine_times.estimate import estimate_schedule
from estimator_service.core.engine_times.fit import fit_engine
from estimator_service.core.links import resolve
from linkbound.domain.engine import BurstPoint, BurstTable, EngineCalibration, EnginePoint, EngineRequest
from linkbound.domain.estimate import Estimate
from linkbound.domain.link import Link
from linkbound.domain.measured_range import MeasuredRange
from linkbound.domain.schedule import ScheduleEstimate, ScheduleRequest, TtftEstimates
from tests.golden.engine_tables import measured_engine

STUDY = measured_engine("engine_study.toml")
LAYOUT = STUDY.seen.layout
TOLERANCE = 1e-9
GIGABIT = 10**9

RATES = st.integers(10 * GIGABIT, 400 * GIGABIT)
LINKS = (
    st.builds(Link, line_rate_bits_per_second=RATES)
    | st.builds(Link, measured_bits_per_second=RATES)
    | st.builds(Link, line_rate_bits_per_second=RATES, roce_mtu_bytes=st.sampled_from([256, 1024, 4096]))
    | st.builds(Link, line_rate_bits_per_second=RATES, pcie_function_count=st.integers(1, 2))
)


@st.composite
def burst_tables(draw: st.DrawFn) -> BurstTable:
    sizes = draw(st.lists(st.integers(10**4, 10**8), min_size=1, max_size=4, unique=True).map(sorted))
    points = []
    for size in sizes:
        least, largest = sorted(draw(st.tuples(RATES, RATES)))
        points.append(BurstPoint(message_bytes=size, least_bits_per_second=least, largest_bits_per_second=largest))
    return BurstTable(points=tuple(points), least_header_ratio=draw(st.none() | st.floats(1, 1.2)))


BURSTS = st.none() | burst_tables()
NO_RANGES = st.just(False)
TOKENS = {"prompt_tokens": st.integers(1, 20_000), "output_tokens": st.integers(1, 40)}
REQUESTS = st.lists(st.builds(EngineRequest, arrival_pass=st.integers(0, 12), **TOKENS), min_size=1, max_size=5).map(
    lambda them: tuple(sorted(them, key=lambda one: one.arrival_pass or 0))
)
TIMED_REQUESTS = st.lists(
    st.builds(EngineRequest, arrival_seconds=st.floats(0, 100), **TOKENS), min_size=1, max_size=5
).map(lambda them: tuple(sorted(them, key=lambda one: one.arrival_seconds or 0.0)))


SECONDS_PER_TOKEN = st.floats(0.5, 3)
"""Longer than the bytes of a pass take over any of the links, and of the prompts that others read meanwhile."""


@st.composite
def engines(draw: st.DrawFn, has_ranges: st.SearchStrategy[bool] = NO_RANGES) -> EngineCalibration:
    """The study's engine over another link: slower links need longer times, which these have in any case.

    Some have an output speed beside or in place of their TTFTs, and some hardly more time than their bytes take.
    """
    link = draw(LINKS)
    points = []
    for point in draw(st.lists(st.sampled_from(STUDY.seen.points), min_size=1, unique=True)):
        scatter = draw(st.floats(0.001, 0.3)) if draw(has_ranges) else None
        slower = near_bytes(point, link, draw(st.floats(1.001, 2))) if draw(st.booleans()) else point
        found = slower_point(slower, scatter, 1 if slower is not point else 20)
        if draw(st.booleans()):
            found = evolve(found, output_tokens_per_second=1 / draw(SECONDS_PER_TOKEN))
            if draw(st.booleans()):
                speed = found.output_tokens_per_second
                found = EnginePoint(label=found.label, requests=found.requests, output_tokens_per_second=speed)
        points.append(found)
    table = evolve(STUDY.seen, link=link, bursts=draw(BURSTS), points=tuple(points))
    return fit_engine(table, STUDY.model)


def near_bytes(point: EnginePoint, link: Link, factor: float) -> EnginePoint:
    """The same requests, with TTFTs of so many times what their bytes take."""
    share = factor * GIGABIT / resolve(link).effective_bits_per_second
    times = tuple(sorted(share * seconds for seconds in _bytes_seconds(point)))
    return EnginePoint(label=point.label, requests=point.requests, ttft_seconds=times)


@lru_cache
def _bytes_seconds(point: EnginePoint) -> tuple[float, ...]:
    """Of every request, over 1 Gb/s."""
    request = ScheduleRequest(
        requests=point.requests,
        layout=LAYOUT,
        link=Link(line_rate_bits_per_second=GIGABIT),
        scheduler=STUDY.seen.scheduler,
        model=STUDY.seen.model,
    )
    summary = estimate_schedule(request, STUDY.model).summary
    return tuple(one.ttft.ttft_seconds.lower for one in summary.requests if one.ttft is not None)


def slower_point(point: EnginePoint, scatter: float | None, factor: int = 20) -> EnginePoint:
    """A point of the study at so many times as long, with rounds that lie so far apart, as a share."""

    def slower(seconds: float | None) -> float | None:
        return None if seconds is None else factor * seconds

    def rounds(seconds: float | None) -> MeasuredRange | None:
        if seconds is None or scatter is None:
            return None
        return MeasuredRange(least=factor * seconds / (1 + scatter), largest=factor * seconds * (1 + scatter))

    ranges = [found for found in map(rounds, point.ttft_seconds) if found is not None]
    return EnginePoint(
        label=point.label,
        requests=point.requests,
        ttft_seconds=tuple(factor * seconds for seconds in point.ttft_seconds),
        last_ttft_seconds=slower(point.last_ttft_seconds),
        mean_ttft_seconds=slower(point.mean_ttft_seconds),
        ttft_range_seconds=tuple(ranges),
        last_ttft_range_seconds=rounds(point.last_ttft_seconds),
        mean_ttft_range_seconds=rounds(point.mean_ttft_seconds),
    )


def answered(engine: EngineCalibration, requests: tuple[EngineRequest, ...], **details: Any) -> ScheduleEstimate:
    request = ScheduleRequest(requests=requests, engine_table=engine.table, **details)
    return estimate_schedule(request, STUDY.model, engine)


def ttfts(found: ScheduleEstimate) -> list[TtftEstimates]:
    summary = found.summary
    answers = [*(one.ttft for one in summary.requests), summary.last_ttft, summary.mean_ttft]
    return [answer for answer in answers if answer is not None]


def expected(estimate: Estimate | None) -> float:
    assert estimate is not None
    assert estimate.expected is not None
    return estimate.expected


def upper(estimate: Estimate | None) -> float:
    assert estimate is not None
    assert estimate.upper is not None
    return estimate.upper


def close(first: float, second: float) -> bool:
    return abs(first - second) <= TOLERANCE * max(abs(first), abs(second), 1e-6)
