"""`linkbound plan check`: the checklist before a link is chosen."""

from __future__ import annotations

from collections.abc import Iterator

import click

from linkbound.cli import text
from linkbound.cli.connect import estimator_client
from linkbound.cli.failures import naming
from linkbound.cli.model_choice import model_name_option
from linkbound.cli.options import LINK_HELP, Reply, link_fields, link_option, reply_option
from linkbound.cli.output import print_message, print_text
from linkbound.cli.params import SECONDS, TOKENS, WHOLE
from linkbound.cli.table import pairs
from linkbound.domain.link import Link
from linkbound.domain.planning import PlanCheck, PlanItem, PlanStatus

_FIELDS = {
    "model": "--model",
    "node_count": "--nodes",
    "tensor_parallel_size": "--tp",
    "prompt_tokens": "--prompt-tokens",
    "target_ttft_seconds": "--target-ttft",
    "baseline_ttft_seconds": "--baseline-ttft",
    "switch": "--switch",
    "nic": "--nic",
    "hardware": "--hardware",
    "counter_interval_seconds": "--counter-interval",
    **link_fields("link"),
    **link_fields("reference_link", "reference-"),
}
_STATUS_WORDS = {
    PlanStatus.OK: "ok",
    PlanStatus.CONCERN: "concern",
    PlanStatus.MISSING: "missing",
    PlanStatus.VERIFY_BY_HAND: "verify by hand",
}


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def plan() -> None:
    """Plans of a cluster network."""


@plan.command("check")
@model_name_option("A model of the catalogue.")
@click.option("--nodes", type=WHOLE, required=True, help="Nodes, one rank each.")
@click.option("--tp", type=WHOLE, default=0, help="Tensor-parallel size of an instance.")
@click.option("--prompt-tokens", type=TOKENS, default=0, help="Tokens of the longest prompt: 32k.")
@click.option("--target-ttft", type=SECONDS, help="TTFT to keep for it.")
@click.option("--baseline-ttft", type=SECONDS, help="TTFT of it, measured over --reference-link at --tp.")
@click.option("--switch", default="", metavar="SWITCH", help="A switch of the catalogue.")
@click.option("--nic", default="", metavar="NIC", help="An adapter of the catalogue; default: that of a DGX Spark.")
@click.option("--hardware", default="", metavar="HARDWARE", help="Hardware of the catalogue, for the memory.")
@click.option("--counter-interval", type=SECONDS, help="Interval at which RDMA counters are read: 1ms.")
@link_option("reference-", description="The faster link to compare with, that --baseline-ttft was measured over.")
@link_option(description=LINK_HELP, required=True)
@reply_option("estimator")
@naming(_FIELDS)
def check(  # noqa: PLR0913 - the options are the request
    *,
    model: str,
    nodes: int,
    tp: int,
    prompt_tokens: int,
    target_ttft: float | None,
    baseline_ttft: float | None,
    switch: str,
    nic: str,
    hardware: str,
    counter_interval: float | None,
    link: Link,
    reference_link: Link | None,
    reply: Reply,
) -> None:
    """The planning checklist for nodes and their link; whatever else is not given is answered as missing."""
    with estimator_client(reply.target, reply.data) as estimator:
        answer = estimator.check_plan(
            node_count=nodes,
            link=link,
            model=model,
            reference_link=reference_link,
            tensor_parallel_size=tp,
            prompt_tokens=prompt_tokens,
            target_ttft_seconds=target_ttft,
            baseline_ttft_seconds=baseline_ttft,
            switch=switch,
            nic=nic,
            hardware=hardware,
            counter_interval_seconds=counter_interval,
        )
    if reply.as_json:
        from linkbound.convert.planning import plan_check_to_proto

        print_message(plan_check_to_proto(answer))
    else:
        print_text(_headline(answer), *map(_item, answer.items), pairs(text.assumed(answer.assumptions)))


def _headline(answer: PlanCheck) -> str:
    counts = [(words, sum(item.status is status for item in answer.items)) for status, words in _STATUS_WORDS.items()]
    return ", ".join(f"{count} {words}" for words, count in counts if count)


def _item(item: PlanItem) -> str:
    return "\n".join(_lines(item))


def _lines(item: PlanItem) -> Iterator[str]:
    yield f"[{_STATUS_WORDS.get(item.status, 'unknown')}] {item.question}"
    yield from (f"  {answer}" for answer in item.answers)
    yield from (f"  -> {advice}" for advice in item.advice)
