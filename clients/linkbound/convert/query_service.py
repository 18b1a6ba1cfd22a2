"""Converters of `linkbound/ingest/v1/query_service.proto`."""

from __future__ import annotations

from linkbound.convert.estimate import estimate_from_proto, estimate_to_proto
from linkbound.convert.metric import metric_from_proto, metric_to_proto
from linkbound.convert.prediction import baseline_from_proto, baseline_to_proto
from linkbound.convert.records import request_record_from_proto, request_record_to_proto
from linkbound.convert.traffic import (
    duration_from_proto,
    duration_to_proto,
    phase_traffic_from_proto,
    phase_traffic_to_proto,
    port_traffic_from_proto,
    port_traffic_to_proto,
)
from linkbound.convert.values import EnumConverter, each, each_up_to, maybe, timestamp_from_proto, timestamp_to_proto
from linkbound.domain.names import RUNS, resource_id, resource_name
from linkbound.domain.paging import Page
from linkbound.domain.records import ListRequestRecordsRequest, RequestRecord
from linkbound.domain.run import RunRequest
from linkbound.domain.run_comparison import ComparisonRow, Finding, RunComparison, Severity
from linkbound.domain.sql import PublishSnapshotRequest, Snapshot, SqlRequest, SqlSummary
from linkbound.domain.traffic import (
    LARGEST_WINDOW_COUNT,
    ListPhaseTrafficRequest,
    PhaseTraffic,
    PortTraffic,
    TrafficRequest,
)
from linkbound.ingest.v1 import query_service_pb2

_SEVERITY = EnumConverter(Severity, query_service_pb2.Severity)

severity_to_proto = _SEVERITY.to_proto
severity_from_proto = _SEVERITY.from_proto


def compare_run_request_to_proto(value: RunRequest) -> query_service_pb2.CompareRunRequest:
    """The name of a run to compare as a message."""
    return query_service_pb2.CompareRunRequest(run=resource_name(RUNS, value.run))


def compare_run_request_from_proto(message: query_service_pb2.CompareRunRequest) -> RunRequest:
    """The name of a run to compare from its message. Raises InvalidArgumentError for what is no id."""
    return RunRequest(run=resource_id(RUNS, message.run))


def comparison_row_to_proto(value: ComparisonRow) -> query_service_pb2.ComparisonRow:
    """One metric, predicted beside measured, as a message."""
    return query_service_pb2.ComparisonRow(
        metric=metric_to_proto(value.metric),
        subject=value.subject,
        predicted=maybe(estimate_to_proto, value.predicted),
        measured=value.measured,
        measured_min=value.measured_min,
        measured_max=value.measured_max,
        round_count=value.round_count,
        inside_interval=value.inside_interval,
        implied_bytes_per_second=value.implied_bytes_per_second,
        implied_bandwidth_ratio=value.implied_bandwidth_ratio,
        baseline=maybe(baseline_to_proto, value.baseline),
        measured_fraction=value.measured_fraction,
        missing_inputs=value.missing_inputs,
        assumed_bytes_per_second=value.assumed_bytes_per_second,
        assumed_source=value.assumed_source,
    )


def comparison_row_from_proto(message: query_service_pb2.ComparisonRow) -> ComparisonRow:
    """One metric, predicted beside measured, from its message."""
    return ComparisonRow(
        metric=metric_from_proto(message.metric),
        subject=message.subject,
        predicted=estimate_from_proto(message.predicted) if message.HasField("predicted") else None,
        measured=message.measured if message.HasField("measured") else None,
        measured_min=message.measured_min if message.HasField("measured_min") else None,
        measured_max=message.measured_max if message.HasField("measured_max") else None,
        round_count=message.round_count if message.HasField("round_count") else None,
        inside_interval=message.inside_interval if message.HasField("inside_interval") else None,
        implied_bytes_per_second=(
            message.implied_bytes_per_second if message.HasField("implied_bytes_per_second") else None
        ),
        implied_bandwidth_ratio=(
            message.implied_bandwidth_ratio if message.HasField("implied_bandwidth_ratio") else None
        ),
        baseline=baseline_from_proto(message.baseline) if message.HasField("baseline") else None,
        measured_fraction=message.measured_fraction if message.HasField("measured_fraction") else None,
        missing_inputs=tuple(message.missing_inputs),
        assumed_bytes_per_second=(
            message.assumed_bytes_per_second if message.HasField("assumed_bytes_per_second") else None
        ),
        assumed_source=message.assumed_source,
    )


def finding_to_proto(value: Finding) -> query_service_pb2.Finding:
    """A finding as a message."""
    return query_service_pb2.Finding(
        code=value.code,
        severity=severity_to_proto(value.severity),
        subject=value.subject,
        evidence=value.evidence,
        advice=value.advice,
    )


def finding_from_proto(message: query_service_pb2.Finding) -> Finding:
    """A finding from its message."""
    return Finding(
        code=message.code,
        severity=severity_from_proto(message.severity),
        subject=message.subject,
        evidence=message.evidence,
        advice=message.advice,
    )


def run_comparison_to_proto(value: RunComparison) -> query_service_pb2.CompareRunResponse:
    """A run's prediction beside what was measured, as a message."""
    return query_service_pb2.CompareRunResponse(
        run=resource_name(RUNS, value.run_id),
        rows=each(comparison_row_to_proto, value.rows),
        findings=each(finding_to_proto, value.findings),
    )


def run_comparison_from_proto(message: query_service_pb2.CompareRunResponse) -> RunComparison:
    """A run's prediction beside what was measured, from its message."""
    return RunComparison(
        run_id=resource_id(RUNS, message.run),
        rows=each(comparison_row_from_proto, message.rows),
        findings=each(finding_from_proto, message.findings),
    )


def list_request_records_request_to_proto(
    value: ListRequestRecordsRequest,
) -> query_service_pb2.ListRequestRecordsRequest:
    """A question for a page of request records as a message."""
    return query_service_pb2.ListRequestRecordsRequest(
        run=resource_name(RUNS, value.run),
        subject=value.subject,
        page_size=value.page_size,
        page_token=value.page_token,
    )


def list_request_records_request_from_proto(
    message: query_service_pb2.ListRequestRecordsRequest,
) -> ListRequestRecordsRequest:
    """A question for a page of request records from its message. Raises InvalidArgumentError with every violation."""
    return ListRequestRecordsRequest(
        run=resource_id(RUNS, message.run),
        subject=message.subject,
        page_size=message.page_size,
        page_token=message.page_token,
    )


def list_request_records_response_to_proto(
    value: Page[RequestRecord],
) -> query_service_pb2.ListRequestRecordsResponse:
    """A page of request records as a message."""
    return query_service_pb2.ListRequestRecordsResponse(
        request_records=each(request_record_to_proto, value.entries), next_page_token=value.next_page_token
    )


def list_request_records_response_from_proto(
    message: query_service_pb2.ListRequestRecordsResponse,
) -> Page[RequestRecord]:
    """A page of request records from its message."""
    return Page(
        entries=each(request_record_from_proto, message.request_records), next_page_token=message.next_page_token
    )


def query_traffic_request_to_proto(value: TrafficRequest) -> query_service_pb2.QueryTrafficRequest:
    """A question about rates as a message."""
    return query_service_pb2.QueryTrafficRequest(
        run=resource_name(RUNS, value.run),
        windows=each(duration_to_proto, value.windows_ns),
        node=value.node,
        metric=value.metric,
        start_ns=value.start_ns,
        end_ns=value.end_ns,
        max_point_count=value.max_point_count,
    )


def query_traffic_request_from_proto(message: query_service_pb2.QueryTrafficRequest) -> TrafficRequest:
    """A question about rates from its message. Raises InvalidArgumentError with every violation."""
    return TrafficRequest(
        run=resource_id(RUNS, message.run),
        windows_ns=each_up_to(LARGEST_WINDOW_COUNT, duration_from_proto, message.windows),
        node=message.node,
        metric=message.metric,
        start_ns=message.start_ns if message.HasField("start_ns") else None,
        end_ns=message.end_ns if message.HasField("end_ns") else None,
        max_point_count=message.max_point_count,
    )


def query_traffic_response_to_proto(value: tuple[PortTraffic, ...]) -> query_service_pb2.QueryTrafficResponse:
    """The traffic of ports as a message."""
    return query_service_pb2.QueryTrafficResponse(ports=each(port_traffic_to_proto, value))


def query_traffic_response_from_proto(message: query_service_pb2.QueryTrafficResponse) -> tuple[PortTraffic, ...]:
    """The traffic of ports from its message."""
    return each(port_traffic_from_proto, message.ports)


def list_phase_traffic_request_to_proto(value: ListPhaseTrafficRequest) -> query_service_pb2.ListPhaseTrafficRequest:
    """A question for a page of phases as a message."""
    return query_service_pb2.ListPhaseTrafficRequest(
        run=resource_name(RUNS, value.run),
        subject=value.subject,
        page_size=value.page_size,
        page_token=value.page_token,
    )


def list_phase_traffic_request_from_proto(
    message: query_service_pb2.ListPhaseTrafficRequest,
) -> ListPhaseTrafficRequest:
    """A question for a page of phases from its message. Raises InvalidArgumentError with every violation."""
    return ListPhaseTrafficRequest(
        run=resource_id(RUNS, message.run),
        subject=message.subject,
        page_size=message.page_size,
        page_token=message.page_token,
    )


def list_phase_traffic_response_to_proto(value: Page[PhaseTraffic]) -> query_service_pb2.ListPhaseTrafficResponse:
    """A page of phases as a message."""
    return query_service_pb2.ListPhaseTrafficResponse(
        phase_traffic=each(phase_traffic_to_proto, value.entries), next_page_token=value.next_page_token
    )


def list_phase_traffic_response_from_proto(message: query_service_pb2.ListPhaseTrafficResponse) -> Page[PhaseTraffic]:
    """A page of phases from its message."""
    return Page(entries=each(phase_traffic_from_proto, message.phase_traffic), next_page_token=message.next_page_token)


def query_sql_request_to_proto(value: SqlRequest) -> query_service_pb2.QuerySqlRequest:
    """A query as a message."""
    return query_service_pb2.QuerySqlRequest(sql=value.sql, row_limit=value.row_limit)


def query_sql_request_from_proto(message: query_service_pb2.QuerySqlRequest) -> SqlRequest:
    """A query from its message. Raises InvalidArgumentError with every violation."""
    return SqlRequest(sql=message.sql, row_limit=message.row_limit)


def query_sql_summary_to_proto(value: SqlSummary) -> query_service_pb2.QuerySqlSummary:
    """What a query came to as a message."""
    return query_service_pb2.QuerySqlSummary(row_count=value.row_count, truncated=value.truncated)


def query_sql_summary_from_proto(message: query_service_pb2.QuerySqlSummary) -> SqlSummary:
    """What a query came to from its message."""
    return SqlSummary(row_count=message.row_count, truncated=message.truncated)


def publish_snapshot_request_to_proto(_value: PublishSnapshotRequest) -> query_service_pb2.PublishSnapshotRequest:
    """The wish for a new copy as a message."""
    return query_service_pb2.PublishSnapshotRequest()


def publish_snapshot_request_from_proto(_message: query_service_pb2.PublishSnapshotRequest) -> PublishSnapshotRequest:
    """The wish for a new copy from its message."""
    return PublishSnapshotRequest()


def publish_snapshot_response_to_proto(value: Snapshot) -> query_service_pb2.PublishSnapshotResponse:
    """The published copy as a message."""
    return query_service_pb2.PublishSnapshotResponse(
        path=value.path,
        snapshot_time=timestamp_to_proto(value.snapshot_time),
        size_bytes=value.size_bytes,
        revision=value.revision,
    )


def publish_snapshot_response_from_proto(message: query_service_pb2.PublishSnapshotResponse) -> Snapshot:
    """The published copy from its message."""
    return Snapshot(
        path=message.path,
        snapshot_time=timestamp_from_proto(message.snapshot_time),
        size_bytes=message.size_bytes,
        revision=message.revision,
    )
