"""`linkbound estimate decode`."""

from __future__ import annotations

import math
from typing import Any

import click

from linkbound.cli import layout_text, text
from linkbound.cli.connect import estimator_client
from linkbound.cli.failures import naming
from linkbound.cli.layout_options import LAYOUT_FIELDS, layout_option
from linkbound.cli.model_choice import ModelChoice, model_option
from linkbound.cli.options import LINK_FIELDS, Links, Reply, links_option, reply_option
from linkbound.cli.output import print_message, print_text
from linkbound.cli.params import REAL, TOKENS, WHOLE
from linkbound.cli.table import pairs
from linkbound.domain.decode import DecodeEstimate
from linkbound.domain.estimate import Constraint, Effect, Estimate
from linkbound.domain.layout import layout_name
from linkbound.domain.words import IF_OF_THE_DATA_TYPE

_FIELDS = {
    "model": "--model",
    "hardware": "--hardware",
    "workload.model": "--model",
    "workload.tensor_parallel_size": "--tp",
    "workload.request_count": "--requests",
    "workload.draft_token_count": "--draft-tokens",
    "workload.acceptance_length_tokens": "--acceptance-length",
    "workload.hardware": "--hardware",
    "workload.context_tokens": "--context",
    **LAYOUT_FIELDS,
    **LINK_FIELDS,
}


@click.command()
@model_option
@click.option("--tp", type=WHOLE, required=True, help="Tensor-parallel size: ranks of a group.")
@click.option("--requests", type=WHOLE, default=1, show_default=True, help="Requests that generate at the same time.")
@click.option("--draft-tokens", type=WHOLE, default=0, show_default=True, help="Drafts that a pass checks per request.")
@click.option("--acceptance-length", type=REAL, help="Tokens that a pass yields per request on average.")
@click.option("--hardware", default="dgx-spark", show_default=True, help="Accelerator of the catalogue; '' for none.")
@click.option("--context", type=TOKENS, help="Tokens that each request has in its cache: 8192 or 8k.")
@layout_option
@links_option()
@reply_option("estimator")
@naming(_FIELDS)
def decode(  # noqa: PLR0913 - one parameter for each option
    *,
    model: ModelChoice,
    tp: int,
    requests: int,
    draft_tokens: int,
    acceptance_length: float | None,
    hardware: str,
    context: int | None,
    layout: dict[str, Any],
    links: Links,
    reply: Reply,
) -> None:
    """Bytes, pass floor and traffic while tokens are generated."""
    from linkbound.client.names import hardware_id

    hardware = hardware_id(hardware)
    with estimator_client(reply.target, reply.data) as estimator:
        answer = estimator.estimate_decode(
            model=model.name,
            model_config_json=model.config_json,
            tensor_parallel_size=tp,
            request_count=requests,
            draft_token_count=draft_tokens,
            acceptance_length_tokens=acceptance_length,
            hardware=hardware,
            link=links.link,
            to_link=links.to_link,
            context_tokens=context,
            **layout,
        )
    if reply.as_json:
        from linkbound.convert.decode import decode_estimate_to_proto

        print_message(decode_estimate_to_proto(answer))
    else:
        details = pairs(_details(answer, hardware))
        print_text(_headline(answer, hardware), details, layout_text.traffic_table(answer.layout, answer.traffic))


def _headline(answer: DecodeEstimate, hardware: str) -> str:
    about = f"{answer.request_count} x {answer.model} on {layout_name(answer.layout)}"
    floor = f"a pass takes at least {text.seconds(answer.pass_seconds.lower)}{_memory_of(answer, hardware)}"
    condition = text.if_open(is_open=_floor_rests_on_format(answer))
    rate = text.bits_per_second(answer.link.effective_bits_per_second)
    if answer.extra_pass_seconds is None:
        return f"{floor}{condition}: {about}, {rate}"
    if answer.to_link is not None:
        rate += f" to {text.bits_per_second(answer.to_link.effective_bits_per_second)}"
    share = answer.extra_pass_fraction
    if not condition or share is None or share.lower == share.upper == 0:
        change = text.change(answer.extra_pass_seconds, text.signed_seconds, share)
        return f"{change} per pass, and {floor}{condition}: {about}, {rate}"
    # The seconds are those of the transfers; the share of a pass hangs on the weights as its floor does.
    change = text.change(answer.extra_pass_seconds, text.signed_seconds)
    share_text = text.change(share, text.signed_percent)
    return f"{change} per pass; {IF_OF_THE_DATA_TYPE}, {share_text}, and {floor}: {about}, {rate}"


def _parts(answer: DecodeEstimate) -> list[tuple[str, str]]:
    """What a pass waits for: its transfers and its reads, and both together where the transfers are expected."""
    network, memory = answer.network_seconds, answer.memory_seconds
    rows = [("transfers of a pass", text.expectation(network, text.seconds))]
    if memory is None:
        return rows
    condition = text.if_open(is_open=_is_format_open(answer))
    rows.append(("reads of a pass", text.interval(memory, text.seconds) + condition))
    if network.expected is not None:
        both = text.seconds(memory.lower + network.expected)
        rows.append(("  both, in turn", f"about {both}; arithmetic and the engine come on top{condition}"))
    return rows


def _memory_of(answer: DecodeEstimate, hardware: str) -> str:
    """Whose memory sets the floor of a pass, where memory does."""
    is_read = answer.pass_seconds.binding_constraint is Constraint.MEMORY_BANDWIDTH
    return f" on {hardware} memory" if is_read else ""


def _is_format_open(answer: DecodeEstimate) -> bool:
    """Whether weights are read of which the config does not say how they are stored."""
    return Effect.WEIGHT_FORMAT in answer.pass_seconds.effects_left_out


def _floor_rests_on_format(answer: DecodeEstimate) -> bool:
    """Whether such weights are part of the floor: it is then above that of the transfers alone."""
    return _is_format_open(answer) and answer.pass_seconds.lower > answer.network_seconds.lower


def _traffic_rests_on_format(answer: DecodeEstimate) -> bool:
    """Whether reading such weights keeps a stage from filling its link."""
    upper, link = answer.traffic_bits_per_second.upper, answer.link.effective_bits_per_second
    # A stage that only sends fills it, but for the rounding of a division there and back.
    is_below = upper is not None and upper > 0 and not (upper >= link or math.isclose(upper, link))
    return _is_format_open(answer) and is_below


def _share_rests_on_format(answer: DecodeEstimate, share: Estimate) -> bool:
    """Whether a share of the pass counts what is read: its ends do as the floor does, what is expected does always."""
    if share.expected is None and share.lower == share.upper == 0:
        return False
    return _floor_rests_on_format(answer) or (_is_format_open(answer) and share.expected is not None)


def _details(answer: DecodeEstimate, hardware: str) -> list[tuple[str, str]]:
    sender = layout_text.sender(answer.layout)
    of_weights = text.if_open(is_open=_is_format_open(answer))
    of_floor = text.if_open(is_open=_floor_rests_on_format(answer))
    of_traffic = text.if_open(is_open=_traffic_rests_on_format(answer))
    rows = [
        ("token rows per pass", f"{answer.rows_per_pass}"),
        ("all-reduces per pass", f"{answer.all_reduce_count}"),
        ("message bytes of one all-reduce", text.size_bytes(answer.message_bytes_per_all_reduce)),
        ("sent bytes of one all-reduce, one rank", text.size_bytes(answer.sent_bytes_per_all_reduce)),
        ("time to send them, without latency", text.seconds(answer.send_seconds_per_all_reduce)),
        (f"logits gather, {sender}", text.size_bytes(answer.logits_gather_bytes_per_rank)),
        (f"sent bytes per pass, {sender}", text.size_bytes(answer.sent_bytes_per_pass)),
        *_parts(answer),
        ("pass", text.interval(answer.pass_seconds, text.seconds) + _memory_of(answer, hardware) + of_floor),
        (f"traffic, {sender}", text.interval(answer.traffic_bits_per_second, text.bits_per_second) + of_traffic),
    ]
    if answer.active_weight_bytes_per_rank is not None:
        weights = text.size_bytes(answer.active_weight_bytes_per_rank)
        rows.append(("weights read per pass, one rank", weights + of_weights))
    if answer.cache_bytes_read_per_rank is not None:
        rows.append(("cache read per pass, one rank", text.size_bytes(answer.cache_bytes_read_per_rank)))
    if answer.extra_pass_seconds is not None:
        rows.append(("extra pass time", text.expectation(answer.extra_pass_seconds, text.signed_seconds)))
    if answer.extra_pass_fraction is not None:
        share = text.expectation(answer.extra_pass_fraction, text.signed_percent)
        of_share = text.if_open(is_open=_share_rests_on_format(answer, answer.extra_pass_fraction))
        rows.append(("extra pass time over the pass", share + of_share))
    if answer.output_tokens_per_second is not None:
        tokens = text.interval(answer.output_tokens_per_second, text.tokens_per_second)
        rows.append(("output of one request", tokens + of_floor))
    rows += [("hardware", hardware or "none"), ("link", text.rate_note(answer.link))]
    if answer.to_link is not None:
        rows.append(("new link", text.rate_note(answer.to_link)))
    rows += layout_text.details(answer.layout, answer.inner_link)
    rows.append(("left out", text.left_out(answer.pass_seconds, answer.extra_pass_seconds)))
    return rows + text.assumed(answer.assumptions)
