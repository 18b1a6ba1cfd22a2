"""`linkbound sql` and `linkbound snapshot`: what is stored, by SQL and as a file."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from linkbound.cli import text
from linkbound.cli.connect import ingest_client
from linkbound.cli.failures import USAGE, Failure, naming, report
from linkbound.cli.options import Reply, reply_option
from linkbound.cli.output import print_message, print_text
from linkbound.cli.params import WHOLE
from linkbound.cli.row_output import FILE_FORMATS, SHOWN_ROW_COUNT, RowFormat, write_rows
from linkbound.cli.table import pairs

_FIELDS = {"sql": "SQL", "row_limit": "--limit"}


@click.command()
@click.argument("query", metavar="SQL")
@click.option("--limit", type=WHOLE, help="Rows at most; default a million, and for a table what it shows.")
@click.option(
    "--format",
    "format_name",
    type=click.Choice([kind.value for kind in RowFormat]),
    help="How rows are written; default as the name of --out ends, else table.",
)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="File to write instead of stdout.")
@reply_option("ingest")
@naming(_FIELDS)
def sql(*, query: str, limit: int | None, format_name: str | None, out: Path | None, reply: Reply) -> None:
    """Answers one SELECT over the tables and views that docs/schema.md describes; `-` reads it from stdin.

    It can change nothing. Where another process holds the database and no service is named, its last snapshot answers.
    """
    kind = _format(format_name, out, as_json=reply.as_json)
    sql_text = sys.stdin.read() if query == "-" else query
    row_limit = limit if limit is not None else SHOWN_ROW_COUNT if kind is RowFormat.TABLE else 0
    with ingest_client(reply.target, reply.data) as ingest, ingest.query_sql(sql_text, row_limit=row_limit) as reader:
        summary = write_rows(reader, kind, out)
    if summary.truncated:
        report(f"there are more rows than these {summary.row_count}; --limit N asks for more")


@click.command()
@reply_option("ingest")
@naming({})
def snapshot(*, reply: Reply) -> None:
    """Writes what is stored now into a read-only copy: `duckdb -readonly snapshot.duckdb` opens it at any time."""
    with ingest_client(reply.target, reply.data) as ingest:
        published = ingest.publish_snapshot()
    if reply.as_json:
        from linkbound.convert.query_service import publish_snapshot_response_to_proto

        print_message(publish_snapshot_response_to_proto(published))
        return
    print_text(
        published.path,
        pairs(
            [
                ("taken", published.snapshot_time.strftime("%Y-%m-%d %H:%M:%S UTC")),
                ("size", text.size_bytes(published.size_bytes)),
                ("revision", str(published.revision)),
            ]
        ),
    )


def _format(format_name: str | None, out: Path | None, *, as_json: bool) -> RowFormat:
    if as_json:
        if format_name not in (None, RowFormat.JSON.value):
            raise Failure(f"--json: and --format {format_name} exclude each other", USAGE)
        return RowFormat.JSON
    if format_name is not None:
        kind = RowFormat(format_name)
    elif out is not None:
        by_suffix = {f".{file_format.value}": file_format for file_format in FILE_FORMATS}
        if out.suffix.lower() not in by_suffix:
            raise Failure(f"--out: {out.name!a} does not say the format; --format does", USAGE)
        kind = by_suffix[out.suffix.lower()]
    else:
        kind = RowFormat.TABLE
    if kind is RowFormat.PARQUET and out is None:
        raise Failure("--format parquet: takes --out FILE", USAGE)
    return kind
