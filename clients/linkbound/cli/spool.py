"""`linkbound spool`: what agents keep on this machine until the ingest service holds it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from linkbound.cli import text
from linkbound.cli.connect import ingest_client
from linkbound.cli.failures import Failure, exit_code_of, naming, report
from linkbound.cli.options import Reply, json_option, reply_option
from linkbound.cli.output import print_json, print_text
from linkbound.cli.params import SECONDS
from linkbound.cli.table import Column, right, table
from linkbound.domain.errors import Error
from linkbound.domain.words import counted

if TYPE_CHECKING:
    from linkbound.client.ingest import IngestClient
    from linkbound.client.spool.listing import SpoolSummary

_COLUMNS = (
    Column("run"),
    Column("writer"),
    right("batches"),
    right("undelivered"),
    right("rows"),
    right("size"),
    right("from number"),
    Column("in use by"),
)

directory_argument = click.argument("directory", metavar="DIR", type=click.Path(exists=True, file_okay=False))


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def spool() -> None:
    """What agents of this machine keep until the ingest service holds it."""


@spool.command("show")
@directory_argument
@json_option
@naming({})
def show_spool(*, directory: str, as_json: bool) -> None:
    """Shows what lies in the spool DIR: batches that are delivered go file by file, and late."""
    found = _spools_in(directory)
    if as_json:
        print_json({"spools": [_as_json(summary) for summary in found]})
        return
    damaged_count = sum(summary.damaged_file_count for summary in found)
    print_text(
        counted(len(found), "spool"),
        table(_COLUMNS, [_cells(summary) for summary in found]) if found else "",
        f"{counted(damaged_count, 'file')} cannot be read" if damaged_count else "",
    )


@spool.command("send")
@directory_argument
@click.option("--timeout", type=SECONDS, default="60s", show_default=True, help="How long nothing may be stored.")
@reply_option("ingest")
@naming({"timeout_seconds": "--timeout"})
def send_spool(*, directory: str, timeout: float, reply: Reply) -> None:
    """Delivers what agents that are gone left in the spool DIR. Spools that are in use are left alone."""
    left = [s for s in _spools_in(directory) if s.undelivered_batch_count and s.holder_pid is None]
    with ingest_client(reply.target, reply.data) as ingest:
        outcomes = [(summary, _sent(ingest, Path(directory), summary, timeout)) for summary in left]
    if reply.as_json:
        print_json({"spools": [{**_as_json(s), "error": "" if e is None else e.message} for s, e in outcomes]})
    else:
        print_text("\n".join(_sent_line(*outcome) for outcome in outcomes) or "nothing to send")
    failures = [error for _, error in outcomes if error is not None]
    if failures:
        raise Failure(f"{counted(len(failures), 'spool')} of {len(outcomes)} not delivered", exit_code_of(failures[0]))


def _spools_in(directory: str) -> list[SpoolSummary]:
    from linkbound.client.spool.listing import spools_in

    return spools_in(Path(directory))


def _sent(ingest: IngestClient, directory: Path, summary: SpoolSummary, timeout_seconds: float) -> Error | None:
    """Deliver one spool; the error that stood in the way, if one did."""
    from linkbound.convert.sample_payload import series_of_opening

    try:
        series = series_of_opening(summary.opening)
        run, writer_id = summary.run, summary.writer_id
        if series:
            with ingest.writer(run, writer_id, series, spool=directory, timeout_seconds=timeout_seconds):
                return None
        with ingest.record_writer(run, writer_id, spool=directory, timeout_seconds=timeout_seconds):
            return None
    except Error as error:
        report(f"{summary.run} {summary.writer_id}: {error.message}")
        return error


def _cells(summary: SpoolSummary) -> list[str]:
    return [
        summary.run,
        summary.writer_id,
        f"{summary.batch_count:,}",
        f"{summary.undelivered_batch_count:,}",
        f"{summary.row_count:,}",
        text.size_bytes(summary.size_bytes),
        "not known" if summary.first_number is None else str(summary.first_number),
        "" if summary.holder_pid is None else f"process {summary.holder_pid}",
    ]


def _sent_line(summary: SpoolSummary, error: Error | None) -> str:
    outcome = "delivered" if error is None else "not delivered"
    return f"{summary.run} {summary.writer_id}: {counted(summary.row_count, 'row')} {outcome}"


def _as_json(summary: SpoolSummary) -> dict[str, str | int | None]:
    return {
        "run": f"runs/{summary.run}",
        "writer_id": summary.writer_id,
        "path": str(summary.path),
        "batch_count": summary.batch_count,
        "undelivered_batch_count": summary.undelivered_batch_count,
        "row_count": summary.row_count,
        "size_bytes": summary.size_bytes,
        "first_number": summary.first_number,
        "damaged_file_count": summary.damaged_file_count,
        "holder_pid": summary.holder_pid,
    }
