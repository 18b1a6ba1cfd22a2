"""How many calls the ingest service takes at once, what it tells the others, and who may ask SQL."""

from __future__ import annotations

from collections.abc import Mapping

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

    def too_many_streams() -> ResourceExhaustedError:
        return ResourceExhaustedError(
            f"{settings.max_streams} sample streams are open, and no more are taken; try again later",
            reason="TOO_MANY_STREAMS",
            retry_delay_seconds=STREAM_RETRY_DELAY_SECONDS,
            metadata={"maxStreams": str(settings.max_streams)},
        )

    def too_many_appends() -> ResourceExhaustedError:
        return ResourceExhaustedError(
            f"{settings.max_appends} appends are under way, and no more are taken; try again later",
            reason="QUEUE_FULL",
            retry_delay_seconds=APPEND_RETRY_DELAY_SECONDS,
            metadata={"maxAppends": str(settings.max_appends)},
        )

    appends = CallLimit(settings.max_appends, too_many_appends)
    return {
        "StreamSamples": CallLimit(settings.max_streams, too_many_streams),
        **dict.fromkeys(APPEND_METHODS, appends),
    }


def check_query_count(running_count: int, limit: int) -> None:
    """Raises ResourceExhaustedError (TOO_MANY_QUERIES) where one more SQL query would be too many."""
    if running_count >= limit:
        raise ResourceExhaustedError(
            f"{running_count} SQL queries run, and no more are taken; try again later",
            reason="TOO_MANY_QUERIES",
            retry_delay_seconds=QUERY_RETRY_DELAY_SECONDS,
            metadata={"maxSqlQueries": str(limit)},
        )


def run_call_limits(settings: AdmissionSettings) -> Mapping[str, CallLimit]:
    """The limits of `RunService` by method."""

    def too_many_watches() -> ResourceExhaustedError:
        return ResourceExhaustedError(
            f"{settings.max_watches} watches are open, and no more are taken; try again later",
            reason="TOO_MANY_WATCHES",
            retry_delay_seconds=WATCH_RETRY_DELAY_SECONDS,
            metadata={"maxWatches": str(settings.max_watches)},
        )

    return {"WatchRuns": CallLimit(settings.max_watches, too_many_watches)}


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
