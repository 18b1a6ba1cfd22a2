"""Rates of the counters of ports over windows of time, from readings as they are stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import define, field, frozen

from ingest_service.core.traffic.curve import BITS_PER_BYTE, NS_PER_SECOND, CurvePiece
from ingest_service.core.traffic.lockstep import CounterTotal, Lockstep
from ingest_service.core.traffic.ports import Port
from ingest_service.core.traffic.streams import CounterPlace, CounterStreams
from ingest_service.core.traffic.unwrap import ReadingCounts, Readings
from ingest_service.core.traffic.windows import WindowRates, WindowTally
from linkbound.domain.traffic import LARGEST_ANSWER_POINT_COUNT, PortTraffic, TrafficRequest, TrafficWindow

LARGEST_INT64 = 2**63 - 1


@define
class TrafficTally:
    """Answers a question about traffic: takes readings in the order in which they were stored, series by series.

    Memory is bounded where the counters of a port are fed alike: what one of them is ahead of the others is kept.
    `check` is called often, and raises what is to end the work.
    """

    _ports: Sequence[Port]
    _request: TrafficRequest
    _check: Callable[[], None]
    _streams: CounterStreams = field(init=False)
    _tallies: list[_PortTally] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._streams = CounterStreams(self._ports)
        window_count = len(self._ports) * len(self._request.effective_windows_ns)
        point_count = min(self._request.max_point_count, LARGEST_ANSWER_POINT_COUNT // max(window_count, 1))
        self._tallies = [_PortTally(port, self._request, point_count) for port in self._ports]

    def feed(self, readings: Readings) -> None:
        """Takes readings of one series."""
        self._check()
        place, piece = self._streams.feed(readings)
        if piece is not None:
            tally = self._tallies[place.port_index]
            tally.extend(place.counter_index, piece)
            tally.advance(self._check, is_complete=False)

    def finish(self) -> tuple[PortTraffic, ...]:
        """The traffic of all ports that have any reading in the time asked for."""
        for place, piece in self._streams.finish():
            self._tallies[place.port_index].extend(place.counter_index, piece)
        answers: list[PortTraffic] = []
        for port_index, tally in enumerate(self._tallies):
            tally.advance(self._check, is_complete=True)
            counts = [
                self._streams.unwrapper(CounterPlace(port_index, counter_index)).counts
                for counter_index in range(len(tally.port.counters))
            ]
            traffic = tally.traffic(counts)
            if traffic is not None:
                answers.append(traffic)
        return tuple(answers)


@define
class _PortTally:
    """The traffic of one port."""

    port: Port
    _request: TrafficRequest
    _max_point_count: int
    _lockstep: Lockstep = field(init=False)
    _windows: tuple[WindowTally, ...] = field(init=False)

    def __attrs_post_init__(self) -> None:
        request, port = self._request, self.port
        widths_ns = request.effective_windows_ns
        first_ns = port.first_ns if request.start_ns is None else max(port.first_ns, request.start_ns)
        last_ns = port.last_ns if request.end_ns is None else min(port.last_ns, request.end_ns)
        self._lockstep = Lockstep(len(port.counters), widths_ns[0], request.start_ns, request.end_ns)
        self._windows = tuple(
            WindowTally(
                window_ns,
                largest_window_count=max((last_ns - 1) // window_ns - first_ns // window_ns + 1, 1),
                max_point_count=self._max_point_count,
            )
            for window_ns in widths_ns
        )

    def extend(self, counter_index: int, piece: CurvePiece) -> None:
        self._lockstep.extend(counter_index, piece)

    def advance(self, check: Callable[[], None], *, is_complete: bool) -> None:
        for block in self._lockstep.blocks(is_complete=is_complete):
            for window in self._windows:
                window.add(block)
            check()

    def traffic(self, counts: Sequence[ReadingCounts]) -> PortTraffic | None:
        """What it came to; None where nothing is in the time asked for."""
        start_ns, end_ns = self._lockstep.start_ns, self._lockstep.end_ns
        if start_ns is None or end_ns is None:
            return None
        share = _Share.of(self._lockstep.totals(), end_ns - start_ns)
        return PortTraffic(
            node=self.port.key.node,
            boot_id=self.port.key.boot_id,
            physical_port=self.port.key.physical_port,
            devices=tuple(counter.device for counter in self.port.counters),
            metric=self.port.key.metric,
            start_ns=start_ns,
            end_ns=end_ns,
            total_bytes=share.total_bytes,
            sample_count=sum(one.sample_count for one in counts),
            wrap_count=sum(one.wrap_count for one in counts),
            reset_count=sum(one.reset_count for one in counts),
            gap_count=sum(one.gap_count for one in counts),
            duplicate_count=sum(one.duplicate_count for one in counts),
            late_count=sum(one.late_count for one in counts),
            interval_ns=max(one.interval_ns for one in counts),
            windows=tuple(share.window(tally.finish()) for tally in self._windows),
        )


@frozen(kw_only=True)
class _Share:
    """What is the same for every window: the total, its mean, and how much of the time is covered."""

    total_bytes: int
    mean_bits_per_second: float
    covered_fraction: float

    @classmethod
    def of(cls, totals: Sequence[CounterTotal], span_ns: int) -> _Share:
        total_bytes = sum(total.whole_bytes for total in totals) + round(sum(total.rest_bytes for total in totals))
        means = [total.byte_count / total.covered_ns for total in totals if total.covered_ns]
        covered_ns = sum(total.covered_ns for total in totals)
        return cls(
            total_bytes=min(total_bytes, LARGEST_INT64),
            mean_bits_per_second=sum(means, 0.0) * BITS_PER_BYTE * NS_PER_SECOND,
            covered_fraction=covered_ns / (span_ns * len(totals)) if span_ns else 0.0,
        )

    def window(self, rates: WindowRates) -> TrafficWindow:
        return TrafficWindow(
            window_ns=rates.window_ns,
            window_count=rates.window_count,
            mean_bits_per_second=self.mean_bits_per_second,
            peak_bits_per_second=rates.peak_bits_per_second,
            peak_start_ns=rates.peak_start_ns,
            p99_bits_per_second=rates.p99_bits_per_second,
            covered_fraction=self.covered_fraction,
            points=rates.points,
        )
