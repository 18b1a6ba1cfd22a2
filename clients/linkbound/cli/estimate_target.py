"""`linkbound estimate target`: a TTFT target in, the slowest link out."""

from __future__ import annotations

import click

from linkbound.cli import text
from linkbound.cli.connect import estimator_client
from linkbound.cli.failures import naming
from linkbound.cli.layout_options import WORKLOAD_FIELDS, cut_option, within_node_option
from linkbound.cli.model_choice import ModelChoice, model_option
from linkbound.cli.options import PROMPT_FIELDS, Reply, link_fields, link_option, reply_option
from linkbound.cli.output import print_message, print_text
from linkbound.cli.params import SECONDS, TOKENS, WHOLE
from linkbound.cli.table import Column, pairs, right, table
from linkbound.domain.layout import ParallelLayout
from linkbound.domain.link import LARGEST_RATE_BITS_PER_SECOND, Link
from linkbound.domain.planning import LinkVerdict, SlowestLink, Verdict
from linkbound.domain.workload import PrefillWorkload

_FIELDS = {
    **PROMPT_FIELDS,
    "target_ttft_seconds": "--target-ttft",
    "baseline_ttft_seconds": "--baseline-ttft",
    "baseline_link": "--link",
    **link_fields("link"),
    **link_fields("baseline_link"),
    **WORKLOAD_FIELDS,
}
_COLUMNS = (Column("link"), right("carries"), right("TTFT"), Column("keeps the target"))
_VERDICTS = {Verdict.YES: "yes", Verdict.MAYBE: "maybe", Verdict.NO: "no"}


@click.command()
@model_option
@cut_option
@click.option("--prompt-tokens", type=TOKENS, required=True, help="Tokens of each prompt: 8192, 8k.")
@click.option("--requests", type=WHOLE, default=1, show_default=True, help="Prompts that arrive together.")
@click.option("--target-ttft", type=SECONDS, required=True, help="TTFT to keep, of the last of --requests.")
@click.option("--baseline-ttft", type=SECONDS, help="Measured TTFT over --link, of the last of --requests.")
@within_node_option
@link_option(description="The link that --baseline-ttft was measured over: 200g, or a name of `linkbound links`.")
@reply_option("estimator")
@naming(_FIELDS)
def target(  # noqa: PLR0913 - one parameter for each option
    *,
    model: ModelChoice,
    layout: ParallelLayout,
    prompt_tokens: int,
    requests: int,
    target_ttft: float,
    baseline_ttft: float | None,
    ranks_per_node: int,
    inner_link: Link | None,
    link: Link | None,
    reply: Reply,
) -> None:
    """The slowest link that keeps a TTFT target, and which links with a name do."""
    from linkbound.client.names import model_id

    workload = PrefillWorkload(
        model=model_id(model.name),
        model_config_json=model.config_json,
        prompt_tokens=prompt_tokens,
        request_count=requests,
        tensor_parallel_size=layout.tensor_parallel_size,
        pipeline_parallel_size=layout.pipeline_parallel_size,
        data_parallel_size=layout.data_parallel_size,
        expert_parallelism=layout.expert_parallelism,
        ranks_per_node=ranks_per_node,
    )
    with estimator_client(reply.target, reply.data) as estimator:
        answer = estimator.find_slowest_link(
            workload=workload,
            target_ttft_seconds=target_ttft,
            baseline_link=link,
            baseline_ttft_seconds=baseline_ttft,
            inner_link=inner_link,
        )
    if reply.as_json:
        from linkbound.convert.planning import slowest_link_to_proto

        print_message(slowest_link_to_proto(answer))
    else:
        rows = [_cells(verdict) for verdict in answer.presets]
        print_text(_headline(answer, target_ttft), table(_COLUMNS, rows), pairs(_notes(answer)))


def _headline(answer: SlowestLink, target_seconds: float) -> str:
    slowest = answer.slowest_bits_per_second
    kept = f"a TTFT of {text.seconds(target_seconds)}"
    if slowest.lower >= LARGEST_RATE_BITS_PER_SECOND:
        return f"no link keeps {kept}"
    if slowest.upper is None and slowest.lower == 0:
        return f"every link is fast enough for {kept}: nothing is sent between nodes"
    if slowest.upper is None:
        return f"{kept} needs at least {text.bits_per_second(slowest.lower)}, and no rate is known to be enough"
    if slowest.upper == 0:
        return f"every link keeps {kept}"
    return (
        f"{kept} is kept from {text.bits_per_second(slowest.upper)} on, and cannot be kept below"
        f" {text.bits_per_second(slowest.lower)}"
    )


def _cells(verdict: LinkVerdict) -> list[str]:
    return [
        verdict.preset,
        text.bits_per_second(verdict.link.effective_bits_per_second),
        text.interval(verdict.ttft_seconds, text.seconds),
        _VERDICTS.get(verdict.verdict, "unknown"),
    ]


def _notes(answer: SlowestLink) -> list[tuple[str, str]]:
    reasons = [("why" if index == 0 else "", reason) for index, reason in enumerate(answer.reasons)]
    left_out = ("left out", text.left_out(answer.slowest_bits_per_second))
    return [*reasons, left_out, *text.assumed(answer.assumptions)]
