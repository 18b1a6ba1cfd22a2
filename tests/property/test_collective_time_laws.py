"""Laws of the time of one collective: by the library's model, and by calibration. Numbers: `docs/invariants.md`."""

from __future__ import annotations

import math
from typing import Any

from attrs import evolve
from hypothesis import assume, example, given
from hypothesis import strategies as st

from estimator_service.core.collective_time import (
    Group,
    Rates,
    algorithm_sent_bytes,
    calibrated_seconds,
    fit,
    library_choices,
    seconds_on_links,
)
from estimator_service.core.collective_time.flags import wire_ratio
from estimator_service.core.collectives import sent_bytes
from estimator_service.core.links import resolve
from estimator_service.core.single_collective import estimate_collective
from linkbound.domain.calibration import Calibration, CollectivePoint, CollectiveTable
from linkbound.domain.collective import CollectiveAlgorithm, CollectiveKind, CollectiveProtocol
from linkbound.domain.collective_estimate import CollectiveChoice, CollectiveRequest
from linkbound.domain.estimate import Estimate
from linkbound.domain.link import Link

KINDS = st.sampled_from([kind for kind in CollectiveKind if kind.name not in {"UNSPECIFIED", "UNKNOWN"}])
SIZES = st.integers(1, 10**15) | st.integers(1, 10**8)
RATES = st.floats(1e6, 1e15)
LATENCIES = st.floats(0, 1e-3)
SLACK = 1 + 1e-9
"""Sums of floats differ in their last digits."""


@st.composite
def groups(draw: st.DrawFn) -> Group:
    ranks_per_node = draw(st.integers(1, 16))
    node_count = draw(st.integers(2 if ranks_per_node == 1 else 1, 64))
    return Group(rank_count=node_count * ranks_per_node, ranks_per_node=ranks_per_node)


@st.composite
def questions(draw: st.DrawFn) -> dict[str, Any]:
    group = draw(groups())
    inner = draw(RATES) if group.ranks_per_node > 1 else None
    rates = Rates(
        outer_bits_per_second=draw(RATES), inner_bits_per_second=inner, network_latency_seconds=draw(LATENCIES)
    )
    return {"kind": draw(KINDS), "group": group, "message_bytes": draw(SIZES), "rates": rates}


def taken(question: dict[str, Any]) -> CollectiveChoice:
    (choice,) = [choice for choice in library_choices(**question) if choice.chosen]
    return choice


@given(questions())
def test_no_choice_is_faster_than_the_wire(question: dict[str, Any]) -> None:
    for choice in library_choices(**question):
        sent = algorithm_sent_bytes(choice.algorithm, question["kind"], question["group"], question["message_bytes"])
        on_links = seconds_on_links(sent, question["rates"])
        assert choice.seconds * SLACK >= choice.fixed_seconds + on_links
        assert choice.fixed_seconds > 0


@given(questions(), SIZES)
def test_a_larger_payload_is_never_faster(question: dict[str, Any], other: int) -> None:
    small, large = sorted([question["message_bytes"], other])
    faster, slower = taken({**question, "message_bytes": small}), taken({**question, "message_bytes": large})
    assert faster.seconds <= slower.seconds * SLACK


@given(questions(), RATES)
def test_a_slower_link_costs_at_most_the_bandwidth_term(question: dict[str, Any], other: float) -> None:
    assume(question["group"].node_count > 1)
    slow, fast = sorted([question["rates"].outer_bits_per_second, other])
    at_fast, at_slow = (
        taken({**question, "rates": evolve(question["rates"], outer_bits_per_second=rate)}) for rate in (fast, slow)
    )
    term = 8 * at_fast.wire_bytes_per_rank * (1 / slow - 1 / fast)
    # Bytes are answered as whole ones.
    rounding = 8 / slow + 1e-9 * at_slow.seconds
    assert at_fast.seconds <= at_slow.seconds * SLACK
    assert at_slow.seconds - at_fast.seconds <= term + rounding


@given(questions(), RATES, RATES)
def test_no_rate_is_in_the_fixed_part(question: dict[str, Any], outer: float, inner: float) -> None:
    def fixed(asked: dict[str, Any]) -> dict[tuple[Any, Any], float]:
        return {(choice.algorithm, choice.protocol): choice.fixed_seconds for choice in library_choices(**asked)}

    inner_rate = None if question["rates"].inner_bits_per_second is None else inner
    others = evolve(question["rates"], outer_bits_per_second=outer, inner_bits_per_second=inner_rate)
    assert fixed({**question, "rates": others}) == fixed(question)


@given(questions(), LATENCIES)
def test_more_latency_is_never_faster(question: dict[str, Any], other: float) -> None:
    low, high = sorted([question["rates"].network_latency_seconds, other])
    faster, slower = (
        taken({**question, "rates": evolve(question["rates"], network_latency_seconds=latency)})
        for latency in (low, high)
    )
    assert faster.seconds <= slower.seconds * SLACK


@given(questions(), st.integers(1, 64))
def test_more_nodes_are_never_faster_and_send_no_fewer_bytes(question: dict[str, Any], added: int) -> None:
    """Where links within nodes are no slower than those between: more nodes leave an all-to-all less within each."""
    group: Group = question["group"]
    inner_rate = question["rates"].inner_bits_per_second
    assume(inner_rate is None or inner_rate >= question["rates"].outer_bits_per_second)
    larger = evolve(group, rank_count=group.rank_count + added * group.ranks_per_node)
    assert taken(question).seconds <= taken({**question, "group": larger}).seconds * SLACK
    for algorithm in (CollectiveAlgorithm.RING, CollectiveAlgorithm.ONE_SHOT):
        before, after = (
            algorithm_sent_bytes(algorithm, question["kind"], asked, question["message_bytes"])
            for asked in (group, larger)
        )
        assert before.outer <= after.outer * SLACK


@st.composite
def calibrations(draw: st.DrawFn) -> Calibration:
    times = st.floats(1e-7, 1.0) | st.floats(1e-9, 1e6)
    sizes = draw(st.lists(st.integers(1, 2**40), min_size=2, max_size=12, unique=True))
    return fit(
        CollectiveTable(
            kind=draw(KINDS),
            rank_count=draw(st.integers(2, 64)),
            points=tuple(CollectivePoint(message_bytes=size, seconds=draw(times)) for size in sizes),
        )
    )


def ends(estimate: Estimate) -> tuple[float, float, float]:
    assert estimate.expected is not None
    assert estimate.upper is not None
    return estimate.lower, estimate.expected, estimate.upper


@given(calibrations(), SIZES, SIZES)
def test_a_calibrated_time_does_not_fall_with_the_size(calibration: Calibration, one: int, other: int) -> None:
    small, large = sorted([one, other])
    for before, after in zip(
        ends(calibrated_seconds(calibration, small)), ends(calibrated_seconds(calibration, large)), strict=True
    ):
        assert before <= after * SLACK


@given(calibrations(), SIZES, st.integers(10**6, 10**15))
def test_calibrated_ends_are_in_order_and_not_before_the_wire(
    calibration: Calibration, message_bytes: int, rate: int
) -> None:
    link = resolve(Link(line_rate_bits_per_second=rate))
    table = calibration.table
    on_wire = 8 * sent_bytes(table.kind, table.rank_count, message_bytes) / rate
    for estimate in (
        calibrated_seconds(calibration, message_bytes),
        calibrated_seconds(calibration, message_bytes, link),
    ):
        lower, expected, upper = ends(estimate)
        assert 0 < lower <= expected <= upper < math.inf
    assert calibrated_seconds(calibration, message_bytes, link).lower >= on_wire


@given(calibrations(), SIZES, st.integers(10**6, 10**15), st.integers(10**6, 10**15))
def test_a_slower_link_costs_a_calibrated_time_at_most_the_bandwidth_term(
    calibration: Calibration, message_bytes: int, one: int, other: int
) -> None:
    slow, fast = sorted([one, other])
    table = calibration.table
    sent = sent_bytes(table.kind, table.rank_count, message_bytes)
    at_fast, at_slow = (
        ends(calibrated_seconds(calibration, message_bytes, resolve(Link(line_rate_bits_per_second=rate))))
        for rate in (fast, slow)
    )
    term = 8 * sent * (1 / slow - 1 / fast)
    group = Group(rank_count=table.rank_count, ranks_per_node=table.ranks_per_node)
    flagged = wire_ratio(table.kind, group, message_bytes, 8 * calibration.bus_bandwidth_bytes_per_second)
    assert 1 <= flagged <= 2
    for before, after, most in zip(at_fast, at_slow, (term, term, flagged * term), strict=True):
        assert before <= after * SLACK
        assert after - before <= most + 1e-9 * after


@given(calibrations(), SIZES, SIZES, st.integers(10**6, 10**15))
def test_a_calibrated_time_over_any_link_does_not_fall_with_the_size(
    calibration: Calibration, one: int, other: int, rate: int
) -> None:
    link = resolve(Link(line_rate_bits_per_second=rate))
    small, large = (ends(calibrated_seconds(calibration, size, link)) for size in sorted([one, other]))
    for before, after in zip(small, large, strict=True):
        assert before <= after * SLACK


@given(calibrations(), st.data())
def test_every_fitted_time_lies_in_its_interval_where_times_rise(calibration: Calibration, data: st.DataObject) -> None:
    rising = sorted(point.seconds for point in calibration.table.points)
    points = tuple(
        evolve(point, seconds=seconds) for point, seconds in zip(calibration.table.points, rising, strict=True)
    )
    fitted = fit(evolve(calibration.table, points=points))
    point = data.draw(st.sampled_from(points))
    assert calibrated_seconds(fitted, point.message_bytes).contains(point.seconds)


@st.composite
def requests(draw: st.DrawFn) -> CollectiveRequest:
    group, kind = draw(groups()), draw(KINDS)
    algorithms = [
        CollectiveAlgorithm.UNSPECIFIED,
        CollectiveAlgorithm.AUTO,
        CollectiveAlgorithm.RING,
        CollectiveAlgorithm.ONE_SHOT,
    ]
    if kind is CollectiveKind.ALL_REDUCE:
        algorithms.append(CollectiveAlgorithm.DOUBLE_BINARY_TREE)
    links = st.builds(Link, line_rate_bits_per_second=st.integers(10**6, 10**15))
    table = draw(calibrations()).table
    covered = evolve(table, kind=kind, rank_count=group.rank_count, ranks_per_node=group.ranks_per_node)
    return CollectiveRequest(
        kind=kind,
        rank_count=group.rank_count,
        ranks_per_node=group.ranks_per_node,
        message_bytes=draw(st.integers(1, 10**12)),
        link=draw(links),
        inner_link=draw(links),
        algorithm=draw(st.sampled_from(algorithms)),
        collective_table=draw(st.sampled_from([None, table, covered])),
    )


@given(requests())
def test_one_collective_is_not_before_its_wire_with_and_without_a_calibration(request: CollectiveRequest) -> None:
    table = request.collective_table
    alone = estimate_collective(request)
    asked = estimate_collective(request, None if table is None else fit(table))
    assert alone.seconds is not None
    assert asked.seconds is not None
    assert alone.seconds.expected is None
    assert asked.seconds.lower >= alone.seconds.lower
    is_covered = table is not None and (table.kind, table.rank_count, table.ranks_per_node) == (
        request.kind,
        request.rank_count,
        request.ranks_per_node,
    )
    has_one_way = request.kind in {CollectiveKind.ALL_TO_ALL, CollectiveKind.SEND_RECEIVE}
    forced = {CollectiveAlgorithm.ONE_SHOT, CollectiveAlgorithm.DOUBLE_BINARY_TREE}
    is_covered = is_covered and (has_one_way or request.algorithm not in forced)
    assert (asked.seconds.expected is not None) == is_covered
    if is_covered:
        lower, expected, upper = ends(asked.seconds)
        assert lower <= expected <= upper
        slowest, usual, fastest = ends(asked.bus_bandwidth_bytes_per_second)
        assert slowest <= usual <= fastest


@given(st.integers(2, 512), SIZES)
@example(8, 16_384)
def test_rates_scale_the_bandwidth_part_of_the_choice_that_the_link_limits(rank_count: int, message_bytes: int) -> None:
    """Multiplying the rate by k divides by k what a Simple ring takes beyond its fixed time."""
    group = Group(rank_count=rank_count)
    parts = [
        choice.seconds - choice.fixed_seconds
        for rate in (1e9, 4e9)
        for choice in library_choices(
            CollectiveKind.ALL_REDUCE, group, message_bytes, Rates(outer_bits_per_second=rate)
        )
        if choice.algorithm is CollectiveAlgorithm.RING and choice.protocol is CollectiveProtocol.SIMPLE
    ]
    assert math.isclose(parts[0], 4 * parts[1], rel_tol=1e-6, abs_tol=1e-15)
