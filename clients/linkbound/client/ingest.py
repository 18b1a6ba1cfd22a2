"""The ingest service, for code that blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from linkbound.client import ingest_requests, operations
from linkbound.client.backend import Backend, ChannelOptions, Connection
from linkbound.client.base import Client
from linkbound.client.options import UNSET, Timeout, TlsFiles
from linkbound.client.target import LOCAL, TargetKind, parse_target
from linkbound.domain.prediction import Prediction
from linkbound.domain.records import Record
from linkbound.domain.run import Run, RunDetails, RunRowCounts
from linkbound.domain.run_comparison import RunComparison
from linkbound.domain.samples import SeriesDescriptor

if TYPE_CHECKING:
    import grpc

    from linkbound.client.sample_writer import SampleWriter

NO_SETTINGS: Mapping[str, str] = {}


class IngestClient(Client):
    """Stores runs with their predictions and measurements, and holds the two side by side.

    `target` is `host:port`, `unix:/path`, or `local:` for a store that this process opens in `data_directory`; None is
    the user's data directory. `token` is sent as a bearer token, `tls` names the files of a connection with TLS;
    neither matters to `local:`. `timeout_seconds` replaces the default deadline of every call: seconds, a timedelta,
    or None for ever. A `channel` that is given is used as it is, with its own retries, and is not closed. Nothing is
    connected or opened before the first call.

    With `local:` the timeouts of `append` and of sample writers hold; every other call takes as long as the disk does.

    Raises InvalidArgumentError for a target, token or timeout that cannot be used. Every call raises the classes of
    `linkbound.domain.errors`.
    """

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
        super().__init__(_backend(connection, channel, data_directory), timeout_seconds)

    def create_run(
        self,
        run: str,
        *,
        display_name: str = "",
        source: str = "",
        settings: Mapping[str, str] = NO_SETTINGS,
        prediction: Prediction | None = None,
        timeout_seconds: Timeout = UNSET,
    ) -> Run:
        """Create the run with the id `run` and freeze its prediction.

        Repeating it with the same content answers the run that exists. `settings` are words, never secrets.

        Raises InvalidArgumentError, AlreadyExistsError for other content, and the errors of the connection.
        """
        request = ingest_requests.create_run_request(
            run, display_name=display_name, source=source, settings=settings, prediction=prediction
        )
        return self._call(operations.CREATE_RUN, request, timeout_seconds)

    def get_run(self, run: str, *, timeout_seconds: Timeout = UNSET) -> RunDetails:
        """The run with its prediction and how many rows are stored for it.

        Raises InvalidArgumentError, NotFoundError with near names, and the errors of the connection.
        """
        return self._call(operations.GET_RUN, ingest_requests.run_request(run), timeout_seconds)

    def list_runs(self, *, timeout_seconds: Timeout = UNSET) -> Iterator[Run]:
        """Every run, newest first, without the predictions; the timeout is that of one page.

        Raises the errors of the connection, while iterating.
        """
        return self._entries(operations.LIST_RUNS, timeout_seconds)

    def seal_run(self, run: str, *, expected_row_count: int | None = None, timeout_seconds: Timeout = UNSET) -> Run:
        """End a run if it holds `expected_row_count` rows of all kinds; None: any count. Repeating it is fine.

        Raises InvalidArgumentError, NotFoundError, FailedPreconditionError (ROW_COUNT_MISMATCH), and the errors of the
        connection.
        """
        request = ingest_requests.seal_run_request(run, expected_row_count=expected_row_count)
        return self._call(operations.SEAL_RUN, request, timeout_seconds)

    def delete_run(self, run: str, *, timeout_seconds: Timeout = UNSET) -> RunRowCounts:
        """Delete a run with everything in it and say what that was. It is not tried again on its own.

        Raises InvalidArgumentError, NotFoundError, and the errors of the connection.
        """
        return self._call(operations.DELETE_RUN, ingest_requests.run_request(run), timeout_seconds)

    def append(
        self,
        run: str,
        *,
        writer_id: str,
        sequence_number: int,
        records: Sequence[Record],
        timeout_seconds: Timeout = UNSET,
    ) -> int:
        """Store records of one kind durably, exactly once, and return the writer's highest stored number.

        A writer numbers its appends 1, 2, 3, ...; a number that is stored already is answered again and stored no
        second time.

        Raises InvalidArgumentError, NotFoundError, FailedPreconditionError (RUN_SEALED, WRITER_KIND_MISMATCH),
        OutOfRangeError for a gap, AbortedError for other content under the same number, ResourceExhaustedError, and the
        errors of the connection.
        """
        request = ingest_requests.append_request(
            run, writer_id=writer_id, sequence_number=sequence_number, records=records
        )
        return self._call(operations.APPEND, request, timeout_seconds)

    def compare_run(self, run: str, *, timeout_seconds: Timeout = UNSET) -> RunComparison:
        """The run's frozen prediction beside what was measured, and what stands out.

        Raises InvalidArgumentError, NotFoundError, and the errors of the connection.
        """
        return self._call(operations.COMPARE_RUN, ingest_requests.run_request(run), timeout_seconds)

    def sample_writer(
        self, run: str, *, writer_id: str, series: Sequence[SeriesDescriptor], timeout_seconds: Timeout = UNSET
    ) -> SampleWriter:
        """A writer of counter samples, a context manager: it numbers, resumes after a break, and flushes at the end.

        `timeout_seconds` is how long the service may be away before the writer gives up; 60 s by default. Undelivered
        samples raise. With a `channel` that was given there is no writer: it needs a connection of its own.

        Raises InvalidArgumentError, FailedPreconditionError with a given channel.
        """
        from linkbound.client.sample_writer import SampleWriter

        request = ingest_requests.open_stream_request(run, writer_id=writer_id, series=series)
        return SampleWriter(self._backend.sample_connector(), request, timeout_seconds, self._closing)


def _backend(connection: Connection, channel: grpc.Channel | None, data_directory: Path | str | None) -> Backend:
    if channel is None and connection.target.kind is TargetKind.LOCAL:
        from linkbound.client.local.blocking import local_ingest

        return local_ingest(data_directory)
    from linkbound.client.remote.blocking import RemoteBackend
    from linkbound.client.remote.services import INGEST_SERVICES

    return RemoteBackend(connection, channel, INGEST_SERVICES)
