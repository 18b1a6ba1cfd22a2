"""Turns readings of many series into curves of their counters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import define, field, frozen

from ingest_service.core.traffic.curve import CurvePiece
from ingest_service.core.traffic.ports import Port
from ingest_service.core.traffic.unwrap import CounterUnwrapper, Readings


@frozen
class CounterPlace:
    """A counter, by the index of its port and its own within the port."""

    port_index: int
    counter_index: int


@define
class CounterStreams:
    """The unwrappers of all counters of `ports`, found by series."""

    _ports: Sequence[Port]
    _places: dict[int, CounterPlace] = field(init=False, factory=dict)
    _unwrappers: dict[CounterPlace, CounterUnwrapper] = field(init=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        for port_index, port in enumerate(self._ports):
            for counter_index, counter in enumerate(port.counters):
                place = CounterPlace(port_index, counter_index)
                self._unwrappers[place] = CounterUnwrapper(counter.width, is_boot_known=bool(port.key.boot_id))
                self._places.update(dict.fromkeys((series.series_id for series in counter.series), place))

    @property
    def series_ids(self) -> tuple[int, ...]:
        """The series whose readings are needed."""
        return tuple(self._places)

    def feed(self, readings: Readings) -> tuple[CounterPlace, CurvePiece | None]:
        """The counter of the readings, and what its curve goes on with."""
        place = self._places[readings.series_id]
        return place, self._unwrappers[place].feed(readings)

    def finish(self) -> Iterator[tuple[CounterPlace, CurvePiece]]:
        """The last pieces of all curves."""
        for place, unwrapper in self._unwrappers.items():
            piece = unwrapper.finish()
            if piece is not None:
                yield place, piece

    def unwrapper(self, place: CounterPlace) -> CounterUnwrapper:
        """That of one counter."""
        return self._unwrappers[place]
