"""Streams of the ingest service that answer one request: the rows of a query, and what happens to runs."""

from __future__ import annotations

from linkbound.client.remote.streams import StreamMethod
from linkbound.convert import query_service, run_service
from linkbound.domain.run_watch import RunUpdate, WatchRunsRequest
from linkbound.domain.sql import SqlPart, SqlRequest
from linkbound.ingest.v1.query_service_pb2 import QuerySqlResponse
from linkbound.ingest.v1.run_service_pb2 import WatchRunsResponse


def _sql_part(message: QuerySqlResponse) -> SqlPart | None:
    match message.WhichOneof("message"):
        case "arrow_schema":
            return message.arrow_schema
        case "arrow_record_batch":
            return message.arrow_record_batch
        case "summary":
            return query_service.query_sql_summary_from_proto(message.summary)
    return None


QUERY_SQL: StreamMethod[SqlRequest, SqlPart] = StreamMethod(
    path="/linkbound.ingest.v1.QueryService/QuerySql",
    request_to_proto=query_service.query_sql_request_to_proto,
    response_type=QuerySqlResponse,
    part_from_proto=_sql_part,
    tells_taken_streams=False,
)
WATCH_RUNS: StreamMethod[WatchRunsRequest, RunUpdate] = StreamMethod(
    path="/linkbound.ingest.v1.RunService/WatchRuns",
    request_to_proto=run_service.watch_runs_request_to_proto,
    response_type=WatchRunsResponse,
    part_from_proto=run_service.watch_runs_response_from_proto,
    tells_taken_streams=False,
)
