"""The sample writer for code that blocks: the asyncio writer on an event loop in one thread."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Coroutine, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from linkbound.client.aio_sample_writer import AsyncSampleWriter
from linkbound.client.closing import Closing
from linkbound.client.options import Timeout
from linkbound.client.sample_stream import SampleConnector
from linkbound.domain.errors import FailedPreconditionError
from linkbound.domain.samples import OpenStreamRequest, SampleColumns

T = TypeVar("T")


class SampleWriter:
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
        self._writer = AsyncSampleWriter(connector, request, timeout_seconds, closing)
        self._loop: _LoopThread | None = None

    @property
    def committed(self) -> int:
        """Highest sequence number that is known to be stored."""
        return self._writer.committed

    @property
    def rejected(self) -> int:
        """Samples that the service did not store because they are bad; `rejection_message` says why.

        Those of a batch whose acknowledgement was lost with a connection are missing; the store's ledger has them.
        """
        return self._writer.rejected

    @property
    def rejection_message(self) -> str:
        """Why the last rejected samples were not stored; empty where none were."""
        return self._writer.rejection_message

    def __enter__(self) -> Self:
        """The writer, once its stream is open."""
        if self._loop is not None:
            raise FailedPreconditionError("a sample writer is entered once", reason="WRITER_CLOSED")
        self._loop = _LoopThread()
        try:
            self._loop.run(self._writer.__aenter__())
        except BaseException:
            self._loop.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        loop = self._open_loop()
        try:
            loop.run(self._writer.__aexit__(kind, error, trace))
        finally:
            loop.stop()

    def write(self, columns: Sequence[SampleColumns]) -> None:
        """Queue samples of the series that the writer was opened with, waiting while too many batches are under way.

        What is too large for one batch is cut into several. Raises InvalidArgumentError for columns of unequal length
        or an unknown series, and the error that ended the writer.
        """
        self._open_loop().run(self._writer.write(columns))

    def flush(self) -> None:
        """Return once everything written is stored. Raises the error that ended the writer."""
        self._open_loop().run(self._writer.flush())

    def _open_loop(self) -> _LoopThread:
        if self._loop is None or self._loop.is_stopped:
            raise FailedPreconditionError("the sample writer is not open", reason="WRITER_CLOSED")
        return self._loop


class _LoopThread:
    """An event loop that runs in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._stopped = asyncio.Event()
        self._thread = threading.Thread(target=self._serve, name="linkbound-sample-writer", daemon=True)
        self._thread.start()

    @property
    def is_stopped(self) -> bool:
        """Whether nothing can run any more."""
        return self._loop.is_closed()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`; interrupted work is cancelled."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def stop(self) -> None:
        """Cancel what still runs, wait until it has ended, and end the loop and its thread."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join()

    def _serve(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._stopped.wait())
