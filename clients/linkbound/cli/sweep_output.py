"""The points of a sweep on stdout: a table of the first ones, one JSON object, or a line for each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import click

from linkbound.cli import text
from linkbound.cli.failures import USAGE, Failure
from linkbound.cli.output import print_json, print_text
from linkbound.cli.table import pairs, right, table
from linkbound.domain.estimate import Estimate
from linkbound.domain.sweep import SweepRequest, SweepVariable
from linkbound.domain.words import counted

if TYPE_CHECKING:
    from linkbound.domain.sweep import SweepColumns

LARGEST_JSON_POINT_COUNT = 100_000
SHOWN_POINT_COUNT = 40

_RATES = (SweepVariable.LINK_BITS_PER_SECOND, SweepVariable.TO_LINK_BITS_PER_SECOND)


class Row(Enum):
    """The columns of a point after those of its axes."""

    SENT_BYTES = "sent_bytes_per_rank"
    NETWORK_SECONDS = "network_seconds"
    EXTRA_LOWER = "extra_ttft_lower_seconds"
    EXTRA_UPPER = "extra_ttft_upper_seconds"
    FEASIBLE = "feasible"


def check_json_size(request: SweepRequest) -> None:
    """Raise Failure where one JSON object of every point would be too large."""
    count = _point_count(request)
    if count > LARGEST_JSON_POINT_COUNT:
        raise Failure(f"--json: {count} points are above {LARGEST_JSON_POINT_COUNT}; --csv writes any number", USAGE)


def print_points_as_json(request: SweepRequest, stretches: Iterator[SweepColumns]) -> None:
    """Prints every point in one object."""
    names = _names(request)
    answers = list(stretches)
    results = [
        {name: value for name, value in zip(names, point, strict=True) if value is not None}
        for columns in answers
        for point in _points(request, columns)
    ]
    print_json(
        {
            "total_point_count": request.total_point_count,
            "results": results,
            "assumptions": list(answers[0].assumptions),
            "estimator_version": answers[0].estimator_version,
        }
    )


def print_points_as_csv(request: SweepRequest, stretches: Iterator[SweepColumns]) -> None:
    """Prints every point as a line, below one of names; the first points come before anything is printed."""
    first = next(stretches)
    click.echo(",".join(_names(request)))
    for columns in chain([first], stretches):
        click.echo("\n".join(",".join(map(_cell, point)) for point in _points(request, columns)))


def print_points_as_table(request: SweepRequest, stretches: Iterator[SweepColumns], model: str) -> None:
    """Prints the first points, and how many there are besides."""
    has_change = request.to_link is not None
    titles = [_title(axis.variable) for axis in request.axes]
    columns = [*titles, "sent, one rank", "network time", *(["extra TTFT"] if has_change else []), "feasible"]
    first = next(stretches)
    points = (point for stretch in chain([first], stretches) for point in _points(request, stretch))
    shown = [_shown(request, point) for point in islice(points, SHOWN_POINT_COUNT)]
    rest = _point_count(request) - len(shown)
    more = f"{counted(rest, 'more point')}; --csv writes all of them" if rest else ""
    print_text(
        f"{counted(request.total_point_count, 'point')} of {model}",
        table([right(title) for title in columns], shown),
        more,
        pairs(text.assumed(first.assumptions)),
    )


def _point_count(request: SweepRequest) -> int:
    return request.total_point_count - request.start_index


def _names(request: SweepRequest) -> list[str]:
    return [*(axis.variable.name.lower() for axis in request.axes), *(row.value for row in Row)]


def _points(request: SweepRequest, columns: SweepColumns) -> Iterator[tuple[Any, ...]]:
    """The values of the axes and the columns of each point; the ends of the change are None without one."""
    infeasible = set(columns.infeasible_indices)
    nothing = [None] * columns.point_count
    rows = zip(
        columns.sent_bytes_per_rank,
        columns.network_seconds,
        columns.extra_ttft_lower_seconds or nothing,
        columns.extra_ttft_upper_seconds or nothing,
        strict=True,
    )
    for index, row in enumerate(rows, columns.start_index):
        yield (*request.values_at(index), *row, index not in infeasible)


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def _title(variable: SweepVariable) -> str:
    return variable.name.lower().replace("_", " ").removesuffix(" bits per second")


def _shown(request: SweepRequest, point: Sequence[Any]) -> list[str]:
    sent, network_seconds, lower, upper, feasible = point[len(request.axes) :]
    change = [] if lower is None else [text.change(Estimate(lower=lower, upper=upper), text.signed_seconds)]
    values = [
        text.bits_per_second(value) if axis.variable in _RATES else f"{value:,}"
        for axis, value in zip(request.axes, point, strict=False)
    ]
    return [*values, text.size_bytes(sent), text.seconds(network_seconds), *change, "yes" if feasible else "no"]
