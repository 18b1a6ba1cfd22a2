"""When the thread that commits uses a rest to move the log into the file."""

from __future__ import annotations

from attrs import define, field


@define(kw_only=True)
class CheckpointRests:
    """After `idle_seconds` without work, and at the first moment without any once a commit is `age_seconds` old.

    The second is for writers that never pause: without it theirs would wait for the log to fill.
    """

    idle_seconds: float
    age_seconds: float
    _oldest_time: float | None = field(init=False, default=None)

    def note(self, now: float, *, has_uncheckpointed: bool) -> None:
        """Something was done, and afterwards the log holds commits that the file does not, or none."""
        if not has_uncheckpointed:
            self._oldest_time = None
        elif self._oldest_time is None:
            self._oldest_time = now

    def postpone(self, now: float) -> None:
        """A checkpoint was not possible: the next one is tried as late as if everything were new."""
        self._oldest_time = now

    def wait_seconds(self, now: float) -> float | None:
        """How long to wait for work before a checkpoint; None: for ever, there is nothing to move."""
        if self._oldest_time is None:
            return None
        return max(0.0, min(self.idle_seconds, self._oldest_time + self.age_seconds - now))
