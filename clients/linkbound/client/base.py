"""What the two blocking clients share: opening, closing, deadlines and pages, and how a question becomes a method."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Concatenate, ParamSpec, Self, TypeVar

from attrs import evolve

from linkbound.client.backend import Backend, ChannelOptions, Connection
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
    from pyarrow import RecordBatchReader

    from linkbound.domain.run_watch import RunUpdate
    from linkbound.domain.schedule import ScheduleEstimate, SchedulePass, ScheduleSummary
    from linkbound.domain.sweep import SweepColumns

RequestT = TypeVar("RequestT")
ResultT = TypeVar("ResultT")
AnswerT = TypeVar("AnswerT")
EntryT = TypeVar("EntryT")
P = ParamSpec("P")


class Client(ABC):
    """A service behind a backend. Threads may share one."""

    def __init__(
        self,
        target: str = LOCAL,
        *,
        data_directory: Path | str | None = None,
        token: str | None = None,
        tls: TlsFiles | None = None,
        timeout_seconds: Timeout = UNSET,
        channel_options: ChannelOptions = (),
        channel: grpc.Channel | None = None,
    ) -> None:
        connection = Connection(target=parse_target(target), token=token, tls=tls, channel_options=channel_options)
        resolve_timeout_seconds(timeout_seconds, default_seconds=None)
        is_local = channel is None and connection.target.kind is TargetKind.LOCAL
        self._open_backend: Backend | None = (
            self._local(data_directory) if is_local else self._remote(connection, channel)
        )
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

    @staticmethod
    @abstractmethod
    def _local(data_directory: Path | str | None) -> Backend:
        """The service in this process, with what it keeps in `data_directory`."""

    @staticmethod
    @abstractmethod
    def _remote(connection: Connection, channel: grpc.Channel | None) -> Backend:
        """The service at the other end of `channel`, or of one that is opened for `connection`."""

    def _ask(self, question: Question[AnswerT]) -> AnswerT:
        result = self._call(question.operation, question.request, question.timeout_seconds)
        return question.answer_of(result)

    def _list(self, listing: Listing[EntryT]) -> Iterator[EntryT]:
        request = listing.first_page
        while True:
            page = self._call(listing.operation, request, listing.timeout_seconds)
            for unreadable in page.unreadable:
                warnings.warn(UnreadableEntryWarning(unreadable), stacklevel=2)
            yield from page.entries
            if not page.next_page_token:
                return
            request = evolve(request, page_token=page.next_page_token)

    def _sweep(self, sweep: Sweep) -> Iterator[SweepColumns]:
        from linkbound.client.sweeps import swept

        deadline_seconds = resolve_timeout_seconds(sweep.timeout_seconds, self._timeout_seconds, default_seconds=None)
        return swept(self._backend, sweep.request, deadline_seconds)

    def _select(self, query: SqlQuery) -> RecordBatchReader:
        from linkbound.client.sql_rows import check_pyarrow, rows_of

        check_pyarrow()
        deadline_seconds = resolve_timeout_seconds(query.timeout_seconds, self._timeout_seconds, default_seconds=None)
        return rows_of(self._backend.sql(query.request, deadline_seconds))

    def _watch(self, watch: Watch) -> Iterator[RunUpdate]:
        from linkbound.client.run_watches import watched

        deadline_seconds = resolve_timeout_seconds(watch.timeout_seconds, self._timeout_seconds, default_seconds=None)
        return watched(self._backend, watch.request, deadline_seconds)

    def _schedule(self, schedule: ScheduleQuestion) -> Iterator[SchedulePass | ScheduleSummary]:
        from linkbound.client.schedules import scheduled

        deadline_seconds = resolve_timeout_seconds(
            schedule.timeout_seconds, self._timeout_seconds, default_seconds=None
        )
        return scheduled(self._backend, schedule.request, deadline_seconds)

    def _call(self, operation: Operation[RequestT, ResultT], request: RequestT, timeout_seconds: Timeout) -> ResultT:
        deadline_seconds = resolve_timeout_seconds(
            timeout_seconds, self._timeout_seconds, default_seconds=operation.call_class.deadline_seconds
        )
        return self._backend.call(operation, request, deadline_seconds)


def asks(asked: Callable[P, Question[AnswerT]]) -> Callable[Concatenate[Client, P], AnswerT]:
    """The method that asks a question and returns the answer."""

    def method(self: Client, /, *args: P.args, **keywords: P.kwargs) -> AnswerT:
        return self._ask(asked(*args, **keywords))

    return described(method, asked, answer_name(asked))


def lists(asked: Callable[P, Listing[EntryT]]) -> Callable[Concatenate[Client, P], Iterator[EntryT]]:
    """The method that yields the entries of a listing."""

    def method(self: Client, /, *args: P.args, **keywords: P.kwargs) -> Iterator[EntryT]:
        return self._list(asked(*args, **keywords))

    return described(method, asked, f"Iterator[{answer_name(asked)}]")


def sweeps(asked: Callable[P, Sweep]) -> Callable[Concatenate[Client, P], Iterator[SweepColumns]]:
    """The method that yields the points of a sweep, in stretches."""

    def method(self: Client, /, *args: P.args, **keywords: P.kwargs) -> Iterator[SweepColumns]:
        return self._sweep(asked(*args, **keywords))

    return described(method, asked, "Iterator[SweepColumns]")


def selects(asked: Callable[P, SqlQuery]) -> Callable[Concatenate[Client, P], RecordBatchReader]:
    """The method that reads the rows of a query."""

    def method(self: Client, /, *args: P.args, **keywords: P.kwargs) -> RecordBatchReader:
        return self._select(asked(*args, **keywords))

    return described(method, asked, "RecordBatchReader")


def watches(asked: Callable[P, Watch]) -> Callable[Concatenate[Client, P], Iterator[RunUpdate]]:
    """The method that yields what happens to runs."""

    def method(self: Client, /, *args: P.args, **keywords: P.kwargs) -> Iterator[RunUpdate]:
        return self._watch(asked(*args, **keywords))

    return described(method, asked, "Iterator[RunUpdate]")


def schedules(
    asked: Callable[P, ScheduleQuestion],
) -> Callable[Concatenate[Client, P], Iterator[SchedulePass | ScheduleSummary]]:
    """The method that yields the passes of a schedule, then its summary."""

    def method(self: Client, /, *args: P.args, **keywords: P.kwargs) -> Iterator[SchedulePass | ScheduleSummary]:
        return self._schedule(asked(*args, **keywords))

    return described(method, asked, "Iterator[SchedulePass | ScheduleSummary]")


def whole_schedules(asked: Callable[P, ScheduleQuestion]) -> Callable[Concatenate[Client, P], ScheduleEstimate]:
    """The method that returns a schedule as a whole."""

    def method(self: Client, /, *args: P.args, **keywords: P.kwargs) -> ScheduleEstimate:
        from linkbound.client.schedules import whole_schedule

        return whole_schedule(self._schedule(asked(*args, **keywords)))

    return described(method, asked, "ScheduleEstimate")
