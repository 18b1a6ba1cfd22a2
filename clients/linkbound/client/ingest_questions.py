"""What the ingest service is asked: a function for each method of its two clients but that of sample writers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from linkbound.client import operations
from linkbound.client.names import run_id
from linkbound.client.options import UNSET, Timeout
from linkbound.client.question import Listing, Question, question
from linkbound.domain.paging import LARGEST_PAGE_SIZE
from linkbound.domain.prediction import Prediction
from linkbound.domain.records import AppendRequest, ListRequestRecordsRequest, Record, RequestRecord
from linkbound.domain.rules import as_tuple
from linkbound.domain.run import CreateRunRequest, Run, RunDetails, RunRequest, RunRowCounts, SealRunRequest, Setting
from linkbound.domain.run_comparison import RunComparison
from linkbound.domain.samples import OpenStreamRequest, SeriesDescriptor

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
) -> Question[int]:
    """Store records of one kind durably, exactly once, and return the writer's highest stored number.

    A writer numbers its appends 1, 2, 3, ...; a number that is stored already is answered again and stored no
    second time.

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


def open_stream_request(run: str, *, writer_id: str, series: Sequence[SeriesDescriptor]) -> OpenStreamRequest:
    """The request that opens a sample stream of a writer that does not know yet what is stored."""
    return OpenStreamRequest(run=run_id(run), writer_id=writer_id, series=as_tuple(series))
