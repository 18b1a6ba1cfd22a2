"""`linkbound estimate collective`."""

from __future__ import annotations

import click

from linkbound.cli import text
from linkbound.cli.collective_options import ALGORITHMS, KINDS, kind_name
from linkbound.cli.connect import estimator_client
from linkbound.cli.failures import naming
from linkbound.cli.options import LINK_FIELDS, LINK_HELP, Reply, link_fields, reply_option
from linkbound.cli.output import print_message, print_text
from linkbound.cli.params import BYTES, LINK, WHOLE
from linkbound.cli.table import Column, pairs, right, table
from linkbound.domain.collective_estimate import CollectiveEstimate
from linkbound.domain.link import Link
from linkbound.domain.words import counted

_FIELDS = {
    **LINK_FIELDS,
    **link_fields("inner_link", "inner-"),
    "kind": "--kind",
    "rank_count": "--ranks",
    "message_bytes": "--message-bytes",
    "ranks_per_node": "--ranks-per-node",
    "inner_link": "--inner-link",
    "algorithm": "--algorithm",
    "calibration": "--calibration",
}
_COLUMNS = (
    Column("algorithm"),
    Column("protocol"),
    right("time"),
    right("of it fixed"),
    right("on the wire"),
    Column("library"),
)


@click.command()
@click.option("--kind", type=click.Choice(list(KINDS)), default="all-reduce", show_default=True, help="The collective.")
@click.option("--ranks", type=WHOLE, required=True, help="Ranks of the group.")
@click.option("--message-bytes", type=BYTES, help="Payload: 10240, 16k (= 16384), 64m. Without: rates alone.")
@click.option("--link", type=LINK, required=True, help=LINK_HELP)
@click.option("--ranks-per-node", type=WHOLE, default=1, show_default=True, help="Ranks in one node.")
@click.option("--inner-link", type=LINK, help="Link between the ranks of one node, such as 450GB/s.")
@click.option(
    "--algorithm", type=click.Choice(list(ALGORITHMS)), default="ring", show_default=True, help="What bounds are of."
)
@click.option("--calibration", default="", metavar="CALIBRATION", help="Measured collectives of the catalogue.")
@reply_option("estimator")
@naming(_FIELDS)
def collective(  # noqa: PLR0913 - one parameter for each option
    *,
    kind: str,
    ranks: int,
    message_bytes: int | None,
    link: Link,
    ranks_per_node: int,
    inner_link: Link | None,
    algorithm: str,
    calibration: str,
    reply: Reply,
) -> None:
    """Bytes, time and bandwidth of one collective, and which algorithm and protocol NCCL would take."""
    with estimator_client(reply.target, reply.data) as estimator:
        answer = estimator.estimate_collective(
            kind=KINDS[kind],
            rank_count=ranks,
            message_bytes=message_bytes,
            link=link,
            ranks_per_node=ranks_per_node,
            inner_link=inner_link,
            algorithm=ALGORITHMS[algorithm],
            calibration=calibration,
        )
    if reply.as_json:
        from linkbound.convert.collective_estimate import collective_estimate_to_proto

        print_message(collective_estimate_to_proto(answer))
    else:
        size = "" if message_bytes is None else f" of {counted(message_bytes, 'byte')}"
        subject = f"{kind}{size} among {counted(ranks, 'rank')}"
        print_text(_headline(answer, subject), pairs(_details(answer)), _choices(answer), pairs(_notes(answer)))


def _headline(answer: CollectiveEstimate, subject: str) -> str:
    if answer.seconds is None:
        return (
            f"bus bandwidth {text.expectation(answer.bus_bandwidth_bytes_per_second, text.bytes_per_second)}: {subject}"
        )
    return f"{text.expectation(answer.seconds, text.seconds)}: {subject}"


def _details(answer: CollectiveEstimate) -> list[tuple[str, str]]:
    rows = []
    if answer.sent_bytes_per_rank is not None:
        sender = "rank" if answer.inner_link is None else "node"
        rows.append((f"sent bytes of one {sender}", text.size_bytes(answer.sent_bytes_per_rank)))
    if answer.inner_sent_bytes_per_rank is not None:
        rows.append(("... of one rank within the node", text.size_bytes(answer.inner_sent_bytes_per_rank)))
    rows += [
        ("bus bandwidth", text.expectation(answer.bus_bandwidth_bytes_per_second, text.bytes_per_second)),
        ("algorithm bandwidth", text.expectation(answer.algorithm_bandwidth_bytes_per_second, text.bytes_per_second)),
        ("link", text.rate_note(answer.link)),
    ]
    if answer.inner_link is not None:
        rows.append(("link within the node", text.rate_note(answer.inner_link)))
    if answer.calibration is not None:
        rows.append(("calibration", answer.calibration.calibration_id or "given with the question"))
    rows.append(("left out", text.left_out(answer.seconds, answer.bus_bandwidth_bytes_per_second)))
    return rows


def _choices(answer: CollectiveEstimate) -> str:
    rows = [
        [
            kind_name(choice.algorithm),
            choice.protocol.name,
            text.seconds(choice.seconds),
            text.seconds(choice.fixed_seconds),
            text.size_bytes(choice.wire_bytes_per_rank),
            "takes it" if choice.chosen else "",
        ]
        for choice in answer.choices
    ]
    return "The library's own time model\n" + table(_COLUMNS, rows) if rows else ""


def _notes(answer: CollectiveEstimate) -> list[tuple[str, str]]:
    return text.assumed(answer.assumptions)
