"""Which series are of one counter, and which counters make up the traffic of one physical port."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import frozen

from ingest_service.core.traffic.steps import CounterWidth
from linkbound.domain.samples import SeriesDescriptor

WHOLE_PORT_SUFFIX = "_phy"
"""Counters of this ending count the whole physical port, at each of its functions alike."""


@frozen(kw_only=True)
class StoredSeries:
    """A series with the readings of it that are asked for: how many, at least one, and between which times.

    `last_ns` is when the last one counts at the latest.
    """

    series_id: int
    descriptor: SeriesDescriptor
    sample_count: int
    first_ns: int
    last_ns: int


@frozen(kw_only=True)
class Counter:
    """One counter of one device, read by one or several writers."""

    descriptor: SeriesDescriptor
    series: tuple[StoredSeries, ...]

    @property
    def device(self) -> str:
        """The device and its port, as people write it: `mlx5_0/1`."""
        return device_name(self.descriptor)

    @property
    def width(self) -> CounterWidth:
        """How it counts."""
        return CounterWidth(self.descriptor.unit_bytes, self.descriptor.counter_bits)

    @property
    def sample_count(self) -> int:
        """Readings of all its series."""
        return sum(series.sample_count for series in self.series)


@frozen(kw_only=True, order=True)
class PortKey:
    """What tells the traffic of ports apart, in the order in which it is listed."""

    node: str
    boot_id: str
    physical_port: str
    metric: str


@frozen(kw_only=True)
class Port:
    """A counter of a physical port: those of its devices, in the order of their names, which are summed."""

    key: PortKey
    counters: tuple[Counter, ...]

    @property
    def first_ns(self) -> int:
        """No reading is before it."""
        return min(series.first_ns for counter in self.counters for series in counter.series)

    @property
    def last_ns(self) -> int:
        """No reading counts behind it."""
        return max(series.last_ns for counter in self.counters for series in counter.series)


def device_name(descriptor: SeriesDescriptor) -> str:
    """The device and its port: `mlx5_0/1`, `eth0`."""
    return f"{descriptor.device}/{descriptor.port}" if descriptor.port else descriptor.device


def counts_bytes(descriptor: SeriesDescriptor) -> bool:
    """Whether it is a counter, and one of bytes."""
    return descriptor.counter_bits > 0 and descriptor.unit_bytes > 0


def ports_of(stored: Iterable[StoredSeries]) -> tuple[Port, ...]:
    """The traffic of ports that the series tell of, by host, boot, port and counter; gauges tell of none."""
    counters: dict[SeriesDescriptor, list[StoredSeries]] = {}
    for series in sorted(stored, key=lambda one: one.series_id):
        if counts_bytes(series.descriptor):
            counters.setdefault(series.descriptor, []).append(series)
    ports: dict[PortKey, list[Counter]] = {}
    for descriptor, group in counters.items():
        ports.setdefault(_key_of(descriptor), []).append(Counter(descriptor=descriptor, series=tuple(group)))
    return tuple(Port(key=key, counters=_summed(key, ports[key])) for key in sorted(ports))


def _key_of(descriptor: SeriesDescriptor) -> PortKey:
    return PortKey(
        node=descriptor.node,
        boot_id=descriptor.boot_id,
        physical_port=descriptor.physical_port or device_name(descriptor),
        metric=descriptor.metric,
    )


def _summed(key: PortKey, counters: list[Counter]) -> tuple[Counter, ...]:
    """Those that make up the port: each, or of counters of the whole port the one with most readings."""
    in_order = sorted(counters, key=lambda counter: (counter.device, counter.descriptor.unit_bytes))
    if key.metric.endswith(WHOLE_PORT_SUFFIX):
        return (max(in_order, key=lambda counter: counter.sample_count),)
    return tuple(in_order)
