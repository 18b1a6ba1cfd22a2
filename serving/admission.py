"""How many calls may run at once: who comes beyond that is sent away before a byte of what it brings is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from attrs import define, field

from linkbound.domain.errors import ResourceExhaustedError


@define
class CallLimit:
    """Counts the calls of one or several methods; `refusal` makes the error of one too many. Of one event loop."""

    _limit: int
    _refusal: Callable[[], ResourceExhaustedError]
    _running_count: int = field(init=False, default=0)

    def refusal(self) -> ResourceExhaustedError | None:
        """The error of one more call; None where it may run."""
        return self._refusal() if self._running_count >= self._limit else None

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Counts a call while it runs. Raises ResourceExhaustedError where it is one too many."""
        refusal = self.refusal()
        if refusal is not None:
            raise refusal
        self._running_count += 1
        try:
            yield
        finally:
            self._running_count -= 1
