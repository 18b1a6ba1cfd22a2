"""A request with more items than its rules allow is refused by their number, before each of them is read."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from attrs import frozen
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from linkbound.convert.ingest_service import append_request_from_proto
from linkbound.domain.errors import InvalidArgumentError
from linkbound.ingest.v1 import ingest_service_pb2
from tests.contract.protos import methods
from tests.unit.convert.converters import message_pairs

ITEM_COUNT = 100_000
CALL_COUNT = ITEM_COUNT // 4
"""Calls of Python functions that a refusal may take: far fewer than one for each item."""


@frozen
class Place:
    """A repeated field of messages, or a map, somewhere in the request of a method."""

    request: type[Message]
    path: tuple[FieldDescriptor, ...]

    @property
    def name(self) -> str:
        return f"{self.request.DESCRIPTOR.name}.{'.'.join(field.name for field in self.path)}"

    def oversized(self) -> Message:
        """The request with far too many items in the field."""
        message = self.request()
        within: Any = message
        for field in self.path[:-1]:
            within = getattr(within, field.name)
            within.SetInParent()
        last = self.path[-1]
        target = getattr(within, last.name)
        kind: Any = last.message_type
        if kind.GetOptions().map_entry:
            target.update({str(index): "" for index in range(ITEM_COUNT)})
        else:
            target.extend([GetMessageClass(kind)()] * ITEM_COUNT)
        return message


def _paths(message: Any, above: tuple[FieldDescriptor, ...] = ()) -> Iterator[tuple[FieldDescriptor, ...]]:
    for field in message.fields:
        if field.message_type is None or field.message_type in {within.containing_type for within in above}:
            continue
        if field.is_repeated:
            yield (*above, field)
        else:
            yield from _paths(field.message_type, (*above, field))


def name_of(message: Any) -> str:
    return str(message.DESCRIPTOR.full_name)


READERS: dict[str, Callable[[Any], Any]] = {
    **{name_of(pair.message): pair.from_proto for pair in message_pairs()},
    **{
        method.input_type.full_name: append_request_from_proto
        for method in methods()
        if method.name.startswith("Append")
    },
}
ENVELOPES = {"BatchEstimateRequest", "StreamSamplesRequest"}
"""Read by their servicers: the first counts its questions itself, of the second the messages within are read."""
STREAMED = [ingest_service_pb2.OpenStream, ingest_service_pb2.SampleBatch]
REQUESTS: list[Any] = [
    *(GetMessageClass(method.input_type) for method in methods() if method.input_type.name not in ENVELOPES),
    *STREAMED,
]
PLACES = [Place(request, path) for request in REQUESTS for path in _paths(request.DESCRIPTOR)]


def calls_of(read: Callable[[], object]) -> int:
    """How many Python functions `read` calls."""
    count = 0

    def note(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(note)
    try:
        read()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.name)
def test_too_many_items_are_refused_unread(place: Place) -> None:
    message = place.oversized()
    read = READERS[name_of(message)]

    def refused() -> None:
        with pytest.raises(InvalidArgumentError, match=f"{ITEM_COUNT} items are not"):
            read(message)

    assert calls_of(refused) < CALL_COUNT


def test_the_fields_that_matter_are_among_them() -> None:
    names = {place.name for place in PLACES}
    assert {
        "StreamSweepRequest.axes",
        "EstimatePrefillRequest.rank_links",
        "FitCalibrationRequest.table.points",
        "CreateRunRequest.prediction.values",
        "CreateRunRequest.settings",
        "AppendRequestRecordsRequest.records",
        "OpenStream.series",
        "SampleBatch.column_set.columns",
    } <= names
