"""The application objects of the servers, called without a server."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from linkbound.client.closing import closed_error
from linkbound.client.local.snapshots import LocalSnapshots
from linkbound.client.operations import QUERY, READ, Operation
from linkbound.domain.errors import DeadlineExceededError, FailedPreconditionError, UnavailableError
from linkbound.domain.run import RunRequest

if TYPE_CHECKING:
    from estimator_service.service import Estimator
    from ingest_service.service import Ingest
    from ingest_service.snapshot_store import SnapshotStore
    from ingest_service.store.run_watch import RunWatch
    from ingest_service.store.sql_query import SqlAnswer
    from linkbound.client.sample_stream import SampleConnector
    from linkbound.domain.run_watch import RunUpdate, WatchRunsRequest
    from linkbound.domain.schedule import SchedulePart, ScheduleRequest
    from linkbound.domain.sql import SqlPart, SqlRequest
    from linkbound.domain.sweep import SweepColumns, SweepRequest

RequestT = TypeVar("RequestT")
ResultT = TypeVar("ResultT")
ApplicationT = TypeVar("ApplicationT")

STORE_FILE_NAME = "linkbound.duckdb"
"""The store within a data directory."""
CATALOG_DIRECTORY_NAME = "catalog"
"""What was imported, within a data directory."""


class LocalBackend(Generic[ApplicationT]):
    """Answers from an application object that is opened when the first operation needs it.

    Where another process holds what it would open, reads are answered from `snapshots`.
    """

    def __init__(self, open_application: Callable[[], ApplicationT], snapshots: LocalSnapshots | None = None) -> None:
        self._open_application = open_application
        self._snapshots = snapshots
        self._opened: ApplicationT | None = None
        self._is_closed = False
        self._lock = threading.Lock()

    def call(
        self, operation: Operation[RequestT, ResultT], request: RequestT, timeout_seconds: float | None
    ) -> ResultT:
        """The answer of the application object.

        The timeout holds where the application object answers with a future, as it does for `append`; every other
        operation takes as long as it takes.
        """
        argument = request.run if isinstance(request, RunRequest) else request
        application = self._reading() if operation.call_class in (READ, QUERY) else self.application()
        result: Any = getattr(application, operation.name)(argument)
        if isinstance(result, Future):
            try:
                result = result.result(timeout_seconds)
            except TimeoutError as error:
                message = f"{operation.name}: not done within {timeout_seconds:g} s"
                raise DeadlineExceededError(message) from error
        return cast("ResultT", result)

    def sweep(self, request: SweepRequest, timeout_seconds: float | None) -> Generator[SweepColumns, None, None]:
        """What the estimator in this process computes; no timeout interrupts it."""
        del timeout_seconds
        yield from cast("Estimator", self.application()).stream_sweep(request)

    def sql(self, request: SqlRequest, timeout_seconds: float | None) -> Generator[SqlPart, None, None]:
        """What the store in this process answers, or its snapshot."""
        with self.sql_answer(request, timeout_seconds) as answer:
            yield answer.begin()
            while (batch := answer.next_batch()) is not None:
                yield batch
            if answer.summary is not None:
                yield answer.summary

    def sql_answer(self, request: SqlRequest, timeout_seconds: float | None) -> SqlAnswer:
        """The answer to a query, to be begun and closed by the caller."""
        reading = cast("Ingest | SnapshotStore", self._reading())
        return reading.query_sql(request, timeout_seconds)

    def watch_runs(self, request: WatchRunsRequest, timeout_seconds: float | None) -> Generator[RunUpdate, None, None]:
        """What the store in this process tells of its runs."""
        from ingest_service.store.run_watch import PROGRESS_INTERVAL_SECONDS

        give_up_time = math.inf if timeout_seconds is None else time.monotonic() + timeout_seconds
        watch, changed = self.run_watch(request), threading.Event()
        with watch.listening(changed.set):
            while True:
                changed.clear()
                updates = watch.next_updates()
                yield from updates
                remaining_seconds = give_up_time - time.monotonic()
                if remaining_seconds <= 0:
                    raise DeadlineExceededError(f"watch_runs: over after {timeout_seconds:g} s")
                if not updates and not changed.wait(min(PROGRESS_INTERVAL_SECONDS, remaining_seconds)):
                    yield watch.progress

    def run_watch(self, request: WatchRunsRequest) -> RunWatch:
        """A watch of the runs of the store in this process."""
        return cast("Ingest", self.application()).watch_runs(request)

    def schedule(self, request: ScheduleRequest, timeout_seconds: float | None) -> Generator[SchedulePart, None, None]:
        """What the estimator in this process replays; no timeout interrupts it."""
        del timeout_seconds
        yield from cast("Estimator", self.application()).stream_schedule(request)

    def wait_until_ready(self, timeout_seconds: float | None) -> None:
        """Open the application object; it is ready then."""
        del timeout_seconds
        self.application()

    def sample_connector(self) -> SampleConnector:
        """What opens streams of the ingest service in this process."""
        from linkbound.client.local.samples import LocalConnector

        return LocalConnector(cast("Callable[[], Ingest]", self.application))

    def close(self) -> None:
        """Close what was opened, for good; an ingest service commits what it took in."""
        with self._lock:
            self._is_closed = True
            opened, self._opened = self._opened, None
        close = getattr(opened, "close", None)
        if close is not None:
            close()
        if self._snapshots is not None:
            self._snapshots.close()

    def _reading(self) -> ApplicationT | SnapshotStore:
        """What answers a read: the application object, or the snapshot of a store that another process holds."""
        try:
            return self.application()
        except UnavailableError as error:
            snapshot = self._snapshots.opened(error) if self._snapshots is not None else None
            if snapshot is None:
                raise
            return snapshot

    def application(self) -> ApplicationT:
        """The application object, opened by the first caller. Raises FailedPreconditionError (CLIENT_CLOSED)."""
        with self._lock:
            if self._is_closed:
                raise closed_error()
            if self._opened is None:
                self._opened = self._open_application()
            return self._opened


def local_estimator(data_directory: Path | str | None = None) -> LocalBackend[Estimator]:
    """The estimator with the catalogue that comes with the package and the one in `data_directory`.

    None is the user's data directory; it is found when a name is not of the package.
    """

    def find_catalog_directory() -> Path:
        directory = default_data_directory() if data_directory is None else Path(data_directory)
        return directory / CATALOG_DIRECTORY_NAME

    def open_estimator() -> Estimator:
        from estimator_service.service import default_estimator

        return default_estimator(find_catalog_directory)

    return LocalBackend(open_estimator)


def local_ingest(data_directory: Path | str | None) -> LocalBackend[Ingest]:
    """The ingest service over the store in `data_directory`; None is the user's data directory."""

    def open_ingest() -> Ingest:
        try:
            from ingest_service.service import Ingest
            from ingest_service.settings import StoreSettings
        except ModuleNotFoundError as error:
            raise services_extra_missing(error) from error
        return Ingest.open(StoreSettings(path=store_path()))

    def store_path() -> Path:
        directory = default_data_directory() if data_directory is None else Path(data_directory)
        return directory / STORE_FILE_NAME

    return LocalBackend(open_ingest, LocalSnapshots(store_path))


def services_extra_missing(error: ModuleNotFoundError) -> FailedPreconditionError:
    """The error where a local store is asked of an installation that cannot open one."""
    return FailedPreconditionError(
        f"a local store needs {error.name}: pip install 'linkbound[services]'",
        reason="SERVICES_EXTRA_MISSING",
        metadata={"module": error.name or ""},
    )


def default_data_directory() -> Path:
    """The data directory of the user, where the platform keeps such things."""
    import platformdirs

    return platformdirs.user_data_path("linkbound")
