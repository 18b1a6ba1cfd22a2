"""Converters of `linkbound/ingest/v1/ingest_service.proto`.

`BatchError` carries an error, so it is made where errors become statuses and read where statuses become errors.
"""

from __future__ import annotations

from typing import TypeVar

from linkbound.convert.arrow_samples import sample_columns_to_arrow
from linkbound.convert.records import (
    collective_result_from_proto,
    collective_result_to_proto,
    event_from_proto,
    event_to_proto,
    link_test_from_proto,
    link_test_to_proto,
    metric_aggregate_from_proto,
    metric_aggregate_to_proto,
    request_record_from_proto,
    request_record_to_proto,
    training_step_from_proto,
    training_step_to_proto,
)
from linkbound.convert.samples import (
    STANDARD_READING,
    BatchReading,
    sample_columns_from_proto,
    sample_columns_to_proto,
    series_descriptor_from_proto,
    series_descriptor_to_proto,
)
from linkbound.convert.values import each, each_up_to
from linkbound.domain.errors import InvalidArgumentError
from linkbound.domain.names import RUNS, resource_id, resource_name
from linkbound.domain.records import (
    LARGEST_RECORD_COUNT,
    AppendOutcome,
    AppendRequest,
    CollectiveResult,
    Event,
    LinkTest,
    MetricAggregate,
    Record,
    RequestRecord,
    TrainingStep,
    chunk_count_violations,
)
from linkbound.domain.samples import (
    LARGEST_SERIES_COUNT,
    BatchOutcome,
    OpenStreamRequest,
    SampleBatch,
    SampleColumns,
    StreamLimits,
    StreamStart,
)
from linkbound.ingest.v1 import ingest_service_pb2

AppendRequestMessage = (
    ingest_service_pb2.AppendRequestRecordsRequest
    | ingest_service_pb2.AppendMetricAggregatesRequest
    | ingest_service_pb2.AppendCollectiveResultsRequest
    | ingest_service_pb2.AppendTrainingStepsRequest
    | ingest_service_pb2.AppendLinkTestsRequest
    | ingest_service_pb2.AppendEventsRequest
)
"""The message of an append: one type for each kind of record."""

AppendResponseMessage = TypeVar(
    "AppendResponseMessage",
    ingest_service_pb2.AppendRequestRecordsResponse,
    ingest_service_pb2.AppendMetricAggregatesResponse,
    ingest_service_pb2.AppendCollectiveResultsResponse,
    ingest_service_pb2.AppendTrainingStepsResponse,
    ingest_service_pb2.AppendLinkTestsResponse,
    ingest_service_pb2.AppendEventsResponse,
)
"""The answer to an append, of the same kind."""

R = TypeVar("R", bound=Record)


def append_request_to_proto(value: AppendRequest) -> AppendRequestMessage:
    """Records of one kind as the message of that kind."""
    name, writer_id, sequence_number = resource_name(RUNS, value.run), value.writer_id, value.sequence_number
    match value.records[0]:
        case RequestRecord():
            return ingest_service_pb2.AppendRequestRecordsRequest(
                run=name,
                writer_id=writer_id,
                sequence_number=sequence_number,
                records=each(request_record_to_proto, _of_kind(RequestRecord, value)),
            )
        case MetricAggregate():
            return ingest_service_pb2.AppendMetricAggregatesRequest(
                run=name,
                writer_id=writer_id,
                sequence_number=sequence_number,
                records=each(metric_aggregate_to_proto, _of_kind(MetricAggregate, value)),
            )
        case CollectiveResult():
            return ingest_service_pb2.AppendCollectiveResultsRequest(
                run=name,
                writer_id=writer_id,
                sequence_number=sequence_number,
                records=each(collective_result_to_proto, _of_kind(CollectiveResult, value)),
            )
        case TrainingStep():
            return ingest_service_pb2.AppendTrainingStepsRequest(
                run=name,
                writer_id=writer_id,
                sequence_number=sequence_number,
                records=each(training_step_to_proto, _of_kind(TrainingStep, value)),
            )
        case LinkTest():
            return ingest_service_pb2.AppendLinkTestsRequest(
                run=name,
                writer_id=writer_id,
                sequence_number=sequence_number,
                records=each(link_test_to_proto, _of_kind(LinkTest, value)),
            )
        case Event():
            return ingest_service_pb2.AppendEventsRequest(
                run=name,
                writer_id=writer_id,
                sequence_number=sequence_number,
                records=each(event_to_proto, _of_kind(Event, value)),
            )


def append_request_from_proto(message: AppendRequestMessage) -> AppendRequest:
    """Records of one kind from the message of that kind. Raises InvalidArgumentError with every violation."""
    return AppendRequest(
        run=resource_id(RUNS, message.run),
        writer_id=message.writer_id,
        sequence_number=message.sequence_number,
        records=_records_from_proto(message),
    )


def append_response_to_proto(value: AppendOutcome, kind: type[AppendResponseMessage]) -> AppendResponseMessage:
    """The answer of `kind` to an append."""
    return kind(
        committed_sequence_number=value.committed_sequence_number,
        checkpointed_sequence_number=value.checkpointed_sequence_number,
    )


def append_response_from_proto(message: AppendResponseMessage) -> AppendOutcome:
    """What is stored, from the answer to an append."""
    return AppendOutcome(
        committed_sequence_number=message.committed_sequence_number,
        checkpointed_sequence_number=message.checkpointed_sequence_number,
    )


def open_stream_request_to_proto(value: OpenStreamRequest) -> ingest_service_pb2.OpenStream:
    """The opening of a stream as a message."""
    return ingest_service_pb2.OpenStream(
        run=resource_name(RUNS, value.run),
        writer_id=value.writer_id,
        series=each(series_descriptor_to_proto, value.series),
        last_acked_sequence_number=value.last_acked_sequence_number,
        first_kept_sequence_number=value.first_kept_sequence_number,
    )


def open_stream_request_from_proto(message: ingest_service_pb2.OpenStream) -> OpenStreamRequest:
    """The opening of a stream from its message. Raises InvalidArgumentError with every violation."""
    return OpenStreamRequest(
        run=resource_id(RUNS, message.run),
        writer_id=message.writer_id,
        series=each_up_to(LARGEST_SERIES_COUNT, series_descriptor_from_proto, message.series),
        last_acked_sequence_number=message.last_acked_sequence_number,
        first_kept_sequence_number=message.first_kept_sequence_number,
    )


def sample_batch_to_proto(value: SampleBatch) -> ingest_service_pb2.SampleBatch:
    """A batch of samples as a message, as packed columns: the encoding that every client can write."""
    return ingest_service_pb2.SampleBatch(
        sequence_number=value.sequence_number,
        column_set=ingest_service_pb2.SampleColumnSet(columns=each(sample_columns_to_proto, value.columns)),
    )


def sample_batch_to_arrow_proto(value: SampleBatch) -> ingest_service_pb2.SampleBatch:
    """A batch of samples, in columns of equal length, as a message in the bulk encoding.

    It is more than twice as long as packed columns are, and takes a fraction of the time at both ends.
    """
    return ingest_service_pb2.SampleBatch(
        sequence_number=value.sequence_number, arrow_ipc=sample_columns_to_arrow(value.columns)
    )


def sample_batch_from_proto(
    message: ingest_service_pb2.SampleBatch, reading: BatchReading = STANDARD_READING
) -> SampleBatch:
    """A batch of samples from its message. Raises InvalidArgumentError with every violation."""
    columns: tuple[SampleColumns, ...]
    if message.WhichOneof("content") == "arrow_ipc":
        columns = reading.arrow(message.arrow_ipc)
    else:
        columns = each_up_to(
            LARGEST_SERIES_COUNT, lambda entry: sample_columns_from_proto(entry, reading), message.column_set.columns
        )
    return SampleBatch(sequence_number=message.sequence_number, columns=columns)


def stream_start_to_proto(value: StreamStart) -> ingest_service_pb2.StreamOpened:
    """The answer to the opening of a stream as a message."""
    return ingest_service_pb2.StreamOpened(
        committed_sequence_number=value.committed_sequence_number,
        max_in_flight_batches=value.limits.max_in_flight_batches,
        max_batch_bytes=value.limits.max_batch_bytes,
        checkpointed_sequence_number=value.checkpointed_sequence_number,
        rejected_sample_count=value.rejected_sample_count,
    )


def stream_start_from_proto(message: ingest_service_pb2.StreamOpened) -> StreamStart:
    """The answer to the opening of a stream from its message."""
    return StreamStart(
        committed_sequence_number=message.committed_sequence_number,
        checkpointed_sequence_number=message.checkpointed_sequence_number,
        rejected_sample_count=message.rejected_sample_count,
        limits=StreamLimits(
            max_in_flight_batches=message.max_in_flight_batches, max_batch_bytes=message.max_batch_bytes
        ),
    )


def batch_outcome_to_proto(value: BatchOutcome) -> ingest_service_pb2.BatchAck:
    """The acknowledgement of batches as a message."""
    return ingest_service_pb2.BatchAck(
        committed_sequence_number=value.committed_sequence_number,
        rejected_sample_count=value.rejected_sample_count,
        rejection_message=value.rejection_message,
        checkpointed_sequence_number=value.checkpointed_sequence_number,
    )


def batch_outcome_from_proto(message: ingest_service_pb2.BatchAck) -> BatchOutcome:
    """The acknowledgement of batches from its message."""
    return BatchOutcome(
        committed_sequence_number=message.committed_sequence_number,
        rejected_sample_count=message.rejected_sample_count,
        rejection_message=message.rejection_message,
        checkpointed_sequence_number=message.checkpointed_sequence_number,
    )


def _of_kind(kind: type[R], request: AppendRequest) -> list[R]:
    # AppendRequest holds that all records are of one kind.
    return [record for record in request.records if isinstance(record, kind)]


def _check_chunk_count(message: ingest_service_pb2.AppendRequestRecordsRequest) -> None:
    """Refuses more chunks than an append may have before any of them is read."""
    if len(message.records) > LARGEST_RECORD_COUNT:
        # They are refused by their number.
        return
    counts = (max(len(record.chunk_offset_ns), len(record.chunk_tokens)) for record in message.records)
    violations = list(chunk_count_violations(sum(counts)))
    if violations:
        raise InvalidArgumentError(violations)


def _records_from_proto(message: AppendRequestMessage) -> tuple[Record, ...]:
    match message:
        case ingest_service_pb2.AppendRequestRecordsRequest():
            _check_chunk_count(message)
            return each_up_to(LARGEST_RECORD_COUNT, request_record_from_proto, message.records)
        case ingest_service_pb2.AppendMetricAggregatesRequest():
            return each_up_to(LARGEST_RECORD_COUNT, metric_aggregate_from_proto, message.records)
        case ingest_service_pb2.AppendCollectiveResultsRequest():
            return each_up_to(LARGEST_RECORD_COUNT, collective_result_from_proto, message.records)
        case ingest_service_pb2.AppendTrainingStepsRequest():
            return each_up_to(LARGEST_RECORD_COUNT, training_step_from_proto, message.records)
        case ingest_service_pb2.AppendLinkTestsRequest():
            return each_up_to(LARGEST_RECORD_COUNT, link_test_from_proto, message.records)
        case ingest_service_pb2.AppendEventsRequest():
            return each_up_to(LARGEST_RECORD_COUNT, event_from_proto, message.records)
