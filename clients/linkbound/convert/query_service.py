"""Converters of `linkbound/ingest/v1/query_service.proto`."""

from __future__ import annotations

from linkbound.convert.estimate import estimate_from_proto, estimate_to_proto
from linkbound.convert.metric import metric_from_proto, metric_to_proto
from linkbound.convert.prediction import baseline_from_proto, baseline_to_proto
from linkbound.convert.records import request_record_from_proto, request_record_to_proto
from linkbound.convert.values import EnumConverter, each, maybe
from linkbound.domain.names import RUNS, resource_id, resource_name
from linkbound.domain.paging import Page
from linkbound.domain.records import ListRequestRecordsRequest, RequestRecord
from linkbound.domain.run import RunRequest
from linkbound.domain.run_comparison import ComparisonRow, Finding, RunComparison, Severity
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
