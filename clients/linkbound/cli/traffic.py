"""`linkbound traffic`: rates of the counters of a run, and what its requests sent."""

from __future__ import annotations

import click

from linkbound.cli.connect import ingest_client
from linkbound.cli.failures import USAGE, Failure, naming
from linkbound.cli.options import Reply, reply_option
from linkbound.cli.output import print_message, print_text
from linkbound.cli.params import SECONDS_LIST, WHOLE
from linkbound.cli.traffic_text import notes, phases_table, windows_table
from linkbound.domain.traffic import NS_PER_SECOND

_FIELDS = {
    "run": "RUN",
    "run_id": "RUN",
    "windows_ns": "--window",
    "node": "--node",
    "metric": "--metric",
    "max_point_count": "--points",
    "subject": "--subject",
}


@click.command()
@click.argument("run")
@click.option(
    "--window",
    "windows_seconds",
    type=SECONDS_LIST,
    multiple=True,
    help="Windows to take rates over, 1ms to 1 day; otherwise 1ms,5ms,100ms,1s.",
)
@click.option("--node", default="", help="The host whose counters count; otherwise every host.")
@click.option("--metric", default="", help="The counter, as the system names it; otherwise every counter of bytes.")
@click.option(
    "--points", type=WHOLE, default=0, help="Points of each window to show the course with, up to 10000; for --json."
)
@click.option("--phases", is_flag=True, help="Instead: what each request sent before and after its first token.")
@click.option("--subject", default="", help="With --phases: the test whose requests are listed; otherwise every test.")
@reply_option("ingest")
@naming(_FIELDS)
def traffic(
    *,
    run: str,
    windows_seconds: tuple[tuple[float, ...], ...],
    node: str,
    metric: str,
    points: int,
    phases: bool,
    subject: str,
    reply: Reply,
) -> None:
    """Shows mean and peak rates of the counters of RUN over windows of time.

    A peak means nothing without its window: the shorter the window, the higher the peak of the same traffic.
    """
    windows_ns = tuple(round(seconds * NS_PER_SECOND) for group in windows_seconds for seconds in group)
    if phases:
        if windows_ns or points:
            raise Failure("--phases: phases have no windows; leave --window and --points out", USAGE)
        _show_phases(run, subject, node, metric, reply)
        return
    if subject:
        raise Failure("--subject: windows are those of the whole run; it goes with --phases", USAGE)
    with ingest_client(reply.target, reply.data) as ingest:
        ports = ingest.query_traffic(run, windows_ns=windows_ns, node=node, metric=metric, max_point_count=points)
    if reply.as_json:
        from linkbound.convert.query_service import query_traffic_response_to_proto

        print_message(query_traffic_response_to_proto(ports))
    elif ports:
        print_text(windows_table(ports), notes(ports))
    else:
        print_text("no counter of bytes")


def _show_phases(run: str, subject: str, node: str, metric: str, reply: Reply) -> None:
    with ingest_client(reply.target, reply.data) as ingest:
        rows = tuple(
            row
            for row in ingest.list_phase_traffic(run, subject=subject)
            if node in ("", row.node) and metric in ("", row.metric)
        )
    if reply.as_json:
        from linkbound.convert.query_service import list_phase_traffic_response_to_proto
        from linkbound.domain.paging import Page

        print_message(list_phase_traffic_response_to_proto(Page(entries=rows)))
    elif rows:
        print_text(phases_table(rows))
    else:
        print_text("no requests")
