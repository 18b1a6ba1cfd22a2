"""Times of collectives from the output of nccl-tests, or from a CSV of `message_bytes,seconds`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from attrs import frozen

from linkbound.domain.calibration import CollectivePoint
from linkbound.domain.collective import CollectiveKind
from linkbound.domain.errors import InvalidArgumentError, Violation
from linkbound.domain.rules import shown, violations_of

CSV_COLUMNS = ("message_bytes", "seconds")

_KINDS = {
    "all_reduce": CollectiveKind.ALL_REDUCE,
    "all_gather": CollectiveKind.ALL_GATHER,
    "reduce_scatter": CollectiveKind.REDUCE_SCATTER,
    "alltoall": CollectiveKind.ALL_TO_ALL,
    "sendrecv": CollectiveKind.SEND_RECEIVE,
}
_PROGRAM = re.compile(rf"\b({'|'.join(_KINDS)})(?:_perf)?\b")
_RANK = re.compile(r"#\s*Rank\s+(?P<rank>\d+)\b.*?\bon\s+(?P<host>\S+)")
# mpirun can put the rank and the stream before each line.
_TAG = re.compile(r"^\[[\d,]+\]<std(?:out|err)>:\s?")
_COLUMNS_OF_ONE_PLACE = 4
"""time, algbw, busbw and #wrong: first out of place, then in place."""
_SECONDS_PER_MICROSECOND = 1e-6
_LARGEST_SHOWN_VIOLATIONS = 20


@frozen(kw_only=True)
class CollectiveTimes:
    """What a file says: points in its order, and the group where it names it; UNSPECIFIED and None where not."""

    points: tuple[CollectivePoint, ...]
    kind: CollectiveKind = CollectiveKind.UNSPECIFIED
    rank_count: int | None = None
    ranks_per_node: int | None = None


def read_collective_times(text: str, field: str = "file") -> CollectiveTimes:
    """The times in the contents of a file; of nccl-tests, those out of place.

    Raises InvalidArgumentError on `field` where it is neither, or where a line of it cannot be.
    """
    lines = [_TAG.sub("", line).strip() for line in text.splitlines()]
    filled = [(number, line) for number, line in enumerate(lines, start=1) if line]
    data = [(number, line) for number, line in filled if not line.startswith("#")]
    if data and tuple(_csv_cells(data[0][1])) == CSV_COLUMNS:
        return CollectiveTimes(points=_points_of_csv(data[1:], field))
    comments = [line for _, line in filled if line.startswith("#")]
    columns = _time_column(comments)
    points = [point for _, line in data if (point := _point_of_row(line.split(), columns)) is not None]
    if not points:
        raise _refused(field, "is neither the output of nccl-tests nor a CSV with the columns message_bytes,seconds")
    return _with_group(tuple(points), comments)


def _csv_cells(line: str) -> list[str]:
    return [cell.strip().casefold() for cell in line.split(",")]


def _points_of_csv(rows: Sequence[tuple[int, str]], field: str) -> tuple[CollectivePoint, ...]:
    points: list[CollectivePoint] = []
    violations: list[Violation] = []
    for number, line in rows:
        cells = _csv_cells(line)
        point = _point(cells[0], cells[1]) if len(cells) == len(CSV_COLUMNS) else None
        if point is None:
            violations.append(Violation(field, f"line {number}: {shown(line)} is not a size in bytes and a time"))
            continue
        violations += [
            Violation(field, f"line {number}: {broken.field} {broken.description}") for broken in violations_of(point)
        ]
        points.append(point)
    if violations:
        raise InvalidArgumentError(violations[:_LARGEST_SHOWN_VIOLATIONS])
    if not points:
        raise _refused(field, "holds no times")
    return tuple(points)


def _time_column(comments: Sequence[str]) -> int | None:
    """Where the line of titles has its first `time`; None without such a line."""
    for line in comments:
        titles = line.lstrip("#").split()
        if titles[:1] == ["size"] and "time" in titles:
            return titles.index("time")
    return None


def _point_of_row(cells: Sequence[str], time_column: int | None) -> CollectivePoint | None:
    """The point of one row; None for what is no row, and for the size 0 that nccl-tests may begin with."""
    column = time_column if time_column is not None else len(cells) - 2 * _COLUMNS_OF_ONE_PLACE
    if column < 1 or len(cells) < column + _COLUMNS_OF_ONE_PLACE:
        return None
    point = _point(cells[0], cells[column], _SECONDS_PER_MICROSECOND)
    return None if point is None or next(violations_of(point), None) is not None else point


def _point(size: str, time: str, seconds_per_unit: float = 1.0) -> CollectivePoint | None:
    if not (size.isascii() and size.isdigit() and len(size) <= 18):
        return None
    try:
        return CollectivePoint(message_bytes=int(size), seconds=float(time) * seconds_per_unit)
    except ValueError:
        return None


def _with_group(points: tuple[CollectivePoint, ...], comments: Sequence[str]) -> CollectiveTimes:
    """`points` with the group that the comments of nccl-tests describe."""
    programs = [match[1] for line in comments if (match := _PROGRAM.search(line))]
    ranks = {match["rank"]: match["host"] for line in comments if (match := _RANK.match(line))}
    node_count = len(set(ranks.values()))
    is_even = bool(ranks) and len(ranks) % node_count == 0
    return CollectiveTimes(
        points=points,
        kind=_KINDS[programs[0]] if programs else CollectiveKind.UNSPECIFIED,
        rank_count=len(ranks) or None,
        ranks_per_node=len(ranks) // node_count if is_even else None,
    )


def _refused(field: str, description: str) -> InvalidArgumentError:
    return InvalidArgumentError([Violation(field, description)])
