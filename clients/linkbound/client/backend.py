"""What a client needs of whoever answers it: a server at the other end of a channel, or this process."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from attrs import field, frozen

from linkbound.client.operations import Operation
from linkbound.client.options import TlsFiles
from linkbound.client.target import Target
from linkbound.domain.errors import InvalidArgumentError, Violation

if TYPE_CHECKING:
    from linkbound.client.sample_stream import SampleConnector
    from linkbound.domain.run_watch import RunUpdate, WatchRunsRequest
    from linkbound.domain.schedule import SchedulePart, ScheduleRequest
    from linkbound.domain.sql import SqlPart, SqlRequest
    from linkbound.domain.sweep import SweepColumns, SweepRequest

RequestT = TypeVar("RequestT")
ResultT = TypeVar("ResultT")

ChannelOptions = Sequence[tuple[str, str | int]]
"""Channel arguments of gRPC; one with a name that the client sets itself takes its place."""


@frozen(kw_only=True)
class Connection:
    """How a service is reached. The token is never shown."""

    target: Target
    token: str | None = field(default=None, repr=False)
    tls: TlsFiles | None = None
    channel_options: ChannelOptions = ()

    def __attrs_post_init__(self) -> None:
        """A token travels in a header: visible ASCII only. The error does not repeat it."""
        if self.token is not None and not (self.token.isascii() and self.token.isprintable() and self.token.strip()):
            raise InvalidArgumentError([Violation("token", "is not visible ASCII text")])


class Backend(Protocol):
    """Answers operations and blocks meanwhile. Every method raises the classes of `linkbound.domain.errors`."""

    def call(
        self, operation: Operation[RequestT, ResultT], request: RequestT, timeout_seconds: float | None
    ) -> ResultT:
        """The result of `operation`."""
        ...

    def wait_until_ready(self, timeout_seconds: float | None) -> None:
        """Return once the service takes calls."""
        ...

    def sweep(self, request: SweepRequest, timeout_seconds: float | None) -> Generator[SweepColumns, None, None]:
        """The stretches of points of one stream, which may break; for the estimator."""
        ...

    def sql(self, request: SqlRequest, timeout_seconds: float | None) -> Generator[SqlPart, None, None]:
        """The schema, batches of rows and the summary of one query; for the ingest service."""
        ...

    def watch_runs(self, request: WatchRunsRequest, timeout_seconds: float | None) -> Generator[RunUpdate, None, None]:
        """What one stream tells of runs, which may break; for the ingest service."""
        ...

    def schedule(self, request: ScheduleRequest, timeout_seconds: float | None) -> Generator[SchedulePart, None, None]:
        """The parts of a schedule of one stream, which may break; for the estimator."""
        ...

    def sample_connector(self) -> SampleConnector:
        """What opens sample streams; to be used on one event loop."""
        ...

    def close(self) -> None:
        """Let go of what was opened."""
        ...


class AsyncBackend(Protocol):
    """Answers operations on an event loop. Every method raises the classes of `linkbound.domain.errors`."""

    async def call(
        self, operation: Operation[RequestT, ResultT], request: RequestT, timeout_seconds: float | None
    ) -> ResultT:
        """The result of `operation`."""
        ...

    async def wait_until_ready(self, timeout_seconds: float | None) -> None:
        """Return once the service takes calls."""
        ...

    def sweep(self, request: SweepRequest, timeout_seconds: float | None) -> AsyncGenerator[SweepColumns, None]:
        """The stretches of points of one stream, which may break; for the estimator."""
        ...

    def sql(self, request: SqlRequest, timeout_seconds: float | None) -> AsyncGenerator[SqlPart, None]:
        """The schema, batches of rows and the summary of one query; for the ingest service."""
        ...

    def watch_runs(self, request: WatchRunsRequest, timeout_seconds: float | None) -> AsyncGenerator[RunUpdate, None]:
        """What one stream tells of runs, which may break; for the ingest service."""
        ...

    def schedule(self, request: ScheduleRequest, timeout_seconds: float | None) -> AsyncGenerator[SchedulePart, None]:
        """The parts of a schedule of one stream, which may break; for the estimator."""
        ...

    def sample_connector(self) -> SampleConnector:
        """What opens sample streams."""
        ...

    async def close(self) -> None:
        """Let go of what was opened."""
        ...
