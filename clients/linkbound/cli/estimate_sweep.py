"""`linkbound estimate sweep`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import click
from attrs import evolve

from linkbound.cli import sweep_output
from linkbound.cli.connect import estimator_client
from linkbound.cli.failures import naming
from linkbound.cli.model_choice import ModelChoice, model_option
from linkbound.cli.options import LINK_FIELDS, PROMPT_FIELDS, Links, Reply, links_option, reply_option
from linkbound.cli.params import WHOLE
from linkbound.cli.sweep_values import RATES, SIZES, TOKENS, AxisValues
from linkbound.domain.errors import InvalidArgumentError
from linkbound.domain.link import Link
from linkbound.domain.sweep import SweepRequest, SweepVariable
from linkbound.domain.workload import PrefillWorkload

_FIELDS = {
    **PROMPT_FIELDS,
    "workload.tensor_parallel_size": "--tp",
    "to_link": "--to-link",
    "start_index": "--start-index",
    "axes": "the axes",
    **LINK_FIELDS,
}
_OPTIONS = {
    SweepVariable.TENSOR_PARALLEL_SIZE: "tp",
    SweepVariable.REQUEST_COUNT: "requests",
    SweepVariable.PROMPT_TOKENS: "prompt_tokens",
    SweepVariable.LINK_BITS_PER_SECOND: "link_rates",
    SweepVariable.TO_LINK_BITS_PER_SECOND: "to_link_rates",
}
"""The option of each variable, the one that varies slowest first."""

_AXIS_FIELD = re.compile(r"axes\[(?P<index>\d+)\].*", re.DOTALL)


def _link_of(rates: AxisValues | None) -> Link | None:
    """A link at the first of the rates, in place of which each of them is taken."""
    return None if rates is None else Link(line_rate_bits_per_second=rates.first)


@click.command()
@model_option
@click.option("--tp", type=SIZES, required=True, help="Tensor-parallel sizes: 8, or 2,4,8.")
@click.option("--prompt-tokens", type=TOKENS, required=True, help="Tokens of each prompt: 8k, 1k,8k or 1k..64k+1k.")
@click.option("--requests", type=SIZES, default="1", show_default=True, help="Prompts that arrive together.")
@click.option("--link-rates", type=RATES, help="Effective rates in place of that of --link: 10g..400g+10g.")
@click.option("--to-link-rates", type=RATES, help="Effective rates in place of that of --to-link.")
@click.option("--csv", "as_csv", is_flag=True, help="Every point as one line, whatever their number.")
@click.option(
    "--start-index",
    type=WHOLE,
    default=0,
    show_default=True,
    help="First point, counted from 0: as many as the lines of an earlier --csv that broke off, less its first one.",
)
@links_option(link_of=_link_of)
@reply_option("estimator")
@naming(_FIELDS)
def sweep(
    *, model: ModelChoice, links: Links, as_csv: bool, start_index: int, reply: Reply, **values: AxisValues | None
) -> None:
    """Bytes, network time and extra TTFT at every combination of the values that are given.

    Values are listed, or evenly spaced: FIRST..LAST+STEP. The rates vary fastest, then the tokens.
    """
    request = _request(model, links, values, start_index)
    if reply.as_json:
        sweep_output.check_json_size(request)
    with estimator_client(reply.target, reply.data) as estimator:
        stretches = estimator.stream_sweep(
            workload=request.workload,
            link=request.link,
            to_link=request.to_link,
            axes=request.axes,
            start_index=request.start_index,
        )
        if reply.as_json:
            sweep_output.print_points_as_json(request, stretches)
        elif as_csv:
            sweep_output.print_points_as_csv(request, stretches)
        else:
            sweep_output.print_points_as_table(request, stretches, model.typed)


def _request(model: ModelChoice, links: Links, values: dict[str, AxisValues | None], start_index: int) -> SweepRequest:
    given = {variable: typed for variable, name in _OPTIONS.items() if (typed := values[name]) is not None}
    workload = PrefillWorkload(
        model=model.name.removeprefix("models/"),
        model_config_json=model.config_json,
        tensor_parallel_size=given[SweepVariable.TENSOR_PARALLEL_SIZE].first,
        prompt_tokens=given[SweepVariable.PROMPT_TOKENS].first,
        request_count=given[SweepVariable.REQUEST_COUNT].first,
    )
    # A single rate has to take the place of that of the link, and something has to be an axis.
    varied = [variable for variable in given if not given[variable].is_single or _is_always_an_axis(variable)]
    with _naming_axes(varied):
        return SweepRequest(
            workload=workload,
            link=links.link,
            to_link=links.to_link,
            axes=tuple(given[variable].axis(variable) for variable in varied),
            start_index=start_index,
        )


def _is_always_an_axis(variable: SweepVariable) -> bool:
    return variable not in (SweepVariable.TENSOR_PARALLEL_SIZE, SweepVariable.REQUEST_COUNT)


@contextmanager
def _naming_axes(variables: Sequence[SweepVariable]) -> Iterator[None]:
    """Tells what is wrong with an axis by the option that it came from."""
    try:
        yield
    except InvalidArgumentError as error:
        raise InvalidArgumentError(
            [evolve(violation, field=_option_of(violation.field, variables)) for violation in error.field_violations]
        ) from error


def _option_of(field: str, variables: Sequence[SweepVariable]) -> str:
    match = _AXIS_FIELD.fullmatch(field)
    return field if match is None else f"--{_OPTIONS[variables[int(match['index'])]].replace('_', '-')}"
