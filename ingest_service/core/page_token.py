"""Page tokens of lists: where the next page begins, in a form that users need not read."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from attrs import astuple, field, frozen

from linkbound.domain.errors import InvalidArgumentError, Violation
from linkbound.domain.prediction import SUBJECT
from linkbound.domain.records import REQUEST_INDEX, ROUND_INDEX, RequestRecord
from linkbound.domain.rules import violations_of, whole


@frozen(kw_only=True)
class PagePosition:
    """The last run of a page; the next page has those created before it, by id where the time is equal."""

    create_time: datetime
    run_id: str


@frozen(kw_only=True)
class RecordPosition:
    """The last request record of a page, and how many with the same three keys were on pages so far.

    Nothing keeps a source from storing one request twice, so that the keys alone do not tell where a page ended.
    """

    subject: str = field(metadata=SUBJECT)
    round_index: int = field(metadata=ROUND_INDEX)
    request_index: int = field(metadata=REQUEST_INDEX)
    passed_count: int = field(metadata=whole(1, 2**62))


@frozen(kw_only=True)
class PhasePosition:
    """The last row of a page of phases: its request, which one of those with the same three keys, and which row of it.

    Both count from 0. The rows of a request are those of the ports, in their order.
    """

    subject: str = field(metadata=SUBJECT)
    round_index: int = field(metadata=ROUND_INDEX)
    request_index: int = field(metadata=REQUEST_INDEX)
    repetition: int = field(metadata=whole(0, 2**62))
    row_index: int = field(metadata=whole(0, 2**62))


def encode_page_token(position: PagePosition) -> str:
    """The token that asks for the runs that follow `position`."""
    return _encoded([position.create_time.isoformat(), position.run_id])


def decode_page_token(token: str) -> PagePosition | None:
    """The position in `token`; None for the empty token, which asks for the first page.

    Raises InvalidArgumentError on `page_token` for a token that `encode_page_token` did not make.
    """
    if not token:
        return None
    try:
        create_time, run_id = _decoded(token)
        position = PagePosition(create_time=datetime.fromisoformat(create_time), run_id=run_id)
    except (ValueError, TypeError) as error:
        raise _not_a_token() from error
    if not isinstance(run_id, str) or position.create_time.tzinfo is None:
        raise _not_a_token()
    return position


def encode_record_token(position: RecordPosition) -> str:
    """The token that asks for the request records that follow `position`."""
    return _encoded([position.subject, position.round_index, position.request_index, position.passed_count])


def decode_record_token(token: str) -> RecordPosition | None:
    """The position in `token`; None for the empty token, which asks for the first page.

    Raises InvalidArgumentError on `page_token` for a token that `encode_record_token` did not make.
    """
    if not token:
        return None
    try:
        subject, round_index, request_index, passed_count = _decoded(token)
    except (ValueError, TypeError) as error:
        raise _not_a_token() from error
    position = RecordPosition(
        subject=subject, round_index=round_index, request_index=request_index, passed_count=passed_count
    )
    if any(violations_of(position)):
        raise _not_a_token()
    return position


def encode_phase_token(position: PhasePosition) -> str:
    """The token that asks for the rows that follow `position`."""
    return _encoded(list(astuple(position)))


def decode_phase_token(token: str) -> PhasePosition | None:
    """The position in `token`; None for the empty token, which asks for the first page.

    Raises InvalidArgumentError on `page_token` for a token that `encode_phase_token` did not make.
    """
    if not token:
        return None
    try:
        subject, round_index, request_index, repetition, row_index = _decoded(token)
    except (ValueError, TypeError) as error:
        raise _not_a_token() from error
    position = PhasePosition(
        subject=subject,
        round_index=round_index,
        request_index=request_index,
        repetition=repetition,
        row_index=row_index,
    )
    if any(violations_of(position)):
        raise _not_a_token()
    return position


def next_record_position(page: Sequence[RequestRecord], after: RecordPosition | None) -> RecordPosition:
    """Where a page ends that is not empty and follows `after`."""
    last = _key(page[-1])
    at_the_end = sum(1 for record in page if _key(record) == last)
    passed_before = after.passed_count if after is not None and _key(after) == last else 0
    subject, round_index, request_index = last
    return RecordPosition(
        subject=subject,
        round_index=round_index,
        request_index=request_index,
        passed_count=passed_before + at_the_end,
    )


def _key(record: RequestRecord | RecordPosition) -> tuple[str, int, int]:
    return record.subject, record.round_index, record.request_index


def _encoded(content: list[Any]) -> str:
    # As UTF-8: escapes would make the token of a long subject longer than a token may be.
    return base64.urlsafe_b64encode(json.dumps(content, ensure_ascii=False).encode()).decode()


def _decoded(token: str) -> Any:
    """What `_encoded` was given. Raises ValueError for anything else."""
    try:
        return json.loads(base64.b64decode(token.encode(), altchars=b"-_", validate=True))
    except (binascii.Error, RecursionError) as error:
        raise ValueError("is no token") from error


def _not_a_token() -> InvalidArgumentError:
    return InvalidArgumentError([Violation("page_token", "is not a next_page_token of an answer before")])
