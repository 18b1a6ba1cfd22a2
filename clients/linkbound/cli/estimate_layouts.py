"""`linkbound estimate layouts`."""

from __future__ import annotations

from typing import Any

import click

from linkbound.cli import layout_text, text
from linkbound.cli.connect import estimator_client
from linkbound.cli.failures import naming
from linkbound.cli.layout_options import INSTANCE_FIELDS, instance_option
from linkbound.cli.options import Reply, reply_option
from linkbound.cli.output import print_message, print_text
from linkbound.cli.params import TOKENS, WHOLE
from linkbound.cli.table import Column, pairs, right, table
from linkbound.domain.estimate import Effect
from linkbound.domain.layout import layout_name
from linkbound.domain.layout_comparison import (
    DEFAULT_OUTPUT_TOKENS,
    LayoutChoice,
    LayoutComparison,
    LayoutEstimate,
)
from linkbound.domain.words import IF_OF_THE_DATA_TYPE

_FIELDS = {
    "output_tokens": "--output-tokens",
    "draft_token_count": "--draft-tokens",
    **INSTANCE_FIELDS,
}


_NAMED_OTHERS = 2
"""As many as a headline has room for."""


@click.command()
@instance_option(nodes_help="Nodes that one instance of the model is cut over.", requests_help="Requests in flight.")
@click.option(
    "--output-tokens",
    type=TOKENS,
    default=DEFAULT_OUTPUT_TOKENS,
    show_default=True,
    help="Tokens that each request generates.",
)
@click.option("--draft-tokens", type=WHOLE, default=0, show_default=True, help="Drafts that a pass checks per request.")
@reply_option("estimator")
@naming(_FIELDS)
def layouts(
    *,
    instance: dict[str, Any],
    output_tokens: int,
    draft_tokens: int,
    reply: Reply,
) -> None:
    """TP, PP, TP x PP and expert parallelism on the same nodes: bytes, times, bubbles, memory, and what to take."""
    with estimator_client(reply.target, reply.data) as estimator:
        answer = estimator.compare_layouts(output_tokens=output_tokens, draft_token_count=draft_tokens, **instance)
    if reply.as_json:
        from linkbound.convert.layout_comparison import layout_comparison_to_proto

        print_message(layout_comparison_to_proto(answer))
    else:
        print_text(_headline(answer), _table(answer), pairs(_notes(answer)))


def _headline(answer: LayoutComparison) -> str:
    if answer.single_stream is None or answer.batched is None:
        return f"no layout of the model fits these nodes{text.if_stored_so(*(one.memory for one in answer.layouts))}"
    single, batched = (_chosen(answer, choice) for choice in (answer.single_stream, answer.batched))
    return f"one request alone: {single}; all requests in flight: {batched}"


def _chosen(answer: LayoutComparison, choice: LayoutChoice) -> str:
    """The layout that a choice is for, others that the figures do not tell from it, and whether it is known to fit."""
    name, *others = (layout_name(answer.layouts[index].layout) for index in (choice.index, *choice.undecided_indices))
    fits = text.whether_it_fits(feasible=answer.layouts[choice.index].feasible)
    if not others:
        return f"{name}{fits}"
    beside = "; ".join(others) if len(others) <= _NAMED_OTHERS else f"{len(others)} others"
    return f"{name} (or {beside}){fits}"


def _table(answer: LayoutComparison) -> str:
    columns = [
        Column("layout"),
        right(f"sent, {layout_text.sender_of_any(one.layout for one in answer.layouts)}"),
        right("transfers of all prompts"),
        right("of one prompt"),
        right("pass"),
        right("pass of one request"),
        *([Column("latency")] if _differ(answer) else []),
        right("bubble"),
        right("memory"),
        Column("feasible"),
    ]
    return table(columns, [_cells(one, answer) for one in answer.layouts])


def _differ(answer: LayoutComparison) -> bool:
    """Whether a calibration covers some of the layouts and not others."""
    return len({_has_latency(one) for one in answer.layouts}) > 1


def _has_latency(one: LayoutEstimate) -> bool:
    return Effect.COLLECTIVE_LATENCY not in one.network_seconds.effects_left_out


def _cells(one: LayoutEstimate, answer: LayoutComparison) -> list[str]:
    return [
        layout_name(one.layout),
        text.size_bytes(one.sent_bytes_per_rank),
        text.expectation(one.network_seconds, text.seconds),
        text.expectation(one.single_network_seconds, text.seconds),
        text.interval(one.pass_seconds, text.seconds),
        text.interval(one.single_pass_seconds, text.seconds),
        *(["measured" if _has_latency(one) else "left out"] if _differ(answer) else []),
        text.percent(one.bubble_fraction),
        "-" if one.memory is None else text.size_bytes(one.memory.total_bytes),
        text.feasibility(one.reasons, feasible=one.feasible),
    ]


def _notes(answer: LayoutComparison) -> list[tuple[str, str]]:
    left_out = text.left_out(*(one.network_seconds for one in answer.layouts))
    return [
        *_choice("one request", answer.single_stream),
        *_choice("all requests", answer.batched),
        *_condition(answer),
        ("left out", left_out),
        *text.assumed(answer.assumptions),
    ]


def _condition(answer: LayoutComparison) -> list[tuple[str, str]]:
    """What the columns hang on that count weights of which a config does not say how they are stored."""
    of_pass = any(Effect.WEIGHT_FORMAT in one.pass_seconds.effects_left_out for one in answer.layouts)
    of_memory = any(one.memory is not None and text.is_format_open(one.memory) for one in answer.layouts)
    columns = [name for name, is_open in (("pass", of_pass), ("memory", of_memory)) if is_open]
    return [(", ".join(columns), f"hold {IF_OF_THE_DATA_TYPE}")] if columns else []


def _choice(title: str, choice: LayoutChoice | None) -> list[tuple[str, str]]:
    reasons = () if choice is None else choice.reasons
    return [(title if index == 0 else "", reason) for index, reason in enumerate(reasons)]
