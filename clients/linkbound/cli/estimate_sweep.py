"""`linkbound estimate sweep`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from linkbound.cli import text
from linkbound.cli.connect import estimator_client
from linkbound.cli.failures import USAGE, Failure, naming
from linkbound.cli.options import LINK_FIELDS, Links, Reply, links_option, model_option, reply_option
from linkbound.cli.output import print_json, print_text
from linkbound.cli.sweep_values import RATES, SIZES, TOKENS, AxisValues
from linkbound.cli.table import right, table
from linkbound.domain.link import Link
from linkbound.domain.sweep import SweepRequest, SweepVariable
from linkbound.domain.workload import PrefillWorkload

if TYPE_CHECKING:
    from linkbound.domain.sweep import SweepColumns

LARGEST_JSON_POINT_COUNT = 100_000
SHOWN_POINT_COUNT = 40

_FIELDS = {
    "model": "--model",
    "workload.model": "--model",
    "workload.tensor_parallel_size": "--tp",
    "workload.prompt_tokens": "--prompt-tokens",
    "workload.request_count": "--requests",
    "to_link": "--to-link",
    "axes": "the axes",
    **LINK_FIELDS,
}


def _link_of(rates: AxisValues | None) -> Link | None:
    """A link at the first of the rates, in place of which each of them is taken."""
    return None if rates is None else Link(line_rate_bits_per_second=rates.first)


class Row(Enum):
    """The columns of a point after those of its axes."""

    SENT_BYTES = "sent_bytes_per_rank"
    NETWORK_SECONDS = "network_seconds"
    EXTRA_LOWER = "extra_ttft_lower_seconds"
    EXTRA_UPPER = "extra_ttft_upper_seconds"
    FEASIBLE = "feasible"


@click.command()
@model_option
@click.option("--tp", type=SIZES, required=True, help="Tensor-parallel sizes: 8, or 2,4,8.")
@click.option("--prompt-tokens", type=TOKENS, required=True, help="Tokens of each prompt: 8k, 1k,8k or 1k..64k+1k.")
@click.option("--requests", type=SIZES, default="1", show_default=True, help="Prompts that arrive together.")
@click.option("--link-rates", type=RATES, help="Effective rates in place of that of --link: 10g..400g+10g.")
@click.option("--to-link-rates", type=RATES, help="Effective rates in place of that of --to-link.")
@click.option("--csv", "as_csv", is_flag=True, help="Every point as one line, whatever their number.")
@links_option(link_of=_link_of)
@reply_option("estimator")
@naming(_FIELDS)
def sweep(*, model: str, links: Links, as_csv: bool, reply: Reply, **values: AxisValues | None) -> None:
    """Bytes, network time and extra TTFT at every combination of the values that are given.

    Values are listed, or evenly spaced: FIRST..LAST+STEP. The rates vary fastest, then the tokens.
    """
    request = _request(model, links, values)
    with estimator_client(reply.target) as estimator:
        stretches = estimator.stream_sweep(
            workload=request.workload, link=request.link, to_link=request.to_link, axes=request.axes
        )
        if reply.as_json:
            _print_json(request, stretches)
        elif as_csv:
            _print_csv(request, stretches)
        else:
            _print_table(request, stretches)


_VARIABLES = {
    "tp": SweepVariable.TENSOR_PARALLEL_SIZE,
    "requests": SweepVariable.REQUEST_COUNT,
    "prompt_tokens": SweepVariable.PROMPT_TOKENS,
    "link_rates": SweepVariable.LINK_BITS_PER_SECOND,
    "to_link_rates": SweepVariable.TO_LINK_BITS_PER_SECOND,
}
"""The variable of each option, the one that varies slowest first."""


def _request(model: str, links: Links, values: dict[str, AxisValues | None]) -> SweepRequest:
    given = {_VARIABLES[name]: typed for name, typed in values.items() if typed is not None}
    workload = PrefillWorkload(
        model=model.removeprefix("models/"),
        tensor_parallel_size=given[SweepVariable.TENSOR_PARALLEL_SIZE].first,
        prompt_tokens=given[SweepVariable.PROMPT_TOKENS].first,
        request_count=given[SweepVariable.REQUEST_COUNT].first,
    )
    axes = [
        given[variable].axis(variable)
        for variable in _VARIABLES.values()
        # A single rate has to take the place of that of the link, and something has to be an axis.
        if variable in given and (not given[variable].is_single or _is_always_an_axis(variable))
    ]
    return SweepRequest(workload=workload, link=links.link, to_link=links.to_link, axes=tuple(axes))


def _is_always_an_axis(variable: SweepVariable) -> bool:
    return variable not in (SweepVariable.TENSOR_PARALLEL_SIZE, SweepVariable.REQUEST_COUNT)


def _axis_names(request: SweepRequest) -> list[str]:
    return [axis.variable.name.lower() for axis in request.axes]


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


def _print_json(request: SweepRequest, stretches: Iterator[SweepColumns]) -> None:
    total = request.total_point_count
    if total > LARGEST_JSON_POINT_COUNT:
        raise Failure(f"--json: {total} points are above {LARGEST_JSON_POINT_COUNT}; --csv writes any number", USAGE)
    names = [*_axis_names(request), *(row.value for row in Row)]
    answers = list(stretches)
    results = [
        {name: value for name, value in zip(names, point, strict=True) if value is not None}
        for columns in answers
        for point in _points(request, columns)
    ]
    print_json(
        {
            "total_point_count": total,
            "results": results,
            "assumptions": list(answers[0].assumptions),
            "estimator_version": answers[0].estimator_version,
        }
    )


def _print_csv(request: SweepRequest, stretches: Iterator[SweepColumns]) -> None:
    click.echo(",".join([*_axis_names(request), *(row.value for row in Row)]))
    for columns in stretches:
        click.echo("\n".join(",".join(map(_cell, point)) for point in _points(request, columns)))


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def _print_table(request: SweepRequest, stretches: Iterator[SweepColumns]) -> None:
    total, has_change = request.total_point_count, request.to_link is not None
    titles = [name.replace("_", " ") for name in _axis_names(request)]
    columns = [*titles, "sent, one rank", "network time", *(["extra TTFT"] if has_change else []), "feasible"]
    points = (point for columns in stretches for point in _points(request, columns))
    shown = [_shown(point, len(titles)) for point in islice(points, SHOWN_POINT_COUNT)]
    rest = total - len(shown)
    headline = f"{total:,} points of {request.workload.model}"
    more = f"{rest:,} more points; --csv writes all of them" if rest else ""
    print_text(headline, table([right(title) for title in columns], shown), more)


def _shown(point: Sequence[Any], axis_count: int) -> list[str]:
    sent, network_seconds, lower, upper, feasible = point[axis_count:]
    change = [] if lower is None else [f"{text.signed_seconds(lower)} to {text.signed_seconds(upper)}"]
    values = [f"{value:,}" for value in point[:axis_count]]
    return [*values, text.size_bytes(sent), text.seconds(network_seconds), *change, "yes" if feasible else "no"]
