"""`linkbound size`: switches and cables for a number of nodes."""

from __future__ import annotations

import click

from linkbound.cli import text
from linkbound.cli.connect import estimator_client
from linkbound.cli.failures import naming
from linkbound.cli.options import Reply, reply_option
from linkbound.cli.output import print_message, print_text
from linkbound.cli.params import LINK, REAL, WHOLE
from linkbound.cli.table import Column, pairs, right, table
from linkbound.domain.link import Link
from linkbound.domain.sizing import ClusterSizing, SizeOption
from linkbound.domain.words import counted

_FIELDS = {
    "node_count": "--nodes",
    "rate": "--rate",
    "rate_bits_per_second": "--rate",
    "switch": "--switch",
    "links_per_node": "--links-per-node",
    "nic": "--nic",
    "oversubscription_ratio": "--oversubscription",
}
_COLUMNS = (
    Column("switch"),
    right("switches"),
    right("leaves"),
    right("spines"),
    right("links used"),
    right("free"),
    right("each link keeps"),
    right("list price"),
    Column("cables"),
)


@click.command()
@click.option("--nodes", type=WHOLE, required=True, help="Nodes to connect.")
@click.option("--rate", type=LINK, required=True, help="Rate of a node's link: 100g, 200g; ports may be faster.")
@click.option("--switch", default="", metavar="SWITCH", help="A switch of the catalogue; default: every one.")
@click.option("--nic", default="", metavar="NIC", help="An adapter of the catalogue; default: that of a DGX Spark.")
@click.option("--links-per-node", type=WHOLE, help="Links of each node; default: 1.")
@click.option("--oversubscription", type=REAL, help="Ratio of node links to uplinks that is accepted; default: 1.")
@reply_option("estimator")
@naming(_FIELDS)
def size(
    *,
    nodes: int,
    rate: Link,
    switch: str,
    nic: str,
    links_per_node: int | None,
    oversubscription: float | None,
    reply: Reply,
) -> None:
    """Switches and cables for a cluster, best first, and what to verify by hand."""
    with estimator_client(reply.target, reply.data) as estimator:
        answer = estimator.size_cluster(
            node_count=nodes,
            rate=rate,
            switch=switch,
            links_per_node=links_per_node,
            nic=nic,
            oversubscription_ratio=oversubscription,
        )
    if reply.as_json:
        from linkbound.convert.sizing import cluster_sizing_to_proto

        print_message(cluster_sizing_to_proto(answer))
    else:
        print_text(_headline(answer, nodes), _options(answer), *_best(answer), pairs(_notes(answer)))


def _headline(answer: ClusterSizing, nodes: int) -> str:
    if not answer.options:
        return f"no switch connects {counted(nodes, 'node')} at this rate"
    best = answer.options[0]
    cables = " and ".join(f"{counted(line.count, 'cable')} ({line.description})" for line in best.cables)
    if best.switch_count:
        return f"{best.switch_count} x {best.display_name} and {cables}"
    return f"no switch, {cables}" if cables else "no switch and no cable: there is one node"


def _options(answer: ClusterSizing) -> str:
    return (
        table(_COLUMNS, [_cells(option) for option in answer.options])
        if any(option.cables for option in answer.options)
        else ""
    )


def _cells(option: SizeOption) -> list[str]:
    price = option.list_price_usd
    return [
        option.switch or "none",
        f"{option.switch_count}",
        f"{option.leaf_switch_count}",
        f"{option.spine_switch_count}",
        f"{option.node_ports_used}",
        f"{option.node_ports_free}",
        text.bits_per_second(option.worst_case_bits_per_second),
        "not known" if price is None else f"{price:,.0f} USD",
        ", ".join(f"{line.count} x {line.description}" for line in option.cables),
    ]


def _best(answer: ClusterSizing) -> list[str]:
    if not answer.options:
        return []
    best = answer.options[0]
    rows = [
        *_named("why", best.reasons),
        *_named("verify by hand", best.verify),
        *_named("source", (*best.sources, *(source for line in best.cables for source in line.sources))),
    ]
    return [pairs(rows)]


def _notes(answer: ClusterSizing) -> list[tuple[str, str]]:
    return [*_named("not", answer.refused), *text.assumed(answer.assumptions)]


def _named(name: str, sentences: tuple[str, ...]) -> list[tuple[str, str]]:
    return [(name if index == 0 else "", sentence) for index, sentence in enumerate(sentences)]
