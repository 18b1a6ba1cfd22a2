"""What the ingest service is asked: a function for each method of its two clients but that of sample writers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from linkbound.client import operations
from linkbound.client.names import run_id
from linkbound.client.options import UNSET, Timeout
from linkbound.client.question import Listing, Question, SqlQuery, Watch, question
from linkbound.domain.paging import LARGEST_PAGE_SIZE
from linkbound.domain.prediction import Prediction
from linkbound.domain.records import AppendOutcome, AppendRequest, ListRequestRecordsRequest, Record, RequestRecord
from linkbound.domain.rules import as_tuple
from linkbound.domain.run import CreateRunRequest, Run, RunDetails, RunRequest, RunRowCounts, SealRunRequest, Setting
from linkbound.domain.run_comparison import RunComparison
from linkbound.domain.run_watch import WatchRunsRequest
from linkbound.domain.samples import OpenStreamRequest, SeriesDescriptor
from linkbound.domain.sql import PublishSnapshotRequest, Snapshot, SqlRequest
from linkbound.domain.traffic import ListPhaseTrafficRequest, PhaseTraffic, PortTraffic, TrafficRequest

NO_SETTINGS: Mapping[str, str] = {}


def create_run(
    run: str,
    *,
    display_name: str = "",
    source: str = "",
    settings: Mapping[str, str] = NO_SETTINGS,
    prediction: Prediction | None = None,
    timeout_seconds: Timeout = UNSET,
) -> Question[Run]:
    """Create the run with the id `run` and freeze its prediction.

    Repeating it with the same content answers the run that exists. `settings` are words, never secrets.

    Raises InvalidArgumentError, AlreadyExistsError for other content, and the errors of the connection.
    """
    request = CreateRunRequest(
        run_id=run,
        display_name=display_name,
        source=source,
        settings=tuple(Setting(key=key, value=settings[key]) for key in sorted(settings)),
        prediction=prediction,
    )
    return question(operations.CREATE_RUN, request, timeout_seconds)


def get_run(run: str, *, timeout_seconds: Timeout = UNSET) -> Question[RunDetails]:
    """The run with its prediction and how many rows are stored for it.

    Raises InvalidArgumentError, NotFoundError with near names, and the errors of the connection.
    """
    return question(operations.GET_RUN, RunRequest(run=run_id(run)), timeout_seconds)


def list_runs(*, timeout_seconds: Timeout = UNSET) -> Listing[Run]:
    """Every run, newest first, without the predictions; the timeout is that of one page.

    Raises the errors of the connection, while iterating.
    """
    return Listing(operations.LIST_RUNS, timeout_seconds)


def seal_run(run: str, *, expected_row_count: int | None = None, timeout_seconds: Timeout = UNSET) -> Question[Run]:
    """End a run if it holds `expected_row_count` rows of all kinds; None: any count. Repeating it is fine.

    Raises InvalidArgumentError, NotFoundError, FailedPreconditionError (ROW_COUNT_MISMATCH), and the errors of the
    connection.
    """
    request = SealRunRequest(run=run_id(run), expected_row_count=expected_row_count)
    return question(operations.SEAL_RUN, request, timeout_seconds)


def delete_run(run: str, *, timeout_seconds: Timeout = UNSET) -> Question[RunRowCounts]:
    """Delete a run with everything in it and say what that was. It is not tried again on its own.

    Raises InvalidArgumentError, NotFoundError, and the errors of the connection.
    """
    return question(operations.DELETE_RUN, RunRequest(run=run_id(run)), timeout_seconds)


def append(
    run: str,
    *,
    writer_id: str,
    sequence_number: int,
    records: Sequence[Record],
    timeout_seconds: Timeout = UNSET,
) -> Question[AppendOutcome]:
    """Store records of one kind durably, exactly once, and say up to which numbers the writer's are stored.

    A writer numbers its appends 1, 2, 3, ...; a number that is stored already is answered again and stored no
    second time. Up to the `checkpointed_sequence_number` no damage to the log of the service can take them any more;
    until then the writer keeps them, to send them again after a gap. `record_writer` does all of that.

    Raises InvalidArgumentError, NotFoundError, FailedPreconditionError (RUN_SEALED, WRITER_KIND_MISMATCH),
    OutOfRangeError for a gap, AbortedError for other content under the same number, ResourceExhaustedError, and the
    errors of the connection.
    """
    request = AppendRequest(
        run=run_id(run), writer_id=writer_id, sequence_number=sequence_number, records=as_tuple(records)
    )
    return question(operations.APPEND, request, timeout_seconds)


def compare_run(run: str, *, timeout_seconds: Timeout = UNSET) -> Question[RunComparison]:
    """The run's frozen prediction beside what was measured, and what stands out.

    Raises InvalidArgumentError, NotFoundError, and the errors of the connection.
    """
    return question(operations.COMPARE_RUN, RunRequest(run=run_id(run)), timeout_seconds)


def list_request_records(run: str, *, subject: str = "", timeout_seconds: Timeout = UNSET) -> Listing[RequestRecord]:
    """Every request record of the run, of `subject` alone where one is given, by subject, round and position in it.

    The timeout is that of one page. Raises InvalidArgumentError, and while iterating NotFoundError with near names and
    the errors of the connection.
    """
    first_page = ListRequestRecordsRequest(run=run_id(run), subject=subject, page_size=LARGEST_PAGE_SIZE)
    return Listing(operations.LIST_REQUEST_RECORDS, timeout_seconds, first_page)


def query_traffic(
    run: str,
    *,
    windows_ns: Sequence[int] = (),
    node: str = "",
    metric: str = "",
    start_ns: int | None = None,
    end_ns: int | None = None,
    max_point_count: int = 0,
    timeout_seconds: Timeout = UNSET,
) -> Question[tuple[PortTraffic, ...]]:
    """Rates of the counters of the run over windows of time, one entry per host, boot, physical port and counter.

    Without `windows_ns`: over 1 ms, 5 ms, 100 ms and 1 s. `node` and `metric`: of that host and counter alone. Times
    are CLOCK_MONOTONIC of the host. With a `max_point_count` each window brings its course in so many points at most.

    Raises InvalidArgumentError, NotFoundError, and the errors of the connection.
    """
    request = TrafficRequest(
        run=run_id(run),
        windows_ns=as_tuple(windows_ns),
        node=node,
        metric=metric,
        start_ns=start_ns,
        end_ns=end_ns,
        max_point_count=max_point_count,
    )
    return question(operations.QUERY_TRAFFIC, request, timeout_seconds)


def list_phase_traffic(run: str, *, subject: str = "", timeout_seconds: Timeout = UNSET) -> Listing[PhaseTraffic]:
    """The traffic of every request of the run, of `subject` alone where one is given, before and after its first token.

    One entry per request and counter of a port on its clock. The timeout is that of one page. Raises
    InvalidArgumentError, and while iterating NotFoundError with near names and the errors of the connection.
    """
    first_page = ListPhaseTrafficRequest(run=run_id(run), subject=subject, page_size=LARGEST_PAGE_SIZE)
    return Listing(operations.LIST_PHASE_TRAFFIC, timeout_seconds, first_page)


def query_sql(sql: str, *, row_limit: int = 0, timeout_seconds: Timeout = UNSET) -> SqlQuery:
    """The rows of one SELECT over the tables and views of `docs/schema.md`, which can change nothing.

    Rows are read as they are asked for; close the reader to end a query early. At most `row_limit` rows are answered, 0
    is a million; where there are more, a TruncatedAnswerWarning says so at the end. The timeout is that of the whole
    answer, none unless one is set; the service has a limit of its own. Needs pyarrow, of the extra `services`.

    Raises InvalidArgumentError (SQL_NOT_READ_ONLY, SQL_ERROR), PermissionDeniedError, ResourceExhaustedError
    (QUERY_TOO_LARGE, TOO_MANY_QUERIES), DeadlineExceededError, FailedPreconditionError (RUN_UNREADABLE,
    PYARROW_MISSING), and the errors of the connection; reading the rows raises the same.
    """
    return SqlQuery(SqlRequest(sql=sql, row_limit=row_limit), timeout_seconds)


def publish_snapshot(*, timeout_seconds: Timeout = UNSET) -> Question[Snapshot]:
    """Write what is stored now into the read-only copy that other processes open: `duckdb -readonly snapshot.duckdb`.

    Raises ResourceExhaustedError (DISK_FULL), UnavailableError (SNAPSHOT_FAILED), and the errors of the connection.
    """
    return question(operations.PUBLISH_SNAPSHOT, PublishSnapshotRequest(), timeout_seconds)


def watch_runs(*, run: str | None = None, start_revision: int = 0, timeout_seconds: Timeout = UNSET) -> Watch:
    """Runs as they are created, appended to, sealed and deleted, until the iteration is left; one alone with `run`.

    From revision 0 every run is told as it is, then changes; to go on after a pause, start one above the last revision
    that came. An update without a run says how far it is while nothing happens. A stream that breaks is opened again
    where it was; where that happens before every run was told, they are told again. The timeout is that of the whole
    watch, none unless one is set.

    Raises InvalidArgumentError; while iterating OutOfRangeError (REVISION_COMPACTED) where the revision is too old, and
    the errors of the connection.
    """
    request = WatchRunsRequest(start_revision=start_revision, run=None if run is None else run_id(run))
    return Watch(request, timeout_seconds)


def open_stream_request(run: str, *, writer_id: str, series: Sequence[SeriesDescriptor]) -> OpenStreamRequest:
    """The request that opens a sample stream of a writer that does not know yet what is stored."""
    return OpenStreamRequest(run=run_id(run), writer_id=writer_id, series=as_tuple(series))
