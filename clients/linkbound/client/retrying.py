"""When a delivery tries again, and when it gives up."""

from __future__ import annotations

import asyncio
import logging
import random

from linkbound.client.backoff import pause_seconds
from linkbound.client.writer_parts import Patience
from linkbound.domain.errors import (
    DeadlineExceededError,
    Error,
    InternalError,
    OutOfRangeError,
    ResourceExhaustedError,
    UnavailableError,
)

FAULT_BACKOFF_SECONDS = 30.0
"""For what the service says will not help to try again, and may be mended by people meanwhile."""

_log = logging.getLogger(__name__)


class Retrying:
    """The pauses of one delivery, and what the log is told of an outage: one line at its begin and one at its end."""

    def __init__(self, patience: Patience, name: str) -> None:
        self._patience = patience
        self._name = name
        self._failures_in_a_row = 0
        self._failure_time = 0.0
        self._is_away = False
        self.progress_time = asyncio.get_running_loop().time()
        """When something was last stored, or had to be."""

    @property
    def give_up_time(self) -> float | None:
        """When waiting for the service ends; None: never."""
        if self._patience.timeout_seconds is None or self._patience.waits_out_faults:
            return None
        return self.progress_time + self._patience.timeout_seconds

    def note_progress(self) -> None:
        """Something was stored, or has to be from now on."""
        self.progress_time = asyncio.get_running_loop().time()

    def note_success(self) -> None:
        """The service answers."""
        self._failures_in_a_row = 0
        if self._is_away:
            self._is_away = False
            _log.info("%s: the service is back", self._name)

    async def wait_after(self, error: Error) -> None:
        """Wait until it is time to try again; raise `error` if that would not help or is too late."""
        asked_seconds = self._asked_seconds(error)
        clock = asyncio.get_running_loop()
        # What moved on in between failed anew.
        self._failures_in_a_row = 1 if self.progress_time > self._failure_time else self._failures_in_a_row + 1
        self._failure_time = clock.time()
        # Many writers lose the same service at the same moment; they shall not come back at the same moment.
        jittered_seconds = pause_seconds(self._failures_in_a_row) * random.uniform(0.5, 1.0)
        delay_seconds = max(asked_seconds, jittered_seconds)
        give_up_time = self.give_up_time
        if give_up_time is not None and clock.time() + delay_seconds > give_up_time:
            raise error
        if self._patience.waits_out_faults and not self._is_away:
            self._is_away = True
            _log.warning("%s: the service is away, what is written is kept meanwhile: %s", self._name, error.message)
        await asyncio.sleep(delay_seconds)

    def _asked_seconds(self, error: Error) -> float:
        """How long to wait at least before trying again after `error`; raises it where that does not help."""
        if isinstance(error, UnavailableError | OutOfRangeError):
            return 0.0
        if isinstance(error, ResourceExhaustedError) and error.retry_delay_seconds is not None:
            return error.retry_delay_seconds
        is_fault = isinstance(error, ResourceExhaustedError | InternalError | DeadlineExceededError)
        if is_fault and self._patience.waits_out_faults:
            return FAULT_BACKOFF_SECONDS
        raise error
