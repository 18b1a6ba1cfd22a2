"""`linkbound estimate tp`."""

from __future__ import annotations

from collections.abc import Sequence

import click

from linkbound.cli import text
from linkbound.cli.connect import estimator_client
from linkbound.cli.failures import naming
from linkbound.cli.model_choice import ModelChoice, model_option
from linkbound.cli.options import LINK_FIELDS, PROMPT_FIELDS, Links, Reply, links_option, reply_option
from linkbound.cli.output import print_message, print_text
from linkbound.cli.params import SECONDS, TOKENS, WHOLE, WHOLE_LIST
from linkbound.cli.table import Column, pairs, right, table
from linkbound.domain.tp_projection import TpProjection, TpSizeProjection

_FIELDS = {
    **PROMPT_FIELDS,
    "workload.tensor_parallel_size": "--baseline-tp",
    "baseline_ttft_seconds": "--baseline-ttft",
    "tensor_parallel_sizes": "--tp-sizes",
    "hardware": "--hardware",
    **LINK_FIELDS,
}


@click.command()
@model_option
@click.option("--prompt-tokens", type=TOKENS, required=True, help="Tokens of each prompt: 8192 or 8k.")
@click.option("--requests", type=WHOLE, default=1, show_default=True, help="Prompts that arrive together.")
@click.option("--baseline-tp", type=WHOLE, required=True, help="Tensor-parallel size of the baseline.")
@click.option("--baseline-ttft", type=SECONDS, required=True, help="Measured TTFT over --link at --baseline-tp.")
@click.option("--tp-sizes", type=WHOLE_LIST, required=True, help="Sizes to project to: 2,4,8,16.")
@click.option("--hardware", default="", metavar="HARDWARE", help="Hardware of the catalogue; checks memory.")
@links_option(to_link_required=True)
@reply_option("estimator")
@naming(_FIELDS)
def tp(  # noqa: PLR0913 - one parameter for each option
    *,
    model: ModelChoice,
    prompt_tokens: int,
    requests: int,
    baseline_tp: int,
    baseline_ttft: float,
    tp_sizes: Sequence[int],
    hardware: str,
    links: Links,
    reply: Reply,
) -> None:
    """How the loss from --link to --to-link changes with the tensor-parallel size."""
    from linkbound.client.names import model_id
    from linkbound.domain.workload import PrefillWorkload

    if links.to_link is None:
        raise click.UsageError("--to-link: is missing")
    with estimator_client(reply.target, reply.data) as estimator:
        answer = estimator.project_tp_sizes(
            workload=PrefillWorkload(
                model=model_id(model.name),
                model_config_json=model.config_json,
                tensor_parallel_size=baseline_tp,
                prompt_tokens=prompt_tokens,
                request_count=requests,
            ),
            baseline_ttft_seconds=baseline_ttft,
            link=links.link,
            to_link=links.to_link,
            tensor_parallel_sizes=tp_sizes,
            hardware=hardware,
        )
    if reply.as_json:
        from linkbound.convert.tp_projection import tp_projection_to_proto

        print_message(tp_projection_to_proto(answer))
    else:
        print_text(_headline(answer), _table(answer), pairs(_notes(answer)))


def _headline(answer: TpProjection) -> str:
    possible = [size for size in answer.projections if size.feasible is not False]
    impossible = [f"TP{size.tensor_parallel_size}" for size in answer.projections if size.feasible is False]
    changes = ", ".join(f"{_change(size)} at TP{size.tensor_parallel_size}" for size in possible)
    if_stored_so = text.if_stored_so(*(size.memory for size in answer.projections))
    left_out = f"{', '.join(impossible)} cannot be run{if_stored_so}"
    if not possible:
        return f"TTFT: no projection, {left_out}"
    return f"TTFT: {changes}; {left_out}" if impossible else f"TTFT: {changes}"


def _change(size: TpSizeProjection) -> str:
    return text.change(size.extra_ttft_fraction, text.signed_percent)


def _table(answer: TpProjection) -> str:
    columns = [
        right("TP"),
        right("sent bytes"),
        right("bytes ratio"),
        right("compute ratio"),
        right("TTFT"),
        right("extra TTFT"),
        right("of TTFT"),
        Column("feasible"),
    ]
    return table(columns, [_cells(size) for size in answer.projections])


def _cells(size: TpSizeProjection) -> list[str]:
    return [
        f"{size.tensor_parallel_size}",
        text.size_bytes(size.sent_bytes_per_rank),
        "-" if size.sent_bytes_ratio is None else f"{size.sent_bytes_ratio:.2f}",
        f"{size.compute_ratio:.2f}",
        text.interval(size.ttft_seconds, text.seconds),
        text.change(size.extra_ttft_seconds, text.signed_seconds),
        _change(size),
        text.feasibility(size.reasons, feasible=size.feasible),
    ]


def _notes(answer: TpProjection) -> list[tuple[str, str]]:
    left_out = text.left_out(*(size.extra_ttft_fraction for size in answer.projections))
    return [("left out", left_out), *text.assumed(answer.assumptions)]
