"""The application objects of the servers, called without a server."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from linkbound.client.closing import closed_error
from linkbound.client.operations import Operation
from linkbound.domain.errors import DeadlineExceededError, FailedPreconditionError
from linkbound.domain.run import RunRequest

if TYPE_CHECKING:
    from estimator_service.service import Estimator
    from ingest_service.service import Ingest
    from linkbound.client.sample_stream import SampleConnector
    from linkbound.domain.schedule import SchedulePart, ScheduleRequest
    from linkbound.domain.sweep import SweepColumns, SweepRequest

RequestT = TypeVar("RequestT")
ResultT = TypeVar("ResultT")
ApplicationT = TypeVar("ApplicationT")

STORE_FILE_NAME = "linkbound.duckdb"
"""The store within a data directory."""
CATALOG_DIRECTORY_NAME = "catalog"
"""What was imported, within a data directory."""


class LocalBackend(Generic[ApplicationT]):
    """Answers from an application object that is opened when the first operation needs it."""

    def __init__(self, open_application: Callable[[], ApplicationT]) -> None:
        self._open_application = open_application
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
        result: Any = getattr(self.application(), operation.name)(argument)
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
            raise FailedPreconditionError(
                f"a local store needs {error.name}: pip install 'linkbound[services]'",
                reason="SERVICES_EXTRA_MISSING",
                metadata={"module": error.name or ""},
            ) from error
        directory = default_data_directory() if data_directory is None else Path(data_directory)
        return Ingest.open(StoreSettings(path=directory / STORE_FILE_NAME))

    return LocalBackend(open_ingest)


def default_data_directory() -> Path:
    """The data directory of the user, where the platform keeps such things."""
    import platformdirs

    return platformdirs.user_data_path("linkbound")
