"""When it is told of a run that rows were appended: at once, and then once for all that come within a second."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import define, field

TELLING_INTERVAL_SECONDS = 1.0
"""How far apart two tellings of one run are at least."""


@define
class RunPulse:
    """Which runs to tell of. Times are those of one clock that only rises.

    What is to be told is told within a transaction, so it counts as told once `told` says so.
    """

    _told_at: dict[str, float] = field(init=False, factory=dict)
    _waiting: set[str] = field(init=False, factory=set)

    def appended(self, run_ids: Iterable[str], now: float) -> tuple[str, ...]:
        """Runs to tell of now, after appends to `run_ids`: each once, with those that waited for their turn."""
        self._waiting.update(run_ids)
        return self.due(now)

    def due(self, now: float) -> tuple[str, ...]:
        """Runs whose turn has come."""
        return tuple(sorted(run_id for run_id in self._waiting if self._turn(run_id) <= now))

    def told(self, run_ids: Iterable[str], now: float) -> None:
        """It was told of `run_ids`."""
        for run_id in run_ids:
            self._waiting.discard(run_id)
            self._told_at[run_id] = now

    def wait_seconds(self, now: float) -> float | None:
        """Time until the next turn, not below 0; None: nothing waits."""
        turns = [self._turn(run_id) for run_id in self._waiting]
        return max(0.0, min(turns) - now) if turns else None

    def forget(self, run_id: str) -> None:
        """The run is over: nothing is told of it any more."""
        self._waiting.discard(run_id)
        self._told_at.pop(run_id, None)

    def _turn(self, run_id: str) -> float:
        told_at = self._told_at.get(run_id)
        return float("-inf") if told_at is None else told_at + TELLING_INTERVAL_SECONDS
