"""Which counters make up a port."""

from __future__ import annotations

from attrs import evolve

from ingest_service.core.traffic.ports import StoredSeries, ports_of
from linkbound.domain.samples import SeriesDescriptor

XMIT = SeriesDescriptor(
    metric="port_xmit_data",
    node="spark-1",
    device="rocep1s0f0",
    port=1,
    unit_bytes=4,
    boot_id="b",
    physical_port="qsfp0",
)
TWIN = evolve(XMIT, device="roceP2p1s0f0")


def stored(*descriptors: SeriesDescriptor, counts: dict[int, int] | None = None) -> list[StoredSeries]:
    return [
        StoredSeries(
            series_id=index, descriptor=descriptor, sample_count=(counts or {}).get(index, 10), first_ns=0, last_ns=9
        )
        for index, descriptor in enumerate(descriptors)
    ]


def shape(series: list[StoredSeries]) -> list[tuple[str, str, list[str], list[int]]]:
    return [
        (
            port.key.physical_port,
            port.key.metric,
            [counter.device for counter in port.counters],
            [one.series_id for counter in port.counters for one in counter.series],
        )
        for port in ports_of(series)
    ]


def test_functions_of_a_port_are_summed_counter_by_counter() -> None:
    received = evolve(XMIT, metric="port_rcv_data")
    assert shape(stored(XMIT, received, TWIN)) == [
        ("qsfp0", "port_rcv_data", ["rocep1s0f0/1"], [1]),
        ("qsfp0", "port_xmit_data", ["roceP2p1s0f0/1", "rocep1s0f0/1"], [2, 0]),
    ]


def test_a_counter_of_the_whole_port_counts_once_where_it_was_read_most() -> None:
    phy, twin = evolve(XMIT, metric="tx_bytes_phy", unit_bytes=1), evolve(TWIN, metric="tx_bytes_phy", unit_bytes=1)
    assert shape(stored(phy, twin, counts={0: 10, 1: 11})) == [("qsfp0", "tx_bytes_phy", ["roceP2p1s0f0/1"], [1])]
    assert shape(stored(phy, twin)) == [("qsfp0", "tx_bytes_phy", ["roceP2p1s0f0/1"], [1])]
    assert shape(stored(phy, twin, counts={0: 11, 1: 10})) == [("qsfp0", "tx_bytes_phy", ["rocep1s0f0/1"], [0])]


def test_without_a_name_each_device_is_a_port() -> None:
    one, other = evolve(XMIT, physical_port=""), evolve(TWIN, physical_port="", port=0)
    assert [entry[0] for entry in shape(stored(one, other))] == ["roceP2p1s0f0", "rocep1s0f0/1"]


def test_hosts_and_boots_are_apart() -> None:
    series = stored(XMIT, evolve(XMIT, node="spark-2"), evolve(XMIT, boot_id="a"))
    keys = [(port.key.node, port.key.boot_id) for port in ports_of(series)]
    assert keys == [("spark-1", "a"), ("spark-1", "b"), ("spark-2", "b")]


def test_writers_of_the_same_counter_are_one_counter() -> None:
    [port] = ports_of(stored(XMIT, XMIT))
    [counter] = port.counters
    assert [series.series_id for series in counter.series] == [0, 1]
    assert counter.sample_count == 20


def test_gauges_and_what_counts_no_bytes_are_no_traffic() -> None:
    assert ports_of(stored(evolve(XMIT, counter_bits=0), evolve(XMIT, unit_bytes=0))) == ()
