"""What a link carries: figures of standards and of the studies, and which field decides."""

import pytest

from estimator_service.core.links import (
    PACKET_HEADER_BYTES,
    counter_bytes,
    extra_send_seconds,
    pcie_bits_per_second,
    pcie_raw_bits_per_second,
    resolve,
    send_seconds,
    wire_efficiency,
)
from linkbound.domain.link import Link, RateSource

GIGABIT = 10**9


def test_headers_of_one_packet_add_up_to_62_bytes() -> None:
    assert PACKET_HEADER_BYTES == 62


@pytest.mark.parametrize(("mtu", "efficiency"), [(4096, 0.980), (1024, 0.926)])
def test_wire_efficiency(mtu: int, efficiency: float) -> None:
    assert wire_efficiency(mtu) == pytest.approx(efficiency, abs=5e-4)


@pytest.mark.parametrize(("mtu", "gigabits"), [(4096, 98.0), (1024, 92.6)])
def test_published_rates_of_a_100_gigabit_link(mtu: int, gigabits: float) -> None:
    resolved = resolve(Link(line_rate_bits_per_second=100 * GIGABIT, roce_mtu_bytes=mtu))
    assert resolved.rate_source is RateSource.WIRE_EFFICIENCY
    assert resolved.effective_bits_per_second / GIGABIT == pytest.approx(gigabits, abs=0.05)
    assert resolved.roce_mtu_bytes == mtu


def test_pcie_gen5_x4() -> None:
    assert pcie_raw_bits_per_second(1) == pytest.approx(126.03 * GIGABIT, rel=1e-4)
    assert pcie_raw_bits_per_second(2) == 2 * pcie_raw_bits_per_second(1)
    assert pcie_bits_per_second(1) == pytest.approx(111 * GIGABIT, rel=5e-3)


def test_counter_bytes_add_one_header_to_each_packet() -> None:
    assert counter_bytes(1024 * 1000, 1024) == 1000 * (1024 + 62)
    assert counter_bytes(4096, 4096) == 4096 + 62
    assert counter_bytes(0, 1024) == 0


def test_a_bare_rate_is_effective() -> None:
    link = Link(line_rate_bits_per_second=200 * GIGABIT)
    resolved = resolve(link)
    assert resolved.link is link
    assert resolved.effective_bits_per_second == 200 * GIGABIT
    assert resolved.rate_source is RateSource.GIVEN
    assert resolved.roce_mtu_bytes == 1024


def test_one_pcie_function_caps_a_200_gigabit_port() -> None:
    resolved = resolve(Link(line_rate_bits_per_second=200 * GIGABIT, pcie_function_count=1))
    assert resolved.rate_source is RateSource.PCIE
    assert resolved.effective_bits_per_second == round(pcie_bits_per_second(1))


def test_two_pcie_functions_do_not() -> None:
    resolved = resolve(Link(line_rate_bits_per_second=200 * GIGABIT, pcie_function_count=2))
    assert resolved.rate_source is RateSource.GIVEN
    assert resolved.effective_bits_per_second == 200 * GIGABIT


def test_the_smaller_of_wire_and_pcie_decides() -> None:
    wire = resolve(Link(line_rate_bits_per_second=100 * GIGABIT, roce_mtu_bytes=4096, pcie_function_count=1))
    assert wire.rate_source is RateSource.WIRE_EFFICIENCY
    pcie = resolve(Link(line_rate_bits_per_second=200 * GIGABIT, roce_mtu_bytes=4096, pcie_function_count=1))
    assert pcie.rate_source is RateSource.PCIE


@pytest.mark.parametrize("measured", [1, 109 * GIGABIT, 400 * GIGABIT])
def test_a_measured_rate_wins_over_everything(measured: int) -> None:
    resolved = resolve(
        Link(
            line_rate_bits_per_second=200 * GIGABIT,
            roce_mtu_bytes=1024,
            pcie_function_count=1,
            measured_bits_per_second=measured,
        )
    )
    assert resolved.rate_source is RateSource.MEASURED
    assert resolved.effective_bits_per_second == measured


def test_a_measured_rate_may_stand_alone() -> None:
    resolved = resolve(Link(measured_bits_per_second=109 * GIGABIT, pcie_function_count=1))
    assert resolved.rate_source is RateSource.MEASURED
    assert resolved.effective_bits_per_second == 109 * GIGABIT


def test_a_link_without_any_rate_is_no_link() -> None:
    with pytest.raises(ValueError, match="a line rate or a measured one"):
        resolve(Link(roce_mtu_bytes=1024))


@pytest.mark.parametrize("mtu", [None, 256, 1024])
def test_the_slowest_link_still_carries_something(mtu: int | None) -> None:
    assert resolve(Link(line_rate_bits_per_second=1, roce_mtu_bytes=mtu)).effective_bits_per_second == 1


def test_time_on_a_link() -> None:
    assert send_seconds(25e9, 200 * GIGABIT) == 1
    assert extra_send_seconds(25e9, 200 * GIGABIT, 100 * GIGABIT) == pytest.approx(1)
    assert extra_send_seconds(25e9, 100 * GIGABIT, 200 * GIGABIT) == pytest.approx(-1)
    assert extra_send_seconds(25e9, 100 * GIGABIT, 100 * GIGABIT) == 0
