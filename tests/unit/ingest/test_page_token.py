import base64
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from ingest_service.core.page_token import (
    PagePosition,
    PhasePosition,
    RecordPosition,
    decode_page_token,
    decode_phase_token,
    decode_record_token,
    encode_page_token,
    encode_phase_token,
    encode_record_token,
    next_record_position,
)
from linkbound.domain.errors import InvalidArgumentError
from linkbound.domain.paging import PageRequest
from linkbound.domain.records import RequestRecord


def test_a_token_restores_its_position() -> None:
    position = PagePosition(create_time=datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC), run_id="study-109g")
    assert decode_page_token(encode_page_token(position)) == position


def test_the_empty_token_asks_for_the_first_page() -> None:
    assert decode_page_token("") is None


@pytest.mark.parametrize(
    "token", ["x", "!!!!", "AAAA", "W10=", "WzEsMl0=", "e30=", "WyIyMDI2LTAxLTAyIiwgInIiXQ==", "ü"]
)
def test_anything_else_is_refused_by_name(token: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        decode_page_token(token)
    assert [v.field for v in caught.value.field_violations] == ["page_token"]


def token_of(content: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).decode()


def record(subject: str, round_index: int, request_index: int) -> RequestRecord:
    return RequestRecord(
        subject=subject, round_index=round_index, request_index=request_index, prompt_tokens=1, output_tokens=1
    )


@pytest.mark.parametrize("subject", ["P4", "\U0001f600" * 128, '"' * 128])
def test_a_token_of_records_restores_its_position_and_is_short_enough_to_be_asked_with(subject: str) -> None:
    position = RecordPosition(subject=subject, round_index=-1000, request_index=10**6, passed_count=2**62)
    token = encode_record_token(position)
    assert decode_record_token(token) == position
    assert PageRequest(page_token=token).page_token == token


def test_no_token_is_the_first_page_of_records() -> None:
    assert decode_record_token("") is None


@pytest.mark.parametrize(
    "token",
    [
        "x",
        "ü",
        token_of(["P4", 0, 0]),
        token_of({"subject": "P4"}),
        token_of(["", 0, 0, 1]),
        token_of(["\ud800", 0, 0, 1]),
        token_of(["P4", 10**7, 0, 1]),
        token_of(["P4", 0, -1, 1]),
        token_of(["P4", 0, 0, 0]),
        token_of(["P4", 0, 0, True]),
        token_of(["P4", 0, 0, 2**63]),
        token_of(["P4", 0.5, 0, 1]),
        token_of(["P4", [], 0, 1]),
        encode_page_token(PagePosition(create_time=datetime(2026, 1, 2, tzinfo=UTC), run_id="a")),
    ],
)
def test_what_is_no_token_of_records_is_refused_by_name(token: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        decode_record_token(token)
    assert [v.field for v in caught.value.field_violations] == ["page_token"]


def test_records_that_share_their_keys_are_counted_over_pages() -> None:
    first = next_record_position([record("P4", 0, 0), record("P4", 0, 1), record("P4", 0, 1)], None)
    assert (first.request_index, first.passed_count) == (1, 2)
    second = next_record_position([record("P4", 0, 1)] * 3, first)
    assert (second.request_index, second.passed_count) == (1, 5)
    assert next_record_position([record("P4", 0, 1), record("P4", 1, 1)], second).passed_count == 1


@pytest.mark.parametrize("subject", ["P4", "\U0001f600" * 128])
def test_a_token_of_phases_restores_its_position_and_is_short_enough_to_be_asked_with(subject: str) -> None:
    position = PhasePosition(subject=subject, round_index=-1000, request_index=10**6, repetition=2**62, row_index=2**62)
    token = encode_phase_token(position)
    assert decode_phase_token(token) == position
    assert PageRequest(page_token=token).page_token == token
    assert decode_phase_token("") is None


@pytest.mark.parametrize(
    "token", ["x", token_of(["P4", 0, 0, 1]), token_of(["P4", 0, 0, -1, 0]), token_of(["P4", 0, 0, 0, 0.5])]
)
def test_what_is_no_token_of_phases_is_refused_by_name(token: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        decode_phase_token(token)
    assert [v.field for v in caught.value.field_violations] == ["page_token"]
