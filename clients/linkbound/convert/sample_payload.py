"""Sample batches and openings as bytes that are kept before they are sent.

A batch rests without its number, which may not be known yet, and travels as the same bytes with the number in front: a
message of protobuf is its fields one after the other. So what is sent again is what was sent before, to the byte.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from linkbound.convert.ingest_service import (
    open_stream_request_from_proto,
    open_stream_request_to_proto,
    sample_batch_from_proto,
    sample_batch_to_proto,
)
from linkbound.convert.packed import length_delimited
from linkbound.convert.samples import series_descriptor_from_proto
from linkbound.domain.samples import OpenStreamRequest, SampleBatch, SampleColumns, SeriesDescriptor
from linkbound.ingest.v1 import ingest_service_pb2

NO_SAMPLES = b""
"""A batch without samples."""

_BATCH_FIELD_NUMBER = ingest_service_pb2.StreamSamplesRequest.DESCRIPTOR.fields_by_name["batch"].number
_ANY_NUMBER = 1


def payload_of_columns(columns: Sequence[SampleColumns]) -> bytes:
    """A batch of these columns, without its number."""
    message = sample_batch_to_proto(SampleBatch(sequence_number=_ANY_NUMBER, columns=tuple(columns)))
    message.ClearField("sequence_number")
    return message.SerializeToString()


def batch_message_bytes(sequence_number: int, payload: bytes) -> bytes:
    """The message that brings a batch over a stream."""
    number = ingest_service_pb2.SampleBatch(sequence_number=sequence_number).SerializeToString()
    return length_delimited(_BATCH_FIELD_NUMBER, number + payload)


def batch_of_payload(sequence_number: int, payload: bytes) -> SampleBatch:
    """The batch with its number. Raises InvalidArgumentError for a payload that is none."""
    message = ingest_service_pb2.SampleBatch.FromString(payload)
    message.sequence_number = sequence_number
    return sample_batch_from_proto(message)


def opening_to_bytes(request: OpenStreamRequest) -> bytes:
    """What batches belong to: run, writer and series, whatever the writer knows of its numbers."""
    opening = evolve(request, last_acked_sequence_number=0, first_kept_sequence_number=0)
    return open_stream_request_to_proto(opening).SerializeToString(deterministic=True)


def opening_from_bytes(content: bytes) -> OpenStreamRequest:
    """What batches belong to. Raises InvalidArgumentError for bytes that are none."""
    return open_stream_request_from_proto(ingest_service_pb2.OpenStream.FromString(content))


def series_of_opening(content: bytes) -> tuple[SeriesDescriptor, ...]:
    """The series of an opening; none where it is that of a writer of records."""
    message = ingest_service_pb2.OpenStream.FromString(content)
    return tuple(map(series_descriptor_from_proto, message.series))
