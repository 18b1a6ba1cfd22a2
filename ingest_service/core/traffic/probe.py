"""What a port counted between times that are known beforehand, such as the send of a request and its first token."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from attrs import define, field

from ingest_service.core.traffic.curve import CurvePiece, Flags, Float64Column, Int64Column, points_at
from ingest_service.core.traffic.ports import Port
from ingest_service.core.traffic.streams import CounterStreams
from ingest_service.core.traffic.unwrap import Readings


@define
class CounterProbe:
    """The curve of one counter at `times_ns`, which rise."""

    _times_ns: Int64Column
    _is_known: Flags = field(init=False)
    _whole_bytes: Int64Column = field(init=False)
    _rest_bytes: Float64Column = field(init=False)
    _uncovered_ns: Int64Column = field(init=False)

    def __attrs_post_init__(self) -> None:
        count = len(self._times_ns)
        self._is_known = np.zeros(count, np.bool_)
        self._whole_bytes = np.zeros(count, np.int64)
        self._rest_bytes = np.zeros(count, np.float64)
        self._uncovered_ns = np.zeros(count, np.int64)

    def add(self, piece: CurvePiece) -> None:
        """The curve goes on with `piece`."""
        start = int(np.searchsorted(self._times_ns, piece.time_ns[0], side="left"))
        stop = int(np.searchsorted(self._times_ns, piece.time_ns[-1], side="right"))
        if start == stop:
            return
        inside = slice(start, stop)
        points = points_at(piece, self._times_ns[inside])
        self._is_known[inside] = True
        self._whole_bytes[inside] = points.whole_bytes
        self._rest_bytes[inside] = points.rest_bytes
        self._uncovered_ns[inside] = points.uncovered_ns

    def bytes_between(self, start: int, end: int) -> float | None:
        """Bytes from one of the times to another, by their indices; None where readings do not cover all of it."""
        is_covered = (
            self._is_known[start] and self._is_known[end] and self._uncovered_ns[start] == self._uncovered_ns[end]
        )
        if not is_covered:
            return None
        whole_bytes = int(self._whole_bytes[end]) - int(self._whole_bytes[start])
        return whole_bytes + (float(self._rest_bytes[end]) - float(self._rest_bytes[start]))


@define
class PortProbes:
    """The curves of the counters of `ports` at `times_ns`, all of one clock.

    Takes readings in the order in which they were stored, series by series; `check` is called often, and raises what is
    to end the work.
    """

    _ports: Sequence[Port]
    _times_ns: Int64Column
    _check: Callable[[], None]
    _streams: CounterStreams = field(init=False)
    _probes: list[list[CounterProbe]] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._times_ns = np.unique(self._times_ns)
        self._streams = CounterStreams(self._ports)
        self._probes = [[CounterProbe(self._times_ns) for _ in port.counters] for port in self._ports]

    @property
    def ports(self) -> Sequence[Port]:
        """The ports, in the order of their indices."""
        return self._ports

    def feed(self, readings: Readings) -> None:
        """Takes readings of one series."""
        self._check()
        place, piece = self._streams.feed(readings)
        if piece is not None:
            self._probes[place.port_index][place.counter_index].add(piece)

    def finish(self) -> None:
        """There are no more readings."""
        for place, piece in self._streams.finish():
            self._probes[place.port_index][place.counter_index].add(piece)

    def bytes_between(self, port_index: int, start_ns: int, end_ns: int) -> float | None:
        """Bytes of a port between two of the times; None where readings of each of its devices do not cover all."""
        start, end = np.searchsorted(self._times_ns, [start_ns, end_ns]).tolist()
        counts = [probe.bytes_between(start, end) for probe in self._probes[port_index]]
        return None if any(count is None for count in counts) else sum(count for count in counts if count is not None)
