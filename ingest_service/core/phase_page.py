"""One page of the rows of phases: a row for each request and port, in the order of requests and then of ports."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from attrs import frozen

from ingest_service.core.page_token import PhasePosition, encode_phase_token
from ingest_service.core.phases import RequestPhases
from linkbound.domain.records import RequestRecord

_Key = tuple[str, int, int]


@frozen(kw_only=True)
class PhaseRow:
    """One row: a request, and one of the ports on its clock, by index; `position` says where it stands in the list."""

    request: RequestPhases
    position: PhasePosition

    @property
    def port_index(self) -> int:
        """Index among the ports of the request's clock."""
        return self.position.row_index


@frozen(kw_only=True)
class PhaseRows:
    """The rows of one page, and the token of the next; empty at the end."""

    rows: tuple[PhaseRow, ...]
    next_page_token: str


def in_order(requests: Sequence[RequestPhases], subject: str) -> list[RequestPhases]:
    """The requests of `subject`, of every test where it is empty, by test, round and position; else as stored."""
    listed = [request for request in requests if subject in ("", request.record.subject)]
    return sorted(listed, key=lambda request: _key(request.record))


def page_of(
    requests: Sequence[RequestPhases],
    port_count: Callable[[RequestPhases], int],
    after: PhasePosition | None,
    page_size: int,
) -> PhaseRows:
    """The rows behind `after` of requests that are in order; a request without a port has one row all the same."""
    rows = tuple(islice(_rows_behind(requests, port_count, after), page_size + 1))
    if len(rows) <= page_size:
        return PhaseRows(rows=rows, next_page_token="")
    page = rows[:page_size]
    return PhaseRows(rows=page, next_page_token=encode_phase_token(page[-1].position))


def _rows_behind(
    requests: Sequence[RequestPhases], port_count: Callable[[RequestPhases], int], after: PhasePosition | None
) -> Iterator[PhaseRow]:
    start = 0
    if after is not None:
        start = bisect_left(
            requests,
            (after.subject, after.round_index, after.request_index),
            key=lambda request: _key(request.record),
        )
    repetition = 0
    for index in range(start, len(requests)):
        record = requests[index].record
        repetition = repetition + 1 if index > start and _key(requests[index - 1].record) == _key(record) else 0
        for row_index in range(max(port_count(requests[index]), 1)):
            position = PhasePosition(
                subject=record.subject,
                round_index=record.round_index,
                request_index=record.request_index,
                repetition=repetition,
                row_index=row_index,
            )
            if after is None or _order(position) > _order(after):
                yield PhaseRow(request=requests[index], position=position)


def _key(record: RequestRecord) -> _Key:
    return record.subject, record.round_index, record.request_index


def _order(position: PhasePosition) -> tuple[str, int, int, int, int]:
    return (
        position.subject,
        position.round_index,
        position.request_index,
        position.repetition,
        position.row_index,
    )
