"""`linkbound runs watch`: runs as they change."""

from __future__ import annotations

import json
from itertools import islice

import click

from linkbound.cli.connect import ingest_client
from linkbound.cli.failures import USAGE, Failure, naming
from linkbound.cli.options import Reply, reply_option
from linkbound.cli.params import WHOLE
from linkbound.domain.run_watch import RunChange, RunUpdate
from linkbound.domain.words import counted

_FIELDS = {"run": "RUN", "start_revision": "--start-revision"}
_WORDS = {RunChange.CREATED: "is there", RunChange.APPENDED: "appended to", RunChange.SEALED: "sealed"}


@click.command("watch")
@click.argument("run", required=False)
@click.option(
    "--start-revision",
    type=WHOLE,
    default=0,
    show_default=True,
    help="First revision to tell: one more than the last that is known; 0: every run as it is, then changes.",
)
@click.option("--count", type=WHOLE, help="Lines after which to end; default: never.")
@reply_option("ingest")
@naming(_FIELDS)
def watch_runs(*, run: str | None, start_revision: int, count: int | None, reply: Reply) -> None:
    """Tells of runs, or of RUN alone, as they are created, appended to, sealed and deleted, until it is interrupted.

    With --json each line is one JSON object, those without a run included, which tell how far it is.
    """
    if count == 0:
        raise Failure("--count: 0 lines say nothing", USAGE)
    with ingest_client(reply.target, reply.data) as ingest:
        updates = ingest.watch_runs(run=run, start_revision=start_revision)
        told = updates if reply.as_json else (update for update in updates if update.run_id)
        for update in islice(told, count):
            click.echo(_json_line(update) if reply.as_json else _line(update))


def _json_line(update: RunUpdate) -> str:
    from linkbound.convert.json import message_to_json
    from linkbound.convert.run_service import watch_runs_response_to_proto

    return json.dumps(message_to_json(watch_runs_response_to_proto(update)), allow_nan=False)


def _line(update: RunUpdate) -> str:
    place = f"{update.revision:>8}  " if update.revision else " " * 10
    if update.run is None or update.row_counts is None:
        return f"{place}{update.run_id}: deleted"
    rows = counted(update.row_counts.total_row_count, "row")
    word = _WORDS.get(update.change, "changed")
    return f"{place}{update.run_id}: {word}, {update.run.state.name.lower()}, {rows}"
