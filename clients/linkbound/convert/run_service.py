"""Converters of `linkbound/ingest/v1/run_service.proto`."""

from __future__ import annotations

from linkbound.convert.prediction import new_prediction_from_proto, prediction_to_proto
from linkbound.convert.run import run_from_proto, run_to_proto, settings_from_proto, settings_to_proto
from linkbound.convert.values import EnumConverter, each, maybe
from linkbound.domain.names import RUNS, resource_id, resource_name
from linkbound.domain.paging import Page, PageRequest
from linkbound.domain.run import CreateRunRequest, Run, RunDetails, RunRequest, RunRowCounts, SealRunRequest
from linkbound.domain.run_watch import RunChange, RunUpdate, WatchRunsRequest
from linkbound.ingest.v1 import run_pb2, run_service_pb2

_RUN_CHANGE = EnumConverter(RunChange, run_service_pb2.RunChange)

run_change_to_proto = _RUN_CHANGE.to_proto
run_change_from_proto = _RUN_CHANGE.from_proto


def create_run_request_to_proto(value: CreateRunRequest) -> run_service_pb2.CreateRunRequest:
    """A run to create as a message."""
    return run_service_pb2.CreateRunRequest(
        run_id=value.run_id,
        display_name=value.display_name,
        source=value.source,
        settings=settings_to_proto(value.settings),
        prediction=maybe(prediction_to_proto, value.prediction),
    )


def create_run_request_from_proto(message: run_service_pb2.CreateRunRequest) -> CreateRunRequest:
    """A run to create from its message. Raises InvalidArgumentError with every violation."""
    return CreateRunRequest(
        run_id=message.run_id,
        display_name=message.display_name,
        source=message.source,
        settings=settings_from_proto(message.settings),
        prediction=new_prediction_from_proto(message.prediction) if message.HasField("prediction") else None,
    )


def create_run_response_to_proto(value: Run) -> run_service_pb2.CreateRunResponse:
    """The run that was created as a message."""
    return run_service_pb2.CreateRunResponse(run=run_to_proto(value))


def create_run_response_from_proto(message: run_service_pb2.CreateRunResponse) -> Run:
    """The run that was created from its message."""
    return run_from_proto(message.run)


def get_run_request_to_proto(value: RunRequest) -> run_service_pb2.GetRunRequest:
    """The name of a run to read as a message."""
    return run_service_pb2.GetRunRequest(run=resource_name(RUNS, value.run))


def get_run_request_from_proto(message: run_service_pb2.GetRunRequest) -> RunRequest:
    """The name of a run to read from its message. Raises InvalidArgumentError for what is no id."""
    return RunRequest(run=resource_id(RUNS, message.run))


def run_row_counts_to_proto(value: RunRowCounts) -> run_service_pb2.RunRowCounts:
    """Rows by kind as a message."""
    return run_service_pb2.RunRowCounts(
        request_record_count=value.request_record_count,
        metric_aggregate_count=value.metric_aggregate_count,
        collective_result_count=value.collective_result_count,
        training_step_count=value.training_step_count,
        sample_count=value.sample_count,
        link_test_count=value.link_test_count,
        event_count=value.event_count,
        chunk_count=value.chunk_count,
    )


def run_row_counts_from_proto(message: run_service_pb2.RunRowCounts) -> RunRowCounts:
    """Rows by kind from their message."""
    return RunRowCounts(
        request_record_count=message.request_record_count,
        metric_aggregate_count=message.metric_aggregate_count,
        collective_result_count=message.collective_result_count,
        training_step_count=message.training_step_count,
        sample_count=message.sample_count,
        link_test_count=message.link_test_count,
        event_count=message.event_count,
        chunk_count=message.chunk_count,
    )


def run_details_to_proto(value: RunDetails) -> run_service_pb2.GetRunResponse:
    """A run and what is stored for it as a message."""
    return run_service_pb2.GetRunResponse(
        run=run_to_proto(value.run), row_counts=run_row_counts_to_proto(value.row_counts)
    )


def run_details_from_proto(message: run_service_pb2.GetRunResponse) -> RunDetails:
    """A run and what is stored for it from its message."""
    return RunDetails(run=run_from_proto(message.run), row_counts=run_row_counts_from_proto(message.row_counts))


def list_runs_request_to_proto(value: PageRequest) -> run_service_pb2.ListRunsRequest:
    """A question for a page of runs as a message."""
    return run_service_pb2.ListRunsRequest(page_size=value.page_size, page_token=value.page_token)


def list_runs_request_from_proto(message: run_service_pb2.ListRunsRequest) -> PageRequest:
    """A question for a page of runs from its message. Raises InvalidArgumentError with every violation."""
    return PageRequest(page_size=message.page_size, page_token=message.page_token)


def list_runs_response_to_proto(value: Page[Run]) -> run_service_pb2.ListRunsResponse:
    """A page of runs as a message."""
    return run_service_pb2.ListRunsResponse(
        runs=each(run_to_proto, value.entries), next_page_token=value.next_page_token
    )


def list_runs_response_from_proto(message: run_service_pb2.ListRunsResponse) -> Page[Run]:
    """A page of runs from its message."""
    return Page(entries=each(run_from_proto, message.runs), next_page_token=message.next_page_token)


def seal_run_request_to_proto(value: SealRunRequest) -> run_service_pb2.SealRunRequest:
    """A run to seal as a message."""
    return run_service_pb2.SealRunRequest(
        run=resource_name(RUNS, value.run), expected_row_count=value.expected_row_count
    )


def seal_run_request_from_proto(message: run_service_pb2.SealRunRequest) -> SealRunRequest:
    """A run to seal from its message. Raises InvalidArgumentError with every violation."""
    return SealRunRequest(
        run=resource_id(RUNS, message.run),
        expected_row_count=message.expected_row_count if message.HasField("expected_row_count") else None,
    )


def seal_run_response_to_proto(value: Run) -> run_service_pb2.SealRunResponse:
    """The sealed run as a message."""
    return run_service_pb2.SealRunResponse(run=run_to_proto(value))


def seal_run_response_from_proto(message: run_service_pb2.SealRunResponse) -> Run:
    """The sealed run from its message."""
    return run_from_proto(message.run)


def delete_run_request_to_proto(value: RunRequest) -> run_service_pb2.DeleteRunRequest:
    """The name of a run to delete as a message."""
    return run_service_pb2.DeleteRunRequest(run=resource_name(RUNS, value.run))


def delete_run_request_from_proto(message: run_service_pb2.DeleteRunRequest) -> RunRequest:
    """The name of a run to delete from its message. Raises InvalidArgumentError for what is no id."""
    return RunRequest(run=resource_id(RUNS, message.run))


def delete_run_response_to_proto(value: RunRowCounts) -> run_service_pb2.DeleteRunResponse:
    """Rows that were deleted as a message."""
    return run_service_pb2.DeleteRunResponse(row_counts=run_row_counts_to_proto(value))


def delete_run_response_from_proto(message: run_service_pb2.DeleteRunResponse) -> RunRowCounts:
    """Rows that were deleted from their message."""
    return run_row_counts_from_proto(message.row_counts)


def watch_runs_request_to_proto(value: WatchRunsRequest) -> run_service_pb2.WatchRunsRequest:
    """A watch of runs as a message."""
    return run_service_pb2.WatchRunsRequest(
        start_revision=value.start_revision, run="" if value.run is None else resource_name(RUNS, value.run)
    )


def watch_runs_request_from_proto(message: run_service_pb2.WatchRunsRequest) -> WatchRunsRequest:
    """A watch of runs from its message. Raises InvalidArgumentError with every violation."""
    return WatchRunsRequest(
        start_revision=message.start_revision, run=resource_id(RUNS, message.run) if message.run else None
    )


def watch_runs_response_to_proto(value: RunUpdate) -> run_service_pb2.WatchRunsResponse:
    """What happened to a run as a message; of one that is gone it has the name alone."""
    gone = run_pb2.Run(name=resource_name(RUNS, value.run_id)) if value.run_id else None
    return run_service_pb2.WatchRunsResponse(
        revision=value.revision,
        run=gone if value.run is None else run_to_proto(value.run),
        row_counts=maybe(run_row_counts_to_proto, value.row_counts),
        change=run_change_to_proto(value.change),
    )


def watch_runs_response_from_proto(message: run_service_pb2.WatchRunsResponse) -> RunUpdate:
    """What happened to a run from its message."""
    change = run_change_from_proto(message.change)
    is_there = message.HasField("run") and change is not RunChange.DELETED
    return RunUpdate(
        revision=message.revision,
        change=change,
        run_id=resource_id(RUNS, message.run.name) if message.HasField("run") else "",
        run=run_from_proto(message.run) if is_there else None,
        row_counts=run_row_counts_from_proto(message.row_counts) if message.HasField("row_counts") else None,
    )
