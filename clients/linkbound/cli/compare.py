"""`linkbound compare`: the frozen prediction of a run beside what was measured."""

from __future__ import annotations

import click

from linkbound.cli.comparison_text import comparison_table, findings_text, headline
from linkbound.cli.connect import ingest_client
from linkbound.cli.failures import naming
from linkbound.cli.options import Reply, reply_option
from linkbound.cli.output import print_message, print_text


@click.command()
@click.argument("run")
@reply_option("ingest")
@naming({"run": "RUN", "run_id": "RUN"})
def compare(*, run: str, reply: Reply) -> None:
    """Holds the prediction of RUN beside what was measured."""
    with ingest_client(reply.target, reply.data) as ingest:
        comparison = ingest.compare_run(run)
    if reply.as_json:
        from linkbound.convert.query_service import run_comparison_to_proto

        print_message(run_comparison_to_proto(comparison))
    else:
        print_text(headline(comparison), comparison_table(comparison), findings_text(comparison))
