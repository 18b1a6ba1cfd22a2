"""Records refuse what contradicts itself, all of it at once."""

from __future__ import annotations

from typing import Any

import pytest

from linkbound.convert.ingest_service import append_request_from_proto
from linkbound.domain.errors import InvalidArgumentError
from linkbound.domain.records import (
    LARGEST_CHUNK_COUNT,
    AppendRequest,
    Event,
    LinkTest,
    LinkTestDirection,
    Record,
    RequestRecord,
)
from linkbound.domain.rules import violations_of
from linkbound.ingest.v1 import ingest_service_pb2


def request(**fields: Any) -> RequestRecord:
    usual: dict[str, Any] = {
        "subject": "P1",
        "round_index": 0,
        "request_index": 0,
        "prompt_tokens": 8,
        "output_tokens": 4,
    }
    return RequestRecord(**{**usual, **fields})


def told(record: Record) -> list[tuple[str, str]]:
    return [(violation.field, violation.description) for violation in violations_of(record)]


@pytest.mark.parametrize(
    "record",
    [
        request(),
        request(ttft_ns=5, last_token_ns=9, chunk_offset_ns=(5, 5, 9), chunk_tokens=(1, 2, 1)),
        request(ttft_ns=5, last_token_ns=9, chunk_offset_ns=(5, 9)),
        # Chunks may tell more than the record does.
        request(chunk_offset_ns=(5, 9)),
        LinkTest(subject="a", tool="ping", latency_seconds=1e-6),
        LinkTest(subject="a", tool="iperf3", bits_per_second=1.0, direction=LinkTestDirection.BOTH_WAYS),
        Event(kind="note"),
        Event(kind="clock_anchor", time_ns=0, time_unix_ns=0),
    ],
)
def test_what_agrees_with_itself_is_taken(record: Record) -> None:
    assert told(record) == []


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (
            request(ttft_ns=5, last_token_ns=9, chunk_offset_ns=(6, 8), chunk_tokens=(1,)),
            [
                ("chunk_tokens", "1 for 2 chunks"),
                ("chunk_offset_ns[0]", "6 is not ttft_ns, 5"),
                ("chunk_offset_ns[1]", "8 is not last_token_ns, 9"),
            ],
        ),
        (request(chunk_offset_ns=(5, 4)), [("chunk_offset_ns", "falls")]),
        (request(chunk_tokens=(1,)), [("chunk_tokens", "1 for 0 chunks")]),
        (
            request(chunk_offset_ns=(1, -1, True), chunk_tokens=(1, 1, 0)),
            [
                ("chunk_offset_ns", f"at 1: -1 is not a whole number from 0 to {2**63 - 1}"),
                ("chunk_tokens", "at 2: 0 is not a whole number from 1 to 1000000000"),
            ],
        ),
        (request(chunk_offset_ns=[1]), [("chunk_offset_ns", "[1] is not a tuple")]),
        (LinkTest(subject="a", tool="b"), [("bits_per_second", "is missing, and so is latency_seconds")]),
        (
            Event(kind="clock_anchor"),
            [
                ("time_ns", "is missing, and an anchor of clocks has both times"),
                ("time_unix_ns", "is missing, and an anchor of clocks has both times"),
            ],
        ),
        (
            Event(kind="Clock anchor"),
            [("kind", "'Clock anchor' is not a word of 1 to 64 of a-z, 0-9 and _ that starts with a letter")],
        ),
    ],
)
def test_every_contradiction_is_told(record: Record, expected: list[tuple[str, str]]) -> None:
    assert told(record) == expected


TOO_MANY = f"{2 * LARGEST_CHUNK_COUNT} chunks of tokens in one append are above {LARGEST_CHUNK_COUNT}"


def test_an_append_has_no_more_chunks_than_one_record_may_have() -> None:
    record = request(chunk_offset_ns=(1,) * LARGEST_CHUNK_COUNT)
    with pytest.raises(InvalidArgumentError) as caught:
        AppendRequest(run="r", writer_id="w", sequence_number=1, records=(record, record))
    assert [(v.field, v.description) for v in caught.value.field_violations] == [("records", TOO_MANY)]


@pytest.mark.parametrize("name", ["chunk_offset_ns", "chunk_tokens"])
def test_more_chunks_than_an_append_may_have_are_not_even_read(name: str) -> None:
    message = ingest_service_pb2.AppendRequestRecordsRequest(run="r", writer_id="w", sequence_number=1)
    for _ in range(2):
        getattr(message.records.add(), name).extend([1] * LARGEST_CHUNK_COUNT)
    with pytest.raises(InvalidArgumentError) as caught:
        append_request_from_proto(message)
    # Of what else is wrong with the records nothing is known.
    assert [(v.field, v.description) for v in caught.value.field_violations] == [("records", TOO_MANY)]
