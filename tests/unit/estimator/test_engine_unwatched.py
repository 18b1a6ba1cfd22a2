"""A link that nobody watched, beside one whose counters were read: which bytes its rate counts."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from estimator_service.core.engine_times.estimate import estimate_schedule
from estimator_service.core.engine_times.fit import fit_engine
from estimator_service.core.engine_times.network import path_over, unwatched_ratio
from linkbound.domain.engine import BurstPoint, BurstTable, EnginePoint
from linkbound.domain.estimate import Estimate
from linkbound.domain.layout import ParallelLayout
from linkbound.domain.link import Link
from linkbound.domain.schedule import ScheduleEstimate, ScheduleRequest
from tests.unit.estimator.engine_models import LINK, MEGABIT, SENDING_MODEL, engine_table, request

HEADERS = 1.25
TWO_RANKS = ParallelLayout(tensor_parallel_size=2)
FOUR_RANKS = ParallelLayout(tensor_parallel_size=4)
GIGABIT = 10**9


def full_rate(link: Link) -> BurstTable:
    """Bursts of every size at the line rate."""
    rate = link.line_rate_bits_per_second or 0
    points = (BurstPoint(message_bytes=1, least_bits_per_second=rate, largest_bits_per_second=rate),)
    return BurstTable(points=points, least_header_ratio=HEADERS)


@pytest.mark.parametrize(
    ("link", "ratio"),
    [
        pytest.param(Link(line_rate_bits_per_second=400 * GIGABIT), HEADERS, id="a line rate as it is given"),
        pytest.param(Link(measured_bits_per_second=100 * GIGABIT), HEADERS, id="measured, of whatever bytes"),
        pytest.param(Link(line_rate_bits_per_second=400 * GIGABIT, roce_mtu_bytes=1024), 1.0, id="less its headers"),
        pytest.param(Link(line_rate_bits_per_second=400 * GIGABIT, pcie_function_count=1), 1.0, id="of PCIe functions"),
    ],
)
def test_a_rate_that_has_no_headers_in_it_is_read_one_way(link: Link, ratio: float) -> None:
    watched = path_over(LINK, full_rate(LINK), None, TWO_RANKS)
    other = path_over(link, None, None, TWO_RANKS)
    assert unwatched_ratio(watched, other) == ratio
    assert unwatched_ratio(other, watched) == ratio


def asked(**details: Any) -> ScheduleEstimate:
    """A prompt of 400 tokens, measured as 5 s over 1 Mb/s whose bursts reach 0.8 Mb/s of payload."""
    point = EnginePoint(label="a", requests=(request(400, 1),), ttft_seconds=(5.0,))
    table = evolve(engine_table(point), bursts=full_rate(LINK))
    engine = fit_engine(table, SENDING_MODEL)
    question = ScheduleRequest(requests=(request(400, 1),), engine_table=table, **details)
    return estimate_schedule(question, SENDING_MODEL, engine)


def present(found: Estimate | None) -> Estimate:
    assert found is not None
    return found


SLOW = Link(line_rate_bits_per_second=MEGABIT // 2)
BYTES_SECONDS = (400 * 60 + 1024) * 8 / (MEGABIT // 2)


@pytest.mark.parametrize(
    ("layout", "sent"), [pytest.param(TWO_RANKS, 1.0, id="same ranks"), pytest.param(FOUR_RANKS, 1.5, id="four ranks")]
)
def test_transfers_over_it_take_up_to_the_header_ratio_longer(layout: ParallelLayout, sent: float) -> None:
    """Of four ranks each sends 1.5 times as much of an all-reduce, and of a gather three quarters of twice as much."""
    found = asked(layout=layout, to_link=SLOW)
    network = present(found.passes[0].network_seconds)
    most = BYTES_SECONDS * sent
    assert (network.lower, network.upper) == pytest.approx((most, HEADERS * most))
    assert network.expected == pytest.approx((1 + HEADERS) / 2 * most)
    assert found.summary.last_ttft is not None
    seconds = present(found.summary.last_ttft.calibrated_ttft_seconds)
    arithmetic = (5.0 - (400 * 60 + 1024) * 8 * HEADERS / MEGABIT) * 2 / layout.tensor_parallel_size
    assert seconds.expected == pytest.approx(arithmetic + (1 + HEADERS) / 2 * most, rel=0.02)
    if layout == TWO_RANKS:
        assert seconds.upper == pytest.approx(arithmetic + 0.25 + HEADERS * most, rel=0.02)
    else:
        # Rounds of a twentieth of the whole time, and all arithmetic may be a fixed part of passes that is not halved.
        rounds = 0.05 * (seconds.expected or 0.0)
        assert seconds.upper == pytest.approx(2 * arithmetic + rounds + HEADERS * most, rel=0.02)


@pytest.mark.parametrize("layout", [TWO_RANKS, FOUR_RANKS])
def test_headers_are_taken_off_once(layout: ParallelLayout) -> None:
    """A rate less its headers is one of payloads: nothing is left open."""
    framed = Link(line_rate_bits_per_second=MEGABIT // 2, roce_mtu_bytes=4096)
    network = present(asked(layout=layout, to_link=framed).passes[0].network_seconds)
    assert network.upper == pytest.approx(network.lower)
    assert network.expected is None
