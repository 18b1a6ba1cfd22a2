"""The ingest service, for code that blocks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from linkbound.client import ingest_questions
from linkbound.client.backend import Backend, Connection
from linkbound.client.base import Client, asks, lists
from linkbound.client.options import UNSET, Timeout
from linkbound.domain.samples import SeriesDescriptor

if TYPE_CHECKING:
    import grpc

    from linkbound.client.sample_writer import SampleWriter


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

    # Each method is the function of its name in `linkbound.client.ingest_questions`: keywords, words and request.

    create_run = asks(ingest_questions.create_run)
    get_run = asks(ingest_questions.get_run)
    list_runs = lists(ingest_questions.list_runs)
    seal_run = asks(ingest_questions.seal_run)
    delete_run = asks(ingest_questions.delete_run)
    append = asks(ingest_questions.append)
    compare_run = asks(ingest_questions.compare_run)
    list_request_records = lists(ingest_questions.list_request_records)

    def sample_writer(
        self, run: str, *, writer_id: str, series: Sequence[SeriesDescriptor], timeout_seconds: Timeout = UNSET
    ) -> SampleWriter:
        """A writer of counter samples, a context manager: it numbers, resumes after a break, and flushes at the end.

        `timeout_seconds` is how long the service may be away before the writer gives up; 60 s by default. Undelivered
        samples raise. With a `channel` that was given there is no writer: it needs a connection of its own.

        Raises InvalidArgumentError, FailedPreconditionError with a given channel.
        """
        from linkbound.client.sample_writer import SampleWriter

        request = ingest_questions.open_stream_request(run, writer_id=writer_id, series=series)
        return SampleWriter(self._backend.sample_connector(), request, timeout_seconds, self._closing)

    @staticmethod
    def _local(data_directory: Path | str | None) -> Backend:
        from linkbound.client.local.blocking import local_ingest

        return local_ingest(data_directory)

    @staticmethod
    def _remote(connection: Connection, channel: grpc.Channel | None) -> Backend:
        from linkbound.client.remote.blocking import RemoteBackend
        from linkbound.client.remote.services import INGEST_SERVICES

        return RemoteBackend(connection, channel, INGEST_SERVICES)
