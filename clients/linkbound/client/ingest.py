"""The ingest service, for code that blocks."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from linkbound.client import ingest_questions, operations
from linkbound.client.backend import Backend, Connection
from linkbound.client.base import Client, asks, lists, selects, watches
from linkbound.client.names import run_id
from linkbound.client.options import UNSET, Timeout
from linkbound.client.writer_options import DEFAULT_LINGER_SECONDS, WriterIdentity, writer_options
from linkbound.domain.samples import SeriesDescriptor

if TYPE_CHECKING:
    import grpc

    from linkbound.client.record_writer import RecordWriter
    from linkbound.client.sample_writer import SampleWriter
    from linkbound.client.spool.options import Spool
    from linkbound.domain.records import AppendOutcome, AppendRequest


class IngestClient(Client):
    """Stores runs with their predictions and measurements, and holds the two side by side.

    `target` is `host:port`, `unix:/path`, or `local:` for a store that this process opens in `data_directory`; None is
    the user's data directory. `token` is sent as a bearer token, `tls` names the files of a connection with TLS;
    neither matters to `local:`. `timeout_seconds` replaces the default deadline of every call: seconds, a timedelta,
    or None for ever. A `channel` that is given is used as it is, with its own retries, and is not closed. Nothing is
    connected or opened before the first call.

    With `local:` the timeouts of `append`, of writers, of SQL and of watches hold; every other call takes as long as
    the disk does. Where another process holds the store, reads and SQL are answered from its last snapshot, and a
    SnapshotWarning says how old that is; everything else raises UnavailableError (STORE_LOCKED).

    Raises InvalidArgumentError for a target, token or timeout that cannot be used. Every call raises the classes of
    `linkbound.domain.errors`.
    """

    # Each method is the function of its name in `linkbound.client.ingest_questions`: keywords, words and request.

    create_run = asks(ingest_questions.create_run)
    get_run = asks(ingest_questions.get_run)
    list_runs = lists(ingest_questions.list_runs)
    seal_run = asks(ingest_questions.seal_run)
    delete_run = asks(ingest_questions.delete_run)
    append = asks(ingest_questions.append)
    compare_run = asks(ingest_questions.compare_run)
    list_request_records = lists(ingest_questions.list_request_records)
    query_traffic = asks(ingest_questions.query_traffic)
    list_phase_traffic = lists(ingest_questions.list_phase_traffic)
    query_sql = selects(ingest_questions.query_sql)
    publish_snapshot = asks(ingest_questions.publish_snapshot)
    watch_runs = watches(ingest_questions.watch_runs)

    def writer(
        self,
        run: str,
        writer_id: str,
        series: Sequence[SeriesDescriptor],
        *,
        spool: Spool | Path | str | None = None,
        linger_seconds: float = DEFAULT_LINGER_SECONDS,
        timeout_seconds: Timeout = UNSET,
    ) -> SampleWriter:
        """A writer of counter samples, a context manager: it numbers, resumes after a break, and flushes at the end.

        `spool` is a directory of this machine in which batches wait for the service, however long it is away and
        whatever becomes of this process; None: they wait in memory. `linger_seconds` is how long samples wait for
        others to share a batch with. `timeout_seconds` is how long the service may be away before the writer gives up;
        60 s by default.

        With a `channel` that was given there is no writer: it needs a connection of its own.

        Raises InvalidArgumentError, FailedPreconditionError with a given channel.
        """
        from linkbound.client.sample_writer import SampleWriter

        request = ingest_questions.open_stream_request(run, writer_id=writer_id, series=series)
        options = writer_options(spool, linger_seconds, timeout_seconds)
        return SampleWriter(self._backend.sample_connector(), request, options, self._closing)

    def record_writer(
        self,
        run: str,
        writer_id: str,
        *,
        spool: Spool | Path | str | None = None,
        timeout_seconds: Timeout = UNSET,
    ) -> RecordWriter:
        """A writer of records, a context manager: it numbers, tries again after a break, and flushes at the end.

        `spool` and `timeout_seconds` are those of `writer`. The writer id is of no other kind of writer.

        Raises InvalidArgumentError.
        """
        import asyncio

        from linkbound.client.record_writer import RecordWriter

        def append(request: AppendRequest) -> Awaitable[AppendOutcome]:
            return asyncio.to_thread(self._call, operations.APPEND, request, UNSET)

        identity = WriterIdentity(run=run_id(run), writer_id=writer_id)
        return RecordWriter(append, identity, writer_options(spool, 0, timeout_seconds), self._closing)

    @staticmethod
    def _local(data_directory: Path | str | None) -> Backend:
        from linkbound.client.local.blocking import local_ingest

        return local_ingest(data_directory)

    @staticmethod
    def _remote(connection: Connection, channel: grpc.Channel | None) -> Backend:
        from linkbound.client.remote.blocking import RemoteBackend
        from linkbound.client.remote.services import INGEST_SERVICES

        return RemoteBackend(connection, channel, INGEST_SERVICES)
