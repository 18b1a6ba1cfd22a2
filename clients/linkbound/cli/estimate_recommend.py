"""`linkbound estimate recommend`."""

from __future__ import annotations

from typing import Any

import click

from linkbound.cli import layout_text, text
from linkbound.cli.connect import estimator_client
from linkbound.cli.failures import naming
from linkbound.cli.layout_options import INSTANCE_FIELDS, instance_option
from linkbound.cli.options import Reply, link_fields, reply_option
from linkbound.cli.output import print_message, print_text
from linkbound.cli.params import LINK, SECONDS, WHOLE
from linkbound.cli.table import Column, pairs, right, table
from linkbound.domain.layout import layout_name
from linkbound.domain.layout_recommendation import LayoutOption, LayoutRecommendation
from linkbound.domain.link import Link
from linkbound.domain.words import IF_OF_THE_DATA_TYPE, counted

_FIELDS = {
    "baseline_tensor_parallel_size": "--baseline-tp",
    "baseline_ttft_seconds": "--baseline-ttft",
    **link_fields("reference_link", "reference-"),
    **INSTANCE_FIELDS,
}


@click.command()
@instance_option(nodes_help="Nodes at hand.", requests_help="Prompts to prefill, over all instances.")
@click.option("--reference-link", type=LINK, required=True, help="The link that losses are counted against.")
@click.option("--baseline-tp", type=WHOLE, default=0, help="Tensor-parallel size of the baseline.")
@click.option("--baseline-ttft", type=SECONDS, help="TTFT of one prompt over --reference-link at --baseline-tp.")
@reply_option("estimator")
@naming(_FIELDS)
def recommend(
    *,
    instance: dict[str, Any],
    reference_link: Link,
    baseline_tp: int,
    baseline_ttft: float | None,
    reply: Reply,
) -> None:
    """One large instance or several smaller ones on the same nodes, with the loss of each over --link."""
    with estimator_client(reply.target, reply.data) as estimator:
        answer = estimator.recommend_layout(
            reference_link=reference_link,
            baseline_tensor_parallel_size=baseline_tp,
            baseline_ttft_seconds=baseline_ttft,
            **instance,
        )
    if reply.as_json:
        from linkbound.convert.layout_recommendation import layout_recommendation_to_proto

        print_message(layout_recommendation_to_proto(answer))
    else:
        print_text(_headline(answer), _table(answer), pairs(_notes(answer)))


def _headline(answer: LayoutRecommendation) -> str:
    best = answer.options[0]
    if best.feasible is False:
        return ": ".join(("no size of the model fits these nodes", *answer.reasons[1:2]))
    idle = f", {_nodes(best.idle_node_count)} idle" if best.idle_node_count else ""
    return f"{_name(best)}{idle}{text.whether_it_fits(feasible=best.feasible)}: {_loss(best)}"


def _name(option: LayoutOption) -> str:
    return f"{option.instance_count} x {layout_name(option.layout)}"


def _nodes(count: int) -> str:
    return counted(count, "node")


def _loss(option: LayoutOption) -> str:
    return text.change(option.extra_ttft_seconds, text.signed_seconds, option.extra_ttft_fraction)


def _table(answer: LayoutRecommendation) -> str:
    columns = [
        Column("instances"),
        right("idle nodes"),
        right(f"sent for a prompt, {layout_text.sender_of_any(option.layout for option in answer.options)}"),
        right("loss of a prompt"),
        right("of its TTFT"),
        right("TTFT"),
        right("all prefilled"),
        right("memory"),
        Column("feasible"),
    ]
    return table(columns, [_cells(option) for option in answer.options])


def _cells(option: LayoutOption) -> list[str]:
    fraction, ttft, last = option.extra_ttft_fraction, option.ttft_seconds, option.last_ttft_seconds
    return [
        _name(option),
        f"{option.idle_node_count}",
        text.size_bytes(option.sent_bytes_per_rank),
        text.change(option.extra_ttft_seconds, text.signed_seconds),
        "-" if fraction is None else text.change(fraction, text.signed_percent),
        "-" if ttft is None else text.interval(ttft, text.seconds),
        "-" if last is None else text.interval(last, text.seconds),
        "-" if option.memory is None else text.size_bytes(option.memory.total_bytes),
        text.feasibility(option.reasons, feasible=option.feasible),
    ]


def _notes(answer: LayoutRecommendation) -> list[tuple[str, str]]:
    reasons = [("why" if index == 0 else "", reason) for index, reason in enumerate(answer.reasons)]
    left_out = text.left_out(*(option.extra_ttft_seconds for option in answer.options))
    is_open = any(option.memory is not None and text.is_format_open(option.memory) for option in answer.options)
    of_memory = [("memory", f"holds {IF_OF_THE_DATA_TYPE}")] if is_open else []
    return [*reasons, *of_memory, ("left out", left_out), *text.assumed(answer.assumptions)]
