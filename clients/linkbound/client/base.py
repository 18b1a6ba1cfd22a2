"""What the two blocking clients share: opening, closing, deadlines and pages."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from linkbound.client.backend import Backend
from linkbound.client.closing import Closing, closed_error
from linkbound.client.operations import Operation
from linkbound.client.options import Timeout, resolve_timeout_seconds
from linkbound.domain.paging import Page, PageRequest

if TYPE_CHECKING:
    from linkbound.domain.sweep import SweepColumns, SweepRequest

RequestT = TypeVar("RequestT")
ResultT = TypeVar("ResultT")
EntryT = TypeVar("EntryT")


class Client:
    """A service behind a backend. Threads may share one."""

    def __init__(self, backend: Backend, timeout_seconds: Timeout) -> None:
        resolve_timeout_seconds(timeout_seconds, default_seconds=None)
        self._open_backend: Backend | None = backend
        self._timeout_seconds = timeout_seconds
        self._closing = Closing()

    def __enter__(self) -> Self:
        """The client itself, closed at the end of the block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close what the client opened; a channel that was given stays open. Closing twice is fine.

        An open sample writer ends with FailedPreconditionError (CLIENT_CLOSED).
        """
        self._closing.close()
        backend, self._open_backend = self._open_backend, None
        if backend is not None:
            backend.close()

    def wait_until_ready(self, timeout_seconds: Timeout) -> None:
        """Return once the service reports that it takes calls.

        Raises DeadlineExceededError if it does not within `timeout_seconds`.
        """
        self._backend.wait_until_ready(resolve_timeout_seconds(timeout_seconds, default_seconds=None))

    @property
    def _backend(self) -> Backend:
        if self._open_backend is None:
            raise closed_error()
        return self._open_backend

    def _call(self, operation: Operation[RequestT, ResultT], request: RequestT, timeout_seconds: Timeout) -> ResultT:
        deadline_seconds = resolve_timeout_seconds(
            timeout_seconds, self._timeout_seconds, default_seconds=operation.call_class.deadline_seconds
        )
        return self._backend.call(operation, request, deadline_seconds)

    def _entries(self, operation: Operation[PageRequest, Page[EntryT]], timeout_seconds: Timeout) -> Iterator[EntryT]:
        page_token = ""
        while True:
            page = self._call(operation, PageRequest(page_token=page_token), timeout_seconds)
            yield from page.entries
            page_token = page.next_page_token
            if not page_token:
                return

    def _sweep(self, request: SweepRequest, timeout_seconds: Timeout) -> Iterator[SweepColumns]:
        from linkbound.client.sweeps import swept

        deadline_seconds = resolve_timeout_seconds(timeout_seconds, self._timeout_seconds, default_seconds=None)
        return swept(self._backend, request, deadline_seconds)
