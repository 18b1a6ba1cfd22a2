"""Laws of engine times: what no rates, bursts, points or requests may break."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from estimator_service.core.engine_times.clock import LinkClock
from estimator_service.core.engine_times.fit import fit_engine
from estimator_service.core.engine_times.network import path_over, unwatched_ratio
from estimator_service.core.layouts.load import RowCounts
from estimator_service.core.layouts.rows import stage_kinds
from linkbound.domain.engine import BurstTable, EngineCalibration, EngineRequest, EngineTable
from linkbound.domain.link import Link
from linkbound.domain.schedule import TtftEstimates
from tests.property.engine_strategies import (
    BURSTS,
    GIGABIT,
    LAYOUT,
    LINKS,
    RATES,
    REQUESTS,
    STUDY,
    TIMED_REQUESTS,
    TOLERANCE,
    answered,
    close,
    engines,
    expected,
    ttfts,
    upper,
)


@given(LINKS, BURSTS, st.lists(st.integers(1, 20_000), min_size=2, max_size=2).map(sorted))
def test_transfers_are_never_faster_than_the_wire_and_do_not_fall_with_rows(
    link: Link, bursts: BurstTable | None, rows: list[int]
) -> None:
    path = path_over(link, bursts, None, LAYOUT)
    clock = LinkClock(stage_kinds(STUDY.model, LAYOUT), path)
    few, many = (clock.seconds(RowCounts(group_tokens=row, any_tokens=row, logits_rows=1)) for row in rows)
    wire = Fraction(157 * 6144 * 2 * 7 * 8, 4) * rows[0] / path.fabric.outer.effective_bits_per_second
    assert few.lower >= float(wire) * (1 - TOLERANCE)
    for one in (few, many):
        assert one.lower <= (one.expected or one.lower) <= (one.upper or 0)
    assert few.lower <= many.lower
    assert (few.expected or 0) <= (many.expected or 0) * (1 + TOLERANCE)
    assert (few.upper or 0) <= (many.upper or 0) * (1 + TOLERANCE)


@given(engines(), REQUESTS | TIMED_REQUESTS, LINKS, BURSTS)
def test_no_ttft_is_before_its_bytes_and_ends_are_in_order(
    engine: EngineCalibration, requests: tuple[EngineRequest, ...], link: Link, bursts: BurstTable | None
) -> None:
    for answer in ttfts(answered(engine, requests, to_link=link, to_bursts=bursts)):
        seconds = answer.calibrated_ttft_seconds
        if seconds is None:
            continue
        assert seconds.lower >= answer.ttft_seconds.lower * (1 - TOLERANCE)
        for one in (seconds, answer.calibrated_extra_ttft_seconds):
            assert one is not None
            assert one.lower <= expected(one)
            assert one.upper is None or expected(one) <= one.upper


@given(engines(), REQUESTS, RATES, BURSTS, st.integers(1, 20), st.integers(1, 20))
def test_a_slower_link_costs_no_less_than_a_faster_one_and_at_least_nothing(
    engine: EngineCalibration,
    requests: tuple[EngineRequest, ...],
    rate: int,
    bursts: BurstTable | None,
    slower: int,
    slowest: int,
) -> None:
    """Slower in every reading of the rate of a link that nobody watched."""
    old = path_over(engine.table.link, engine.table.bursts, None, LAYOUT)
    new = path_over(Link(measured_bits_per_second=rate), bursts, None, LAYOUT)
    own = old.rates.full_bits_per_second
    if not old.rates.are_known:
        own /= unwatched_ratio(old, new)
    rates = [int(min(rate, own)) // slower, int(min(rate, own)) // slower // slowest]
    found = [answered(engine, requests, to_link=Link(measured_bits_per_second=one), to_bursts=bursts) for one in rates]
    for near, far in zip(*map(ttfts, found), strict=True):
        first, second = near.calibrated_extra_ttft_seconds, far.calibrated_extra_ttft_seconds
        if first is None or second is None:
            continue
        assert first.lower >= 0
        assert first.lower <= second.lower * (1 + TOLERANCE)
        assert expected(first) <= expected(second) * (1 + TOLERANCE)
        assert upper(first) <= upper(second) * (1 + TOLERANCE)


@given(engines(), REQUESTS, RATES)
def test_without_bursts_over_the_new_link_a_change_adds_at_most_its_bandwidth_term(
    engine: EngineCalibration, requests: tuple[EngineRequest, ...], rate: int
) -> None:
    plain = fit_engine(evolve(engine.table, bursts=None), STUDY.model)
    for answer in ttfts(answered(plain, requests, to_link=Link(measured_bits_per_second=rate))):
        if answer.calibrated_extra_ttft_seconds is not None:
            least, most = answer.calibrated_extra_ttft_seconds.lower, upper(answer.calibrated_extra_ttft_seconds)
            assert answer.extra_ttft_seconds is not None
            assert close(least, answer.extra_ttft_seconds.lower)
            assert close(most, upper(answer.extra_ttft_seconds))


@given(engines(), REQUESTS, LINKS)
def test_a_change_to_a_link_that_nobody_watched_may_add_its_bandwidth_term(
    engine: EngineCalibration, requests: tuple[EngineRequest, ...], link: Link
) -> None:
    for parted in (False, True):
        for answer in ttfts(answered(engine, requests, to_link=link, arrivals_may_split=parted)):
            if answer.calibrated_extra_ttft_seconds is not None:
                most = upper(answer.extra_ttft_seconds)
                assert upper(answer.calibrated_extra_ttft_seconds) >= most - TOLERANCE * max(most, 1e-6)


@given(engines(), REQUESTS)
def test_a_change_to_the_same_link_changes_nothing(
    engine: EngineCalibration, requests: tuple[EngineRequest, ...]
) -> None:
    table = engine.table
    same = answered(engine, requests, to_link=table.link, to_bursts=table.bursts)
    without = answered(engine, requests)
    for changed, plain in zip(ttfts(same), ttfts(without), strict=True):
        extra = changed.calibrated_extra_ttft_seconds
        if extra is not None:
            assert (extra.lower, extra.expected, extra.upper) == (0, 0, 0)
            assert expected(changed.calibrated_ttft_seconds) == expected(plain.calibrated_ttft_seconds)


@given(engines(), REQUESTS, LINKS, BURSTS)
def test_a_ttft_over_the_new_link_is_the_old_one_and_the_change(
    engine: EngineCalibration, requests: tuple[EngineRequest, ...], link: Link, bursts: BurstTable | None
) -> None:
    changed = ttfts(answered(engine, requests, to_link=link, to_bursts=bursts))
    *of_requests, _, mean = changed
    for after, before in zip(changed, ttfts(answered(engine, requests)), strict=True):
        if after.calibrated_ttft_seconds is None:
            continue
        total = expected(before.calibrated_ttft_seconds) + expected(after.calibrated_extra_ttft_seconds)
        assert expected(after.calibrated_ttft_seconds) >= total * (1 - TOLERANCE)
        # But for a link that would need longer for the bytes, if only those of one of the requests of a mean.
        counted = of_requests if after is mean else [after]
        if total > after.ttft_seconds.lower and not any(map(is_of_bytes, counted)):
            assert close(expected(after.calibrated_ttft_seconds), total)


def is_of_bytes(answer: TtftEstimates) -> bool:
    return expected(answer.calibrated_ttft_seconds) <= answer.ttft_seconds.lower * (1 + TOLERANCE)


@given(engines(), REQUESTS | TIMED_REQUESTS, LINKS)
def test_requests_that_may_be_parted_have_the_interval_of_those_that_are_not(
    engine: EngineCalibration, requests: tuple[EngineRequest, ...], link: Link
) -> None:
    together = ttfts(answered(engine, requests, to_link=link))
    parted = ttfts(answered(engine, requests, to_link=link, arrivals_may_split=True))
    for one, hull in zip(together, parted, strict=True):
        for field in ("calibrated_ttft_seconds", "calibrated_extra_ttft_seconds"):
            inner, outer = getattr(one, field), getattr(hull, field)
            if inner is None or outer is None:
                continue
            assert outer.lower <= inner.lower
            assert outer.expected == inner.expected
            assert outer.upper is None or outer.upper >= inner.upper


@given(st.permutations(STUDY.seen.points))
def test_the_order_of_points_does_not_matter(points: list[Any]) -> None:
    whole, shuffled = (
        fit_engine(table, STUDY.model) for table in (STUDY.seen, evolve(STUDY.seen, points=tuple(points)))
    )
    assert [term.kind for term in shuffled.terms] == [term.kind for term in whole.terms]
    assert [term.seconds for term in shuffled.terms] == pytest.approx([term.seconds for term in whole.terms], rel=1e-6)


@given(st.integers(2, 50))
def test_times_scale_with_times_and_rates(factor: int) -> None:
    """An engine, its links and bursts `factor` times slower: every time is that much longer."""

    def slower(table: EngineTable) -> EngineTable:
        assert table.bursts is not None
        link, bursts = table.link, table.bursts
        return evolve(
            table,
            link=Link(measured_bits_per_second=(link.measured_bits_per_second or 200 * GIGABIT) // factor),
            bursts=evolve(
                bursts,
                points=tuple(
                    evolve(
                        point,
                        least_bits_per_second=point.least_bits_per_second // factor,
                        largest_bits_per_second=point.largest_bits_per_second // factor,
                    )
                    for point in bursts.points
                ),
            ),
            points=tuple(
                evolve(
                    point,
                    ttft_seconds=tuple(factor * seconds for seconds in point.ttft_seconds),
                    last_ttft_seconds=point.last_ttft_seconds and factor * point.last_ttft_seconds,
                    mean_ttft_seconds=point.mean_ttft_seconds and factor * point.mean_ttft_seconds,
                )
                for point in table.points
            ),
        )

    whole = evolve(STUDY.seen, link=Link(measured_bits_per_second=200 * GIGABIT))
    once, often = (fit_engine(table, STUDY.model) for table in (whole, slower(whole)))
    assert [term.seconds for term in often.terms] == pytest.approx(
        [factor * term.seconds for term in once.terms], rel=1e-4
    )
    assert often.interval_fraction == pytest.approx(once.interval_fraction, rel=1e-4)
