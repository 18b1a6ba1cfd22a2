"""Appends of records as bytes that are kept before they are sent: without their number, which may not be known yet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from attrs import field, frozen

from linkbound.convert.ingest_service import AppendRequestMessage, append_request_from_proto, append_request_to_proto
from linkbound.domain.names import RUNS, resource_name
from linkbound.domain.records import (
    AppendRequest,
    CollectiveResult,
    Event,
    LinkTest,
    MetricAggregate,
    Record,
    RequestRecord,
    TrainingStep,
)
from linkbound.ingest.v1 import ingest_service_pb2

LARGEST_PAYLOAD_BYTES = 2**20
"""A part of records that is larger is cut, down to single ones; a message may have 16 MiB."""
PART_RECORD_COUNT = 1000
"""Records of one append at most."""

_ANY_NUMBER = 1

# The position is the kind under which a part rests on a disk: it never changes.
_KINDS: tuple[tuple[type[Record], type[AppendRequestMessage]], ...] = (
    (RequestRecord, ingest_service_pb2.AppendRequestRecordsRequest),
    (MetricAggregate, ingest_service_pb2.AppendMetricAggregatesRequest),
    (CollectiveResult, ingest_service_pb2.AppendCollectiveResultsRequest),
    (TrainingStep, ingest_service_pb2.AppendTrainingStepsRequest),
    (LinkTest, ingest_service_pb2.AppendLinkTestsRequest),
    (Event, ingest_service_pb2.AppendEventsRequest),
)


@frozen(kw_only=True)
class RecordPart:
    """Records of one kind that make up one append. `kind` is the position of their kind."""

    kind: int
    record_count: int
    payload: bytes = field(repr=False)


def record_parts(run: str, writer_id: str, records: Sequence[Record]) -> Iterator[RecordPart]:
    """Records of any kinds as appends, in their order. Raises InvalidArgumentError with every violation."""
    for _, group in groupby(records, type):
        of_one_kind = tuple(group)
        for begin in range(0, len(of_one_kind), PART_RECORD_COUNT):
            yield from _parts(run, writer_id, of_one_kind[begin : begin + PART_RECORD_COUNT])


def _parts(run: str, writer_id: str, records: tuple[Record, ...]) -> Iterator[RecordPart]:
    request = AppendRequest(run=run, writer_id=writer_id, sequence_number=_ANY_NUMBER, records=records)
    message = append_request_to_proto(request)
    message.ClearField("sequence_number")
    payload = message.SerializeToString()
    if len(payload) > LARGEST_PAYLOAD_BYTES and len(records) > 1:
        half = len(records) // 2
        yield from _parts(run, writer_id, records[:half])
        yield from _parts(run, writer_id, records[half:])
        return
    kind = next(position for position, (kind, _) in enumerate(_KINDS) if isinstance(records[0], kind))
    yield RecordPart(kind=kind, record_count=len(records), payload=payload)


def append_of_payload(kind: int, sequence_number: int, payload: bytes) -> AppendRequest:
    """The append with its number. Raises InvalidArgumentError for a payload that is none."""
    message = _KINDS[kind][1].FromString(payload)
    message.sequence_number = sequence_number
    return append_request_from_proto(message)


def record_opening(run: str, writer_id: str) -> bytes:
    """What the records of a writer belong to."""
    return ingest_service_pb2.OpenStream(run=resource_name(RUNS, run), writer_id=writer_id).SerializeToString()
