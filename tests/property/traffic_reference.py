"""The rules of traffic, reading by reading in whole numbers and fractions: slow, and built unlike what it checks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from statistics import median

from attrs import define, field, frozen

FASTEST_PORT_BYTES_PER_NS = Fraction(200)
NS_PER_MS = 10**6


@frozen(kw_only=True)
class Reading:
    """One reading as it is stored; `read_duration_ns` is 0 where it is not known."""

    series_id: int = 0
    time_ns: int
    value: int
    read_duration_ns: int = 0


@frozen(kw_only=True)
class Interval:
    """What was counted between two readings; None where nobody knows."""

    start_ns: int
    end_ns: int
    byte_count: int | None

    def bytes_within(self, start_ns: int, end_ns: int) -> Fraction:
        overlap_ns = min(self.end_ns, end_ns) - max(self.start_ns, start_ns)
        return Fraction(max(overlap_ns, 0) * (self.byte_count or 0), self.end_ns - self.start_ns)

    def covered_ns_within(self, start_ns: int, end_ns: int) -> int:
        return 0 if self.byte_count is None else max(min(self.end_ns, end_ns) - max(self.start_ns, start_ns), 0)


@define
class ReferenceCounter:
    """One counter, its readings in the order in which they were stored."""

    unit_bytes: int
    counter_bits: int
    readings: Sequence[Reading]
    is_boot_known: bool = True

    times_ns: list[int] = field(init=False, factory=list)
    intervals: list[Interval] = field(init=False, factory=list)
    wrap_count: int = field(init=False, default=0)
    reset_count: int = field(init=False, default=0)
    duplicate_count: int = field(init=False, default=0)
    late_count: int = field(init=False, default=0)

    def __attrs_post_init__(self) -> None:
        kept = self._kept()
        for index, (reading, _) in enumerate(kept):
            middle_ns = reading.time_ns + reading.read_duration_ns // 2
            if index + 1 < len(kept):
                middle_ns = min(middle_ns, kept[index + 1][0].time_ns - 1)
            self.times_ns.append(min(middle_ns, 2**63 - 1))
        for index in range(1, len(kept)):
            start_ns, end_ns = self.times_ns[index - 1 : index + 1]
            byte_count = (
                None if kept[index][1] else self._counted(kept[index - 1][0], kept[index][0], end_ns - start_ns)
            )
            if byte_count is None:
                self.reset_count += 1
            self.intervals.append(Interval(start_ns=start_ns, end_ns=end_ns, byte_count=byte_count))

    @property
    def interval_ns(self) -> int:
        return int(self._usual_ns)

    @property
    def gap_count(self) -> int:
        return sum(interval.end_ns - interval.start_ns > 2 * self._usual_ns for interval in self.intervals)

    @property
    def _usual_ns(self) -> Fraction:
        lengths = [Fraction(interval.end_ns - interval.start_ns) for interval in self.intervals]
        return median(lengths) if lengths else Fraction(0)

    def _kept(self) -> list[tuple[Reading, bool]]:
        """Readings that count, each with whether the counter or its clock began again before it."""
        kept: list[tuple[Reading, bool]] = []
        last_time_ns: dict[int, int] = {}
        is_break = False
        before: Reading | None = None
        for reading in self.readings:
            if reading.time_ns < last_time_ns.get(reading.series_id, 0):
                is_break = True
            if before is not None and before.series_id != reading.series_id and not self.is_boot_known:
                is_break = True
            last_time_ns[reading.series_id] = reading.time_ns
            before = reading
            if kept and reading.time_ns < kept[-1][0].time_ns:
                self.late_count += 1
            elif kept and reading.time_ns == kept[-1][0].time_ns:
                self.duplicate_count += 1
                kept[-1] = (reading, kept[-1][1] or is_break)
                is_break = False
            else:
                kept.append((reading, is_break))
                is_break = False
        return kept

    def _counted(self, before: Reading, after: Reading, elapsed_ns: int) -> int | None:
        byte_count = (after.value - before.value) * self.unit_bytes
        if byte_count >= 0:
            return byte_count if byte_count <= 2**53 else None
        counts = after.value - before.value + int(2**self.counter_bits)
        possible_bytes = FASTEST_PORT_BYTES_PER_NS * (elapsed_ns + NS_PER_MS)
        if 2 * counts > 2**self.counter_bits or counts * self.unit_bytes > possible_bytes:
            return None
        self.wrap_count += 1
        return counts * self.unit_bytes


def windows(
    counters: Sequence[ReferenceCounter], window_ns: int, start_ns: int, end_ns: int
) -> Iterator[tuple[int, Fraction]]:
    """Start and bytes of every window that touches the time from `start_ns` to `end_ns`, of all counters together."""
    if start_ns == end_ns:
        return
    byte_count: defaultdict[int, Fraction] = defaultdict(Fraction)
    for counter in counters:
        for interval in counter.intervals:
            low, high = max(interval.start_ns, start_ns), min(interval.end_ns, end_ns)
            for index in range(low // window_ns, (high - 1) // window_ns + 1):
                inside = max(low, index * window_ns), min(high, (index + 1) * window_ns)
                byte_count[index] += interval.bytes_within(*inside)
    for index in range(start_ns // window_ns, (end_ns - 1) // window_ns + 1):
        yield index * window_ns, byte_count[index]
