"""How many calls the ingest service takes at once, what it tells the others, and who may ask SQL."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from ingest_service.settings import AdmissionSettings, ReadingSettings
from linkbound.domain.errors import PermissionDeniedError, ResourceExhaustedError
from serving.admission import CallLimit
from serving.auth import read_permission
from serving.interceptors import PermissionCheck

STREAM_RETRY_DELAY_SECONDS = 1.0
APPEND_RETRY_DELAY_SECONDS = 0.2
"""About what a full queue takes to be committed."""

QUERY_RETRY_DELAY_SECONDS = 1.0
WATCH_RETRY_DELAY_SECONDS = 5.0
"""Watches last; one that ends is the exception."""


@frozen(kw_only=True)
class _TooMany:
    """What is said where too much runs at once; `limit_name` is that of the limit in the metadata."""

    what_runs: str
    reason: str
    retry_delay_seconds: float
    limit_name: str

    def error(self, running_count: int, *, limit: int) -> ResourceExhaustedError:
        return ResourceExhaustedError(
            f"{running_count} {self.what_runs}, and no more are taken; try again later",
            reason=self.reason,
            retry_delay_seconds=self.retry_delay_seconds,
            metadata={self.limit_name: str(limit)},
        )


_TOO_MANY_STREAMS = _TooMany(
    what_runs="sample streams are open",
    reason="TOO_MANY_STREAMS",
    retry_delay_seconds=STREAM_RETRY_DELAY_SECONDS,
    limit_name="maxStreams",
)
_TOO_MANY_APPENDS = _TooMany(
    what_runs="appends are under way",
    reason="QUEUE_FULL",
    retry_delay_seconds=APPEND_RETRY_DELAY_SECONDS,
    limit_name="maxAppends",
)
_TOO_MANY_QUERIES = _TooMany(
    what_runs="SQL queries run",
    reason="TOO_MANY_QUERIES",
    retry_delay_seconds=QUERY_RETRY_DELAY_SECONDS,
    limit_name="maxSqlQueries",
)
_TOO_MANY_WATCHES = _TooMany(
    what_runs="watches are open",
    reason="TOO_MANY_WATCHES",
    retry_delay_seconds=WATCH_RETRY_DELAY_SECONDS,
    limit_name="maxWatches",
)

SQL_METHOD = "QuerySql"

APPEND_METHODS = (
    "AppendRequestRecords",
    "AppendMetricAggregates",
    "AppendCollectiveResults",
    "AppendTrainingSteps",
    "AppendLinkTests",
    "AppendEvents",
)


def ingest_call_limits(settings: AdmissionSettings) -> Mapping[str, CallLimit]:
    """The limits of `IngestService` by method; all kinds of appends share one."""
    streams, appends = settings.max_streams, settings.max_appends
    append_limit = CallLimit(appends, lambda: _TOO_MANY_APPENDS.error(appends, limit=appends))
    return {
        "StreamSamples": CallLimit(streams, lambda: _TOO_MANY_STREAMS.error(streams, limit=streams)),
        **dict.fromkeys(APPEND_METHODS, append_limit),
    }


def check_query_count(running_count: int, limit: int) -> None:
    """Raises ResourceExhaustedError (TOO_MANY_QUERIES) where one more SQL query would be too many."""
    if running_count >= limit:
        raise _TOO_MANY_QUERIES.error(running_count, limit=limit)


def run_call_limits(settings: AdmissionSettings) -> Mapping[str, CallLimit]:
    """The limits of `RunService` by method."""
    watches = settings.max_watches
    return {"WatchRuns": CallLimit(watches, lambda: _TOO_MANY_WATCHES.error(watches, limit=watches))}


def query_permissions(settings: ReadingSettings) -> Mapping[str, PermissionCheck]:
    """Who may call methods of `QueryService`, where not everybody may who is accepted.

    Raises InvalidArgumentError for a token file that cannot be used.
    """
    if not settings.is_sql_on:
        return {SQL_METHOD: _refuse_sql}
    if settings.sql_token_file is None:
        return {}
    return {SQL_METHOD: read_permission(settings.sql_token_file).check}


def _refuse_sql(_authorization: str | None) -> None:
    raise PermissionDeniedError("SQL queries are switched off (LINKBOUND_INGEST_SQL)", reason="SQL_OFF")
