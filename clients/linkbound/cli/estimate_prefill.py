"""`linkbound estimate prefill`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from linkbound.cli import layout_text, text
from linkbound.cli.connect import estimator_client
from linkbound.cli.failures import naming
from linkbound.cli.layout_options import LAYOUT_FIELDS, layout_option
from linkbound.cli.model_choice import ModelChoice, model_option
from linkbound.cli.options import LINK_FIELDS, PROMPT_FIELDS, Links, Reply, links_option, reply_option
from linkbound.cli.output import print_json, print_message, print_text
from linkbound.cli.params import SECONDS, TOKENS, TOKENS_LIST, WHOLE
from linkbound.cli.table import pairs, right, table
from linkbound.domain.layout import layout_name
from linkbound.domain.prefill import PrefillEstimate
from linkbound.domain.words import counted

_FIELDS = {
    **PROMPT_FIELDS,
    "workload.tensor_parallel_size": "--tp",
    "workload.max_num_batched_tokens": "--max-num-batched-tokens",
    "baseline_ttft_seconds": "--baseline-ttft",
    **LAYOUT_FIELDS,
    **LINK_FIELDS,
}


@click.command()
@model_option
@click.option("--tp", type=WHOLE, required=True, help="Tensor-parallel size: ranks of a group.")
@click.option("--prompt-tokens", type=TOKENS_LIST, required=True, help="Tokens of each prompt: 8192, 8k, or 1k,8k,32k.")
@click.option("--requests", type=WHOLE, default=1, show_default=True, help="Prompts that arrive together.")
@click.option("--baseline-ttft", type=SECONDS, help="Measured TTFT over --link, of the last of --requests.")
@click.option("--max-num-batched-tokens", type=TOKENS, help="Tokens of one pass at most; shows one pass.")
@layout_option
@links_option()
@reply_option("estimator")
@naming(_FIELDS)
def prefill(  # noqa: PLR0913 - one parameter for each option
    *,
    model: ModelChoice,
    tp: int,
    prompt_tokens: Sequence[int],
    requests: int,
    baseline_ttft: float | None,
    max_num_batched_tokens: int | None,
    layout: dict[str, Any],
    links: Links,
    reply: Reply,
) -> None:
    """Bytes on the wire and time bound of prompts that arrive together."""
    with estimator_client(reply.target, reply.data) as estimator:
        answers = [
            estimator.estimate_prefill(
                model=model.name,
                model_config_json=model.config_json,
                tensor_parallel_size=tp,
                prompt_tokens=tokens,
                request_count=requests,
                max_num_batched_tokens=max_num_batched_tokens,
                link=links.link,
                to_link=links.to_link,
                baseline_ttft_seconds=baseline_ttft,
                **layout,
            )
            for tokens in prompt_tokens
        ]
    if reply.as_json:
        _print_json(answers)
    elif len(answers) == 1:
        one = answers[0]
        print_text(_headline(one), pairs(_details(one)), layout_text.traffic_table(one.layout, one.traffic))
    else:
        print_text(_headline_of_many(answers), _table(answers), pairs(_links(answers[0])))


def _print_json(answers: Sequence[PrefillEstimate]) -> None:
    from linkbound.convert.json import message_to_json
    from linkbound.convert.prefill import prefill_estimate_to_proto

    messages = [prefill_estimate_to_proto(answer) for answer in answers]
    if len(messages) == 1:
        print_message(messages[0])
    else:
        print_json({"results": [message_to_json(message) for message in messages]})


def _headline(answer: PrefillEstimate) -> str:
    requests = f"{answer.request_count} x " if answer.request_count > 1 else ""
    about = (
        f"{requests}{counted(answer.prompt_tokens, 'prompt token')} of {answer.model} on {layout_name(answer.layout)}"
    )
    return f"{_cost(answer)}: {about}, {_rates(answer)}"


def _headline_of_many(answers: Sequence[PrefillEstimate]) -> str:
    largest = max(answers, key=lambda answer: answer.prompt_tokens)
    about = f"{largest.model} on {layout_name(largest.layout)}, up to {counted(largest.prompt_tokens, 'prompt token')}"
    return f"{_cost(largest)}: {about}, {_rates(largest)}"


def _cost(answer: PrefillEstimate) -> str:
    """The answer in a few words: what changes, or what the link has to carry."""
    extra, fraction = answer.extra_ttft_seconds, answer.extra_ttft_fraction
    if extra is None:
        carried = text.size_bytes(answer.sent_bytes_per_rank)
        sender = layout_text.sender(answer.layout).removeprefix("one ")
        return f"at least {text.seconds(answer.network_seconds.lower)} of network time, {carried} sent per {sender}"
    which = "the first token" if answer.request_count == 1 else "the last first token"
    return f"{text.change(extra, text.signed_seconds, fraction)} until {which}"


def _rates(answer: PrefillEstimate) -> str:
    rates = text.bits_per_second(answer.link.effective_bits_per_second)
    if answer.to_link is not None:
        rates += f" to {text.bits_per_second(answer.to_link.effective_bits_per_second)}"
    return rates


def _details(answer: PrefillEstimate) -> list[tuple[str, str]]:
    sender = layout_text.sender(answer.layout)
    rows = [
        ("all-reduces per pass", f"{answer.all_reduce_count}"),
        (f"sent bytes per prompt token, {sender}", text.size_bytes(answer.sent_bytes_per_prompt_token)),
        (f"sent bytes, {sender}", text.size_bytes(answer.sent_bytes_per_rank)),
        (
            f"counter bytes, {sender}",
            f"{text.size_bytes(answer.counter_bytes_per_rank)} {text.counted_at(answer.link)}",
        ),
        (f"logits gather, {sender}", text.size_bytes(answer.logits_gather_bytes_per_rank)),
        ("network time", text.expectation(answer.network_seconds, text.seconds)),
    ]
    if answer.largest_pass is not None:
        one = answer.largest_pass
        rows += [
            (
                f"all-reduce of {counted(one.tokens, 'token')}",
                f"{text.size_bytes(one.message_bytes_per_all_reduce)} message",
            ),
            ("  sent by one rank", text.size_bytes(one.sent_bytes_per_all_reduce)),
            ("  ring steps", f"{one.ring_step_count} of {text.size_bytes(one.sent_bytes_per_ring_step)}"),
            ("  time to send", text.seconds(one.send_seconds_per_all_reduce)),
        ]
    if answer.extra_ttft_seconds is not None:
        rows.append(("extra TTFT", text.expectation(answer.extra_ttft_seconds, text.signed_seconds)))
    if answer.extra_ttft_fraction is not None:
        rows.append(("extra TTFT over the baseline", text.expectation(answer.extra_ttft_fraction, text.signed_percent)))
    if answer.nominal_extra_ttft_seconds is not None:
        nominal = text.interval(answer.nominal_extra_ttft_seconds, text.signed_seconds)
        rows.append(("extra TTFT at line rates, no bound", nominal))
    rows.append(("TTFT", text.expectation(answer.ttft_seconds, text.seconds)))
    if answer.network_share_fraction is not None:
        rows.append(("network share of the baseline", text.percent(answer.network_share_fraction)))
    return rows + _links(answer)


def _links(answer: PrefillEstimate) -> list[tuple[str, str]]:
    rows = [("link", text.rate_note(answer.link))]
    if answer.to_link is not None:
        rows.append(("new link", text.rate_note(answer.to_link)))
    rows += layout_text.details(answer.layout, answer.inner_link)
    rows.append(("left out", text.left_out(answer.extra_ttft_seconds or answer.network_seconds)))
    return rows + text.assumed(answer.assumptions)


def _table(answers: Sequence[PrefillEstimate]) -> str:
    columns = [right("prompt tokens"), right("sent bytes"), right("network time")]
    if answers[0].extra_ttft_seconds is not None:
        columns.append(right("extra TTFT"))
    if answers[0].extra_ttft_fraction is not None:
        columns.append(right("of the baseline"))
    return table(columns, [_cells(answer) for answer in answers])


def _cells(answer: PrefillEstimate) -> list[str]:
    cells = [
        f"{answer.prompt_tokens:,}",
        text.size_bytes(answer.sent_bytes_per_rank),
        text.interval(answer.network_seconds, text.seconds),
    ]
    if answer.extra_ttft_seconds is not None:
        cells.append(text.change(answer.extra_ttft_seconds, text.signed_seconds))
    if answer.extra_ttft_fraction is not None:
        cells.append(text.change(answer.extra_ttft_fraction, text.signed_percent))
    return cells
