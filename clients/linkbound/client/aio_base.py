"""What the two asyncio clients share: opening, closing, deadlines and pages, and how a question becomes a method."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Coroutine
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from attrs import evolve

from linkbound.client.backend import AsyncBackend, ChannelOptions, Connection
from linkbound.client.closing import Closing, closed_error
from linkbound.client.operations import Operation
from linkbound.client.options import UNSET, Timeout, TlsFiles, resolve_timeout_seconds
from linkbound.client.question import (
    Listing,
    Question,
    ScheduleQuestion,
    SqlQuery,
    Sweep,
    Watch,
    answer_name,
    described,
)
from linkbound.client.target import LOCAL, TargetKind, parse_target
from linkbound.domain.paging import UnreadableEntryWarning

if TYPE_CHECKING:
    from pathlib import Path

    import grpc

    from linkbound.client.sql_rows import AsyncRecordBatchReader
    from linkbound.domain.run_watch import RunUpdate
    from linkbound.domain.schedule import ScheduleEstimate, SchedulePass, ScheduleSummary
    from linkbound.domain.sweep import SweepColumns

RequestT = TypeVar("RequestT")
ResultT = TypeVar("ResultT")
AnswerT = TypeVar("AnswerT")
EntryT = TypeVar("EntryT")
P = ParamSpec("P")


class AsyncClient(ABC):
    """A service behind a backend. To be used on one event loop."""

    def __init__(
        self,
        target: str = LOCAL,
        *,
        data_directory: Path | str | None = None,
        token: str | None = None,
        tls: TlsFiles | None = None,
        timeout_seconds: Timeout = UNSET,
        channel_options: ChannelOptions = (),
        channel: grpc.aio.Channel | None = None,
    ) -> None:
        connection = Connection(target=parse_target(target), token=token, tls=tls, channel_options=channel_options)
        resolve_timeout_seconds(timeout_seconds, default_seconds=None)
        is_local = channel is None and connection.target.kind is TargetKind.LOCAL
        self._open_backend: AsyncBackend | None = (
            self._local(data_directory) if is_local else self._remote(connection, channel)
        )
        self._timeout_seconds = timeout_seconds
        self._closing = Closing()

    async def __aenter__(self) -> Self:
        """The client itself, closed at the end of the block."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close what the client opened; a channel that was given stays open. Closing twice is fine.

        An open sample writer ends with FailedPreconditionError (CLIENT_CLOSED).
        """
        self._closing.close()
        backend, self._open_backend = self._open_backend, None
        if backend is not None:
            await backend.close()

    async def wait_until_ready(self, timeout_seconds: Timeout) -> None:
        """Return once the service reports that it takes calls.

        Raises DeadlineExceededError if it does not within `timeout_seconds`.
        """
        await self._backend.wait_until_ready(resolve_timeout_seconds(timeout_seconds, default_seconds=None))

    @property
    def _backend(self) -> AsyncBackend:
        if self._open_backend is None:
            raise closed_error()
        return self._open_backend

    @staticmethod
    @abstractmethod
    def _local(data_directory: Path | str | None) -> AsyncBackend:
        """The service in this process, with what it keeps in `data_directory`."""

    @staticmethod
    @abstractmethod
    def _remote(connection: Connection, channel: grpc.aio.Channel | None) -> AsyncBackend:
        """The service at the other end of `channel`, or of one that is opened for `connection`."""

    async def _ask(self, question: Question[AnswerT]) -> AnswerT:
        result = await self._call(question.operation, question.request, question.timeout_seconds)
        return question.answer_of(result)

    async def _list(self, listing: Listing[EntryT]) -> AsyncIterator[EntryT]:
        request = listing.first_page
        while True:
            page = await self._call(listing.operation, request, listing.timeout_seconds)
            for unreadable in page.unreadable:
                warnings.warn(UnreadableEntryWarning(unreadable), stacklevel=2)
            for entry in page.entries:
                yield entry
            if not page.next_page_token:
                return
            request = evolve(request, page_token=page.next_page_token)

    def _sweep(self, sweep: Sweep) -> AsyncIterator[SweepColumns]:
        from linkbound.client.sweeps import swept_async

        deadline_seconds = resolve_timeout_seconds(sweep.timeout_seconds, self._timeout_seconds, default_seconds=None)
        return swept_async(self._backend, sweep.request, deadline_seconds)

    async def _select(self, query: SqlQuery) -> AsyncRecordBatchReader:
        from linkbound.client.sql_rows import async_rows_of, check_pyarrow

        check_pyarrow()
        deadline_seconds = resolve_timeout_seconds(query.timeout_seconds, self._timeout_seconds, default_seconds=None)
        return await async_rows_of(self._backend.sql(query.request, deadline_seconds))

    def _watch(self, watch: Watch) -> AsyncIterator[RunUpdate]:
        from linkbound.client.run_watches import watched_async

        deadline_seconds = resolve_timeout_seconds(watch.timeout_seconds, self._timeout_seconds, default_seconds=None)
        return watched_async(self._backend, watch.request, deadline_seconds)

    def _schedule(self, schedule: ScheduleQuestion) -> AsyncIterator[SchedulePass | ScheduleSummary]:
        from linkbound.client.schedules import scheduled_async

        deadline_seconds = resolve_timeout_seconds(
            schedule.timeout_seconds, self._timeout_seconds, default_seconds=None
        )
        return scheduled_async(self._backend, schedule.request, deadline_seconds)

    async def _call(
        self, operation: Operation[RequestT, ResultT], request: RequestT, timeout_seconds: Timeout
    ) -> ResultT:
        deadline_seconds = resolve_timeout_seconds(
            timeout_seconds, self._timeout_seconds, default_seconds=operation.call_class.deadline_seconds
        )
        return await self._backend.call(operation, request, deadline_seconds)


def asks(
    asked: Callable[P, Question[AnswerT]],
) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, AnswerT]]:
    """The method that asks a question and returns the answer."""

    async def method(self: AsyncClient, /, *args: P.args, **keywords: P.kwargs) -> AnswerT:
        return await self._ask(asked(*args, **keywords))

    return described(method, asked, answer_name(asked))


def lists(asked: Callable[P, Listing[EntryT]]) -> Callable[Concatenate[AsyncClient, P], AsyncIterator[EntryT]]:
    """The method that yields the entries of a listing."""

    def method(self: AsyncClient, /, *args: P.args, **keywords: P.kwargs) -> AsyncIterator[EntryT]:
        return self._list(asked(*args, **keywords))

    return described(method, asked, f"AsyncIterator[{answer_name(asked)}]")


def sweeps(asked: Callable[P, Sweep]) -> Callable[Concatenate[AsyncClient, P], AsyncIterator[SweepColumns]]:
    """The method that yields the points of a sweep, in stretches."""

    def method(self: AsyncClient, /, *args: P.args, **keywords: P.kwargs) -> AsyncIterator[SweepColumns]:
        return self._sweep(asked(*args, **keywords))

    return described(method, asked, "AsyncIterator[SweepColumns]")


def selects(
    asked: Callable[P, SqlQuery],
) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, AsyncRecordBatchReader]]:
    """The method that reads the rows of a query."""

    async def method(self: AsyncClient, /, *args: P.args, **keywords: P.kwargs) -> AsyncRecordBatchReader:
        return await self._select(asked(*args, **keywords))

    return described(method, asked, "AsyncRecordBatchReader")


def watches(asked: Callable[P, Watch]) -> Callable[Concatenate[AsyncClient, P], AsyncIterator[RunUpdate]]:
    """The method that yields what happens to runs."""

    def method(self: AsyncClient, /, *args: P.args, **keywords: P.kwargs) -> AsyncIterator[RunUpdate]:
        return self._watch(asked(*args, **keywords))

    return described(method, asked, "AsyncIterator[RunUpdate]")


def schedules(
    asked: Callable[P, ScheduleQuestion],
) -> Callable[Concatenate[AsyncClient, P], AsyncIterator[SchedulePass | ScheduleSummary]]:
    """The method that yields the passes of a schedule, then its summary."""

    def method(
        self: AsyncClient, /, *args: P.args, **keywords: P.kwargs
    ) -> AsyncIterator[SchedulePass | ScheduleSummary]:
        return self._schedule(asked(*args, **keywords))

    return described(method, asked, "AsyncIterator[SchedulePass | ScheduleSummary]")


def whole_schedules(
    asked: Callable[P, ScheduleQuestion],
) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, ScheduleEstimate]]:
    """The method that returns a schedule as a whole."""

    async def method(self: AsyncClient, /, *args: P.args, **keywords: P.kwargs) -> ScheduleEstimate:
        from linkbound.client.schedules import whole_schedule

        return whole_schedule([entry async for entry in self._schedule(asked(*args, **keywords))])

    return described(method, asked, "ScheduleEstimate")
