"""`linkbound runs`: what is stored."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import click

from linkbound.cli import text
from linkbound.cli.connect import ingest_client
from linkbound.cli.failures import naming
from linkbound.cli.options import Reply, reply_option
from linkbound.cli.output import print_message, print_text
from linkbound.cli.params import WHOLE
from linkbound.cli.runs_watch import watch_runs
from linkbound.cli.table import Column, pairs, table
from linkbound.domain.run import Run, RunDetails, RunRowCounts
from linkbound.domain.words import counted

_FIELDS = {"run": "RUN", "run_id": "RUN", "name": "RUN", "expected_row_count": "--expected-rows"}
_LIST_COLUMNS = (Column("run"), Column("state"), Column("created"), Column("name"))

run_argument = click.argument("run")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def runs() -> None:
    """The stored runs."""


@runs.command("list")
@reply_option("ingest")
@naming(_FIELDS)
def list_runs(*, reply: Reply) -> None:
    """Lists the runs, newest first."""
    with ingest_client(reply.target, reply.data) as ingest:
        entries = tuple(ingest.list_runs())
    if reply.as_json:
        from linkbound.convert.run_service import list_runs_response_to_proto
        from linkbound.domain.paging import Page

        print_message(list_runs_response_to_proto(Page(entries=entries)))
    elif entries:
        print_text(table(_LIST_COLUMNS, [_list_cells(run) for run in entries]))
    else:
        print_text("no runs")


@runs.command("show")
@run_argument
@reply_option("ingest")
@naming(_FIELDS)
def show_run(*, run: str, reply: Reply) -> None:
    """Shows RUN, how many rows it holds and what was predicted for it."""
    with ingest_client(reply.target, reply.data) as ingest:
        details = ingest.get_run(run)
    if reply.as_json:
        from linkbound.convert.run_service import run_details_to_proto

        print_message(run_details_to_proto(details))
    else:
        print_text(_headline(details.run), pairs(_details(details)))


@runs.command("seal")
@run_argument
@click.option("--expected-rows", type=WHOLE, help="Rows of all kinds that must be stored; otherwise nothing is sealed.")
@reply_option("ingest")
@naming(_FIELDS)
def seal_run(*, run: str, expected_rows: int | None, reply: Reply) -> None:
    """Ends RUN: nothing can be appended any more, and its rows move into files beside the store."""
    with ingest_client(reply.target, reply.data) as ingest:
        sealed = ingest.seal_run(run, expected_row_count=expected_rows)
    if reply.as_json:
        from linkbound.convert.run_service import seal_run_response_to_proto

        print_message(seal_run_response_to_proto(sealed))
    else:
        print_text(_headline(sealed), pairs(_files(sealed)))


@runs.command("delete")
@run_argument
@reply_option("ingest")
@naming(_FIELDS)
def delete_run(*, run: str, reply: Reply) -> None:
    """Deletes RUN with everything in it."""
    with ingest_client(reply.target, reply.data) as ingest:
        deleted = ingest.delete_run(run)
    if reply.as_json:
        from linkbound.convert.run_service import delete_run_response_to_proto

        print_message(delete_run_response_to_proto(deleted))
    else:
        print_text(f"{run}: deleted with {counted(deleted.total_row_count, 'row')}")


runs.add_command(watch_runs)


def _headline(run: Run) -> str:
    return f"{run.run_id}: {_state(run)}, created {_time(run.create_time)}"


def _list_cells(run: Run) -> Sequence[str]:
    return [run.run_id, _state(run), _time(run.create_time), run.display_name]


def _state(run: Run) -> str:
    return f"{run.state.name.lower()}, damaged" if run.sealed_fault else run.state.name.lower()


def _details(details: RunDetails) -> list[tuple[str, str]]:
    run = details.run
    rows = [("name", run.display_name)] if run.display_name else []
    if run.source:
        rows.append(("source", run.source))
    if run.seal_time is not None:
        rows.append(("sealed", _time(run.seal_time)))
    rows += _files(run)
    rows += _counts(details.row_counts)
    rows.append(("prediction", _prediction(run)))
    return rows + [(f"setting {setting.key}", setting.value) for setting in run.settings]


def _files(run: Run) -> list[tuple[str, str]]:
    """Where the files of a sealed run are, on the machine of the service."""
    if not run.sealed_path:
        return []
    damage = [("damage", run.sealed_fault)] if run.sealed_fault else []
    return [("files", run.sealed_path), ("size", text.size_bytes(run.sealed_size_bytes)), *damage]


def _counts(counts: RunRowCounts) -> list[tuple[str, str]]:
    named = [
        ("request records", counts.request_record_count),
        ("metric aggregates", counts.metric_aggregate_count),
        ("collective results", counts.collective_result_count),
        ("training steps", counts.training_step_count),
        ("counter samples", counts.sample_count),
        ("link tests", counts.link_test_count),
        ("events", counts.event_count),
        ("chunks of tokens", counts.chunk_count),
    ]
    return [(name, f"{count:,}") for name, count in named if count] or [("rows", "none")]


def _prediction(run: Run) -> str:
    if run.prediction is None:
        return "none"
    stored = run.prediction.store_time
    when = f", stored {_time(stored)}" if stored is not None else ""
    return f"{counted(len(run.prediction.values), 'value')} of estimator {run.prediction.estimator_version}{when}"


def _time(instant: datetime) -> str:
    return instant.strftime("%Y-%m-%d %H:%M:%S UTC")
