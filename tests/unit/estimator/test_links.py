"""What a link carries: figures of standards and of the studies, and which field decides."""

import attrs
import pytest

from estimator_service.core.assumptions import SOCKETS_COPY, of_counters, of_links
from estimator_service.core.links import (
    extra_send_seconds,
    pcie_bits_per_second,
    pcie_raw_bits_per_second,
    resolve,
    send_seconds,
)
from estimator_service.core.packets import (
    PACKET_HEADER_BYTES,
    ROCE_HEADERS,
    counter_bytes,
    link_counter_bytes,
    wire_efficiency,
)
from linkbound.domain.link import Link, LinkTransport, RateSource

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
    assert resolved.link == link
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


@pytest.mark.parametrize("measured", [1, 109 * GIGABIT, 200 * GIGABIT])
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


TCP = LinkTransport.TCP
INFINIBAND = LinkTransport.INFINIBAND
FABRIC = LinkTransport.FABRIC


@pytest.mark.parametrize(("mtu", "efficiency"), [(1500, 1448 / 1538), (9000, 8948 / 9038)])
def test_tcp_with_timestamps_over_ethernet(mtu: int, efficiency: float) -> None:
    resolved = resolve(Link(line_rate_bits_per_second=10 * GIGABIT, transport=TCP, ethernet_mtu_bytes=mtu))
    assert resolved.rate_source is RateSource.WIRE_EFFICIENCY
    assert resolved.effective_bits_per_second == round(10 * GIGABIT * efficiency)
    assert (resolved.ethernet_mtu_bytes, resolved.roce_mtu_bytes) == (mtu, 0)


def test_infiniband_packets_have_26_bytes_around_them_of_which_24_are_counted() -> None:
    resolved = resolve(Link(line_rate_bits_per_second=200 * GIGABIT, transport=INFINIBAND, roce_mtu_bytes=4096))
    assert resolved.effective_bits_per_second == round(200 * GIGABIT * 4096 / 4122)
    assert link_counter_bytes(4096 * 1000, resolved) == 1000 * (4096 + 24)


@pytest.mark.parametrize(
    ("transport", "mtus"),
    [(LinkTransport.ROCE, (1024, 0)), (TCP, (0, 1500)), (INFINIBAND, (4096, 0)), (FABRIC, (0, 0))],
)
def test_every_transport_has_an_mtu_of_its_own(transport: LinkTransport, mtus: tuple[int, int]) -> None:
    resolved = resolve(Link(line_rate_bits_per_second=GIGABIT, transport=transport))
    assert (resolved.roce_mtu_bytes, resolved.ethernet_mtu_bytes) == mtus
    assert resolved.effective_bits_per_second == GIGABIT


def test_counter_bytes_follow_the_transport() -> None:
    payload = 1448 * 1000
    tcp = resolve(Link(line_rate_bits_per_second=GIGABIT, transport=TCP))
    # 1,500 within the MTU, 14 and 4 of Ethernet.
    assert link_counter_bytes(payload, tcp) == 1000 * 1518
    fabric = resolve(Link(line_rate_bits_per_second=GIGABIT, transport=FABRIC))
    assert link_counter_bytes(payload, fabric) == payload
    roce = resolve(Link(line_rate_bits_per_second=GIGABIT))
    assert link_counter_bytes(1024, roce) == 1024 + 62


def test_other_counters_are_another_set_of_headers() -> None:
    """A NIC that counts no frame check sequence: the set is a value, not a constant within a formula."""
    without_fcs = attrs.evolve(ROCE_HEADERS, counted_bytes=58, uncounted_bytes=24)
    assert counter_bytes(1024, 1024, without_fcs) == 1024 + 58
    assert wire_efficiency(1024, without_fcs) == wire_efficiency(1024)


@pytest.mark.parametrize("transport", [LinkTransport.UNSPECIFIED, *LinkTransport])
def test_what_counters_mean_is_said_for_each_transport(transport: LinkTransport) -> None:
    sentences = of_counters(resolve(Link(line_rate_bits_per_second=GIGABIT, transport=transport)))
    assert sentences
    assert all("None" not in sentence for sentence in sentences)


def test_sockets_come_with_a_warning_until_they_are_measured() -> None:
    link = Link(line_rate_bits_per_second=200 * GIGABIT, transport=TCP)
    assert SOCKETS_COPY in of_links(resolve(link))
    assert SOCKETS_COPY not in of_links(resolve(attrs.evolve(link, measured_bits_per_second=16 * GIGABIT)))
    assert SOCKETS_COPY not in of_links(resolve(Link(line_rate_bits_per_second=200 * GIGABIT)))


@pytest.mark.parametrize("measured", [1, 109 * GIGABIT, 400 * GIGABIT])
def test_a_measured_rate_that_stands_alone_is_that_of_any_port(measured: int) -> None:
    assert resolve(Link(measured_bits_per_second=measured)).effective_bits_per_second == measured
