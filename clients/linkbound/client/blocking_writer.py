"""What the writers for code that blocks share: an asyncio writer on an event loop in one thread."""

from __future__ import annotations

from types import TracebackType
from typing import Generic, Protocol, Self, TypeVar

from linkbound.client.loop_thread import LoopThread
from linkbound.domain.errors import FailedPreconditionError


class AsyncWriter(Protocol):
    """What is asked of the writer below."""

    async def __aenter__(self) -> Self:
        """Open it."""
        ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it once everything is stored."""
        ...

    async def flush(self) -> None:
        """Wait until everything is stored."""
        ...


WriterT = TypeVar("WriterT", bound=AsyncWriter)


class BlockingWriter(Generic[WriterT]):
    """Runs the coroutines of `writer`; `_noun` names it in messages, `_thread_name` the thread."""

    _noun: str
    _thread_name: str

    def __init__(self, writer: WriterT) -> None:
        self._writer = writer
        self._loop: LoopThread | None = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        loop = self._open_loop()
        try:
            loop.run(self._writer.__aexit__(kind, error, trace))
        finally:
            loop.stop()

    def flush(self) -> None:
        """Return once everything written is stored. Raises the error that ended the writer."""
        self._open_loop().run(self._writer.flush())

    def _enter(self) -> Self:
        if self._loop is not None:
            raise FailedPreconditionError(f"a {self._noun} is entered once", reason="WRITER_CLOSED")
        self._loop = LoopThread(self._thread_name)
        try:
            self._loop.run(self._writer.__aenter__())
        except BaseException:
            self._loop.stop()
            raise
        return self

    def _open_loop(self) -> LoopThread:
        if self._loop is None or self._loop.is_stopped:
            raise FailedPreconditionError(f"the {self._noun} is not open", reason="WRITER_CLOSED")
        return self._loop
