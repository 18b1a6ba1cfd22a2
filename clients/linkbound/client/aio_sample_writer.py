"""Writes counter samples over a stream that may break: numbering, window, resuming and flushing."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from attrs import evolve

from linkbound.client.closing import Closing, closed_error
from linkbound.client.options import Timeout, resolve_timeout_seconds
from linkbound.client.sample_batches import check_columns, split_columns
from linkbound.client.sample_stream import BatchRefusal, SampleConnection, SampleConnector, SampleEvent
from linkbound.client.sample_window import SampleWindow
from linkbound.domain.errors import (
    Error,
    FailedPreconditionError,
    InvalidArgumentError,
    OutOfRangeError,
    ResourceExhaustedError,
    UnavailableError,
)
from linkbound.domain.samples import LARGEST_SAMPLE_COUNT, OpenStreamRequest, SampleColumns
from linkbound.domain.words import counted

DEFAULT_TIMEOUT_SECONDS = 60.0
"""How long the service may be away; agents start before servers do."""

_FIRST_BACKOFF_SECONDS = 0.1
_LARGEST_BACKOFF_SECONDS = 2.0


class AsyncSampleWriter:
    """Writes samples of one writer, each stored exactly once. Used as a context manager; made by `sample_writer`.

    Entering opens the stream. `write` waits while as many batches are under way as the service allows. A break is
    bridged: the stream is opened again and what is not stored is sent again. Leaving waits until everything is stored.
    If the service stays away for longer than the timeout, or refuses, then `write`, `flush` and leaving the block raise
    its error, with `undeliveredSampleCount` in the metadata where samples are lost. So they do after the client was
    closed: FailedPreconditionError (CLIENT_CLOSED).
    """

    def __init__(
        self, connector: SampleConnector, request: OpenStreamRequest, timeout_seconds: Timeout, closing: Closing
    ) -> None:
        self._timeout_seconds = resolve_timeout_seconds(timeout_seconds, default_seconds=DEFAULT_TIMEOUT_SECONDS)
        self._connector = connector
        self._request = request
        self._closing = closing
        self._window = SampleWindow()
        self._changed = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._runner: asyncio.Task[None] | None = None
        self._failure: Exception | None = None
        self._is_ending = False
        self._is_stopping = False
        # When something was last stored, or had to be: the writer gives up a timeout later.
        self._progress_time = 0.0
        self._stall_timer: asyncio.Timeout | None = None

    @property
    def committed(self) -> int:
        """Highest sequence number that is known to be stored."""
        return self._window.committed_sequence_number

    @property
    def rejected(self) -> int:
        """Samples that the service did not store because they are bad; `rejection_message` says why.

        Those of a batch whose acknowledgement was lost with a connection are missing; the store's ledger has them.
        """
        return self._window.rejected_sample_count

    @property
    def rejection_message(self) -> str:
        """Why the last rejected samples were not stored; empty where none were."""
        return self._window.rejection_message

    async def __aenter__(self) -> Self:
        """The writer, once its stream is open."""
        if self._runner is not None:
            raise FailedPreconditionError("a sample writer is entered once", reason="WRITER_CLOSED")
        self._note_progress()
        self._loop = asyncio.get_running_loop()
        self._closing.add(self._abandon_from_any_thread)
        self._runner = asyncio.create_task(self._run())
        self._runner.add_done_callback(lambda _: self._announce())
        try:
            await self._wait_until(lambda: self._window.has_opened)
        except BaseException:
            await self._stop()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_ending = True
        self._announce()
        try:
            if self._runner is not None:
                # Not awaited itself: leaving the block shall be cancelled by who waits for it, never by the runner.
                await asyncio.wait([self._runner])
        finally:
            await self._stop()
        if self._failure is None or self._window.is_empty:
            return
        if error is None:
            raise self._failure
        if error is not self._failure:
            error.add_note(f"{_undelivered(self._window.pending_sample_count)}: {self._failure}")

    async def write(self, columns: Sequence[SampleColumns]) -> None:
        """Queue samples of the series that the writer was opened with, waiting while too many batches are under way.

        What is too large for one batch is cut into several. Raises InvalidArgumentError for columns of unequal length
        or an unknown series, and the error that ended the writer.
        """
        check_columns(columns, len(self._request.series))
        for part in split_columns(columns, self._window.max_batch_bytes, LARGEST_SAMPLE_COUNT):
            await self._wait_until(lambda: self._window.has_room and self._is_running)
            was_empty = self._window.is_empty
            self._window.add(part)
            if was_empty:
                self._note_progress()
            self._announce()

    async def flush(self) -> None:
        """Return once everything written is stored. Raises the error that ended the writer."""
        await self._wait_until(lambda: self._window.is_empty)

    async def _wait_until(self, is_met: Callable[[], bool]) -> None:
        if self._runner is None or self._is_ending:
            raise _not_open_error()
        while True:
            if self._failure is not None:
                raise self._failure
            if is_met():
                return
            if not self._is_running:
                raise _not_open_error()
            await self._changed.wait()

    def _announce(self) -> None:
        # Wakes every waiter once; each looks again at what it waits for.
        self._changed.set()
        self._changed = asyncio.Event()

    def _note_progress(self) -> None:
        self._progress_time = asyncio.get_running_loop().time()
        if self._stall_timer is not None:
            self._stall_timer.reschedule(None if self._window.is_empty else self._give_up_time())

    def _give_up_time(self) -> float | None:
        return None if self._timeout_seconds is None else self._progress_time + self._timeout_seconds

    @property
    def _is_running(self) -> bool:
        return self._runner is not None and not self._runner.done()

    async def _stop(self) -> None:
        self._is_stopping = True
        self._closing.remove(self._abandon_from_any_thread)
        try:
            if self._runner is not None and not self._runner.done():
                self._runner.cancel()
                await asyncio.wait([self._runner])
        finally:
            await self._connector.close()

    def _abandon_from_any_thread(self) -> None:
        if self._loop is None:
            return
        with contextlib.suppress(RuntimeError):
            if asyncio.get_running_loop() is self._loop:
                self._abandon()
                return
        # The loop is gone if the writer ended at the same moment.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._abandon)

    def _abandon(self) -> None:
        if self._runner is not None and not self._runner.done():
            self._fail(closed_error())
            self._runner.cancel()

    async def _run(self) -> None:
        try:
            await self._keep_streaming()
        except asyncio.CancelledError:
            if self._is_stopping:
                raise
            # The client was closed, or its channel: gRPC then cancels every call.
            self._fail(closed_error())
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        if self._failure is not None:
            return
        if isinstance(error, Error) and not self._window.is_empty:
            error.metadata["undeliveredSampleCount"] = str(self._window.pending_sample_count)
            error.add_note(_undelivered(self._window.pending_sample_count))
        self._failure = error
        self._announce()

    async def _keep_streaming(self) -> None:
        failures_in_a_row = 0
        while not (self._is_ending and self._window.is_empty):
            progress_time = self._progress_time
            try:
                await self._stream_once()
            except Error as error:
                failures_in_a_row = 1 if self._progress_time > progress_time else failures_in_a_row + 1
                await self._wait_before_retry(error, failures_in_a_row)

    async def _wait_before_retry(self, error: Error, failures_in_a_row: int) -> None:
        """Wait until it is time to try again; raise `error` if that would not help or is too late."""
        asked_seconds = 0.0
        if isinstance(error, ResourceExhaustedError) and error.retry_delay_seconds is not None:
            asked_seconds = error.retry_delay_seconds
        elif not isinstance(error, UnavailableError | OutOfRangeError):
            raise error
        backoff_seconds = min(_FIRST_BACKOFF_SECONDS * 2 ** (failures_in_a_row - 1), _LARGEST_BACKOFF_SECONDS)
        # Many writers lose the same service at the same moment; they shall not come back at the same moment.
        delay_seconds = max(asked_seconds, backoff_seconds * random.uniform(0.5, 1.0))
        give_up_time = self._give_up_time()
        if give_up_time is not None and asyncio.get_running_loop().time() + delay_seconds > give_up_time:
            raise error
        await asyncio.sleep(delay_seconds)

    async def _stream_once(self) -> None:
        """Serve one stream until the writer ends; raise the error that broke it."""
        connection = await self._connect()
        try:
            self._window.open(connection.committed_sequence_number, connection.limits)
            self._announce()
            await self._serve(connection)
        finally:
            if self._window.is_empty:
                self._note_progress()
            await connection.close()

    async def _connect(self) -> SampleConnection:
        request = evolve(self._request, last_acked_sequence_number=self._window.committed_sequence_number)
        try:
            async with asyncio.timeout_at(self._give_up_time()):
                return await self._connector.connect(request)
        except TimeoutError:
            raise UnavailableError(f"the service opened no stream within {self._timeout_seconds:g} s") from None

    async def _serve(self, connection: SampleConnection) -> None:
        receiving = asyncio.create_task(self._receive(connection))
        sending = asyncio.create_task(self._send(connection))
        try:
            await asyncio.gather(receiving, sending)
        finally:
            receiving.cancel()
            sending.cancel()
            await asyncio.gather(receiving, sending, return_exceptions=True)

    async def _send(self, connection: SampleConnection) -> None:
        while True:
            changed = self._changed
            batch = self._window.take_unsent()
            if batch is not None:
                await connection.send(batch)
            elif self._is_ending and self._window.is_empty:
                await connection.finish()
                return
            else:
                await changed.wait()

    async def _receive(self, connection: SampleConnection) -> None:
        try:
            async with asyncio.timeout(None) as self._stall_timer:
                self._stall_timer.reschedule(None if self._window.is_empty else self._give_up_time())
                while (event := await connection.receive()) is not None:
                    self._take(event)
        except TimeoutError:
            raise UnavailableError(f"the service stored nothing within {self._timeout_seconds:g} s") from None
        finally:
            self._stall_timer = None
        if not (self._is_ending and self._window.is_empty):
            raise UnavailableError("the service ended the stream", reason="STREAM_ENDED")

    def _take(self, event: SampleEvent) -> None:
        if isinstance(event, BatchRefusal):
            if not isinstance(event.error, InvalidArgumentError):
                raise event.error
            self._window.refuse(event.sequence_number, event.error.message)
            self._note_progress()
        elif self._window.acknowledge(event):
            self._note_progress()
        self._announce()


def _not_open_error() -> FailedPreconditionError:
    return FailedPreconditionError("the sample writer is not open", reason="WRITER_CLOSED")


def _undelivered(sample_count: int) -> str:
    return f"{counted(sample_count, 'sample')} {'was' if sample_count == 1 else 'were'} not delivered"
