"""Traffic of counters as the core tells it, from readings in any portions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

import numpy as np

from ingest_service.core.traffic.port_traffic import TrafficTally
from ingest_service.core.traffic.ports import StoredSeries, ports_of
from ingest_service.core.traffic.unwrap import Readings
from linkbound.domain.samples import SeriesDescriptor
from linkbound.domain.traffic import PortTraffic, TrafficRequest
from tests.property.traffic_reference import Reading


def descriptor(
    device: str = "mlx5_0", *, metric: str = "port_xmit_data", unit_bytes: int = 1, counter_bits: int = 64
) -> SeriesDescriptor:
    return SeriesDescriptor(
        metric=metric,
        node="spark-1",
        device=device,
        port=1,
        unit_bytes=unit_bytes,
        counter_bits=counter_bits,
        boot_id="boot",
        physical_port="port0",
    )


def columns(readings: Sequence[Reading]) -> Readings:
    """Readings of one series as columns."""
    [series_id] = {reading.series_id for reading in readings}
    return Readings(
        series_id=series_id,
        time_ns=np.array([reading.time_ns for reading in readings], np.int64),
        value=np.array([reading.value for reading in readings], np.int64),
        read_duration_ns=np.array([reading.read_duration_ns for reading in readings], np.int64),
    )


def go_on() -> None:
    """Nothing ends the work."""


def traffic_of(
    series: dict[int, SeriesDescriptor],
    portions: Sequence[Sequence[Reading]],
    request: TrafficRequest,
    check: Callable[[], None] = go_on,
) -> tuple[PortTraffic, ...]:
    """The answer to `request`, where the store gives out `portions` one after the other."""
    everything = [reading for portion in portions for reading in portion]
    stored = []
    for series_id, described in series.items():
        own = [reading for reading in everything if reading.series_id == series_id]
        if own:
            stored.append(
                StoredSeries(
                    series_id=series_id,
                    descriptor=described,
                    sample_count=len(own),
                    first_ns=min(reading.time_ns for reading in own),
                    last_ns=max(reading.time_ns + reading.read_duration_ns // 2 for reading in own),
                )
            )
    ports = ports_of(stored)
    needed = {one.series_id for port in ports for counter in port.counters for one in counter.series}
    tally = TrafficTally(ports, request, check)
    for portion in portions:
        for series_id, own_part in groupby(portion, key=lambda reading: reading.series_id):
            if series_id in needed:
                tally.feed(columns(list(own_part)))
    return tally.finish()
