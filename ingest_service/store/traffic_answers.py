"""Answers of questions about traffic: what is stored, streamed through the core."""

from __future__ import annotations

from collections.abc import Callable

import duckdb
import numpy as np

from ingest_service.core.page_token import decode_phase_token
from ingest_service.core.phase_page import PhaseRows, in_order, page_of
from ingest_service.core.phases import Clock, PhaseContext, RequestPhases
from ingest_service.core.traffic.port_traffic import TrafficTally
from ingest_service.core.traffic.ports import Port, counts_bytes, ports_of
from ingest_service.core.traffic.probe import PortProbes
from ingest_service.store.record_tables import REQUEST_RECORDS
from ingest_service.store.traffic_reads import (
    SeriesSelection,
    TimeBounds,
    select_descriptors,
    select_series,
    stream_readings,
)
from linkbound.domain.errors import InvalidArgumentError, Violation
from linkbound.domain.paging import Page
from linkbound.domain.run import Run
from linkbound.domain.traffic import ListPhaseTrafficRequest, PhaseTraffic, PortTraffic, TrafficRequest

Check = Callable[[], None]
"""Raises what is to end the work."""


def port_traffic(
    cursor: duckdb.DuckDBPyConnection, run: Run, request: TrafficRequest, check: Check
) -> tuple[PortTraffic, ...]:
    """The traffic of the run by host, boot, port and counter. Raises InvalidArgumentError for a metric of no bytes."""
    descriptors = select_descriptors(cursor, run.run_id, node=request.node, metric=request.metric)
    if request.metric and descriptors and not any(map(counts_bytes, descriptors.values())):
        problem = f"{request.metric} counts no bytes in run {run.run_id}: it has no traffic"
        raise InvalidArgumentError([Violation("metric", problem)])
    bounds = TimeBounds(start_ns=request.start_ns, end_ns=request.end_ns)
    selection = select_series(cursor, run, descriptors, bounds)
    ports = ports_of(selection.series)
    tally = TrafficTally(ports, request, check)
    for readings in stream_readings(cursor, run, _series_ids(ports), selection):
        tally.feed(readings)
    return tally.finish()


def phase_traffic(
    cursor: duckdb.DuckDBPyConnection, run: Run, request: ListPhaseTrafficRequest, check: Check
) -> Page[PhaseTraffic]:
    """One page of the traffic in the phases of requests. Raises InvalidArgumentError on `page_token`."""
    after = decode_phase_token(request.page_token)
    requests = [RequestPhases.of(record) for record in REQUEST_RECORDS.select(cursor, run.run_id)]
    context = PhaseContext.of(requests)
    everything = select_series(cursor, run, select_descriptors(cursor, run.run_id), TimeBounds())
    ports: dict[Clock, list[Port]] = {}
    for port in ports_of(everything.series):
        ports.setdefault(Clock(port.key.node, port.key.boot_id), []).append(port)

    def port_count(asked: RequestPhases) -> int:
        return 0 if asked.clock is None else len(ports.get(asked.clock, ()))

    page = page_of(in_order(requests, request.subject), port_count, after, request.effective_page_size)
    probes = {
        clock: _probes(cursor, run, ports[clock], times_ns, check)
        for clock, times_ns in _times_ns(page, context).items()
        if clock in ports
    }
    return Page(
        entries=tuple(
            context.row(
                row.request, None if row.request.clock is None else probes.get(row.request.clock), row.port_index
            )
            for row in page.rows
        ),
        next_page_token=page.next_page_token,
    )


def _times_ns(page: PhaseRows, context: PhaseContext) -> dict[Clock, set[int]]:
    """The times at which the rows of the page need the curves of each clock."""
    times_ns: dict[Clock, set[int]] = {}
    for row in page.rows:
        if row.request.clock is not None:
            times_ns.setdefault(row.request.clock, set()).update(context.times_ns(row.request))
    return times_ns


def _probes(
    cursor: duckdb.DuckDBPyConnection, run: Run, ports: list[Port], times_ns: set[int], check: Check
) -> PortProbes:
    """What the ports of one clock counted at the times."""
    probes = PortProbes(ports, np.array(sorted(times_ns), np.int64), check)
    series_ids = _series_ids(ports)
    descriptors = {
        series.series_id: series.descriptor for port in ports for counter in port.counters for series in counter.series
    }
    bounds = TimeBounds(start_ns=min(times_ns), end_ns=max(times_ns))
    selection: SeriesSelection = select_series(cursor, run, descriptors, bounds)
    for readings in stream_readings(cursor, run, series_ids, selection):
        probes.feed(readings)
    probes.finish()
    return probes


def _series_ids(ports: tuple[Port, ...] | list[Port]) -> list[int]:
    return [series.series_id for port in ports for counter in port.counters for series in counter.series]
