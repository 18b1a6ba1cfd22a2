"""Batches and appends as bytes that rest before they are sent."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkbound import (
    CollectiveKind,
    CollectiveResult,
    Event,
    InvalidArgumentError,
    LinkTest,
    Metric,
    MetricAggregate,
    Record,
    RequestRecord,
    SampleColumns,
    SeriesDescriptor,
    Spread,
    TrainingStep,
)
from linkbound.convert.ingest_service import append_request_to_proto, sample_batch_to_proto
from linkbound.convert.record_payload import append_of_payload, record_opening, record_parts
from linkbound.convert.sample_payload import (
    NO_SAMPLES,
    batch_message_bytes,
    batch_of_payload,
    opening_from_bytes,
    opening_to_bytes,
    payload_of_columns,
    series_of_opening,
)
from linkbound.domain.records import LARGEST_SEQUENCE_NUMBER, AppendRequest
from linkbound.domain.samples import OpenStreamRequest, SampleBatch
from linkbound.ingest.v1.ingest_service_pb2 import StreamSamplesRequest

NUMBERS = st.integers(1, LARGEST_SEQUENCE_NUMBER)
READINGS = st.lists(st.integers(-(2**63), 2**63 - 1), max_size=300)

ONE_OF_EACH_KIND: list[Record] = [
    RequestRecord(
        subject="s", round_index=0, request_index=0, prompt_tokens=1, output_tokens=1, ttft_ns=1, last_token_ns=1
    ),
    MetricAggregate(metric=Metric.TTFT_SECONDS, subject="s", value=Spread(mean=1.0)),
    CollectiveResult(subject="s", kind=CollectiveKind.ALL_REDUCE, rank_count=2, bus_bandwidth_bytes_per_second=1e9),
    TrainingStep(subject="s", node_count=1, step_seconds=1.0),
    LinkTest(subject="s", tool="ib_write_bw", bits_per_second=1e9),
    Event(kind="note", text="t"),
]


@given(NUMBERS, READINGS)
def test_a_batch_travels_as_the_message_that_it_is(number: int, readings: list[int]) -> None:
    columns = [SampleColumns(series_index=0, time_ns=readings, value=readings)]
    batch = SampleBatch(sequence_number=number, columns=tuple(columns))
    payload = payload_of_columns(columns)
    sent = StreamSamplesRequest.FromString(batch_message_bytes(number, payload))
    assert sent == StreamSamplesRequest(batch=sample_batch_to_proto(batch))
    assert batch_of_payload(number, payload) == batch


@given(NUMBERS)
def test_an_empty_batch_has_a_number_and_nothing_else(number: int) -> None:
    sent = StreamSamplesRequest.FromString(batch_message_bytes(number, NO_SAMPLES))
    assert (sent.batch.sequence_number, sent.batch.WhichOneof("content")) == (number, None)
    assert batch_of_payload(number, NO_SAMPLES) == SampleBatch(sequence_number=number, columns=())


def test_an_opening_knows_nothing_of_numbers() -> None:
    series = (SeriesDescriptor(metric="m", node="n", physical_port="p0"),)
    request = OpenStreamRequest(run="r", writer_id="w", series=series, last_acked_sequence_number=3)
    content = opening_to_bytes(request)
    assert opening_from_bytes(content) == OpenStreamRequest(run="r", writer_id="w", series=series)
    assert series_of_opening(content) == series
    assert series_of_opening(record_opening("r", "w")) == ()


@pytest.mark.parametrize(("kind", "record"), list(enumerate(ONE_OF_EACH_KIND)))
def test_a_kind_of_records_rests_under_the_same_figure_for_ever(kind: int, record: Record) -> None:
    (part,) = record_parts("r", "w", [record])
    assert (part.kind, part.record_count) == (kind, 1)
    request = append_of_payload(kind, 7, part.payload)
    assert request == AppendRequest(run="r", writer_id="w", sequence_number=7, records=(record,))
    assert append_request_to_proto(request).sequence_number == 7


def test_parts_are_of_one_kind_and_in_order() -> None:
    records = [*ONE_OF_EACH_KIND, *ONE_OF_EACH_KIND]
    parts = list(record_parts("r", "w", records))
    assert [part.kind for part in parts] == [0, 1, 2, 3, 4, 5] * 2
    assert [record for part in parts for record in append_of_payload(part.kind, 1, part.payload).records] == records
    assert list(record_parts("r", "w", [])) == []


def test_bad_records_are_refused_before_they_rest() -> None:
    with pytest.raises(InvalidArgumentError):
        list(record_parts("r", "w", [TrainingStep(subject="s", node_count=1, step_seconds=-1.0)]))
