"""`linkbound demo`."""

from __future__ import annotations

import shlex
import signal
from importlib.util import find_spec
from pathlib import Path

import click

from linkbound.cli.failures import USAGE, Failure, naming
from linkbound.cli.options import json_option
from linkbound.cli.output import print_json, print_text

SERVICES_EXTRA = "duckdb"
"""A package that only the `services` extra brings."""

_SPECIAL_IN_DOUBLE_QUOTES = frozenset('"$`\\!')


@click.command()
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=".",
    show_default=True,
    metavar="DIR",
    help="Folder for study.duckdb; a database of an earlier demo is replaced.",
)
@json_option
@naming({})
def demo(*, out: Path, as_json: bool) -> None:
    """Starts both services, feeds them the records of two studies, prints predicted beside measured.

    Leaves study.duckdb in the folder of --out.
    """
    if find_spec(SERVICES_EXTRA) is None:
        raise Failure("the demo runs both services: pip install 'linkbound[services]'", USAGE)
    from linkbound.demo.runner import run_demo

    # A termination is an interrupt: the servers are stopped on the way out.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    result = run_demo(out, lambda line: click.echo(line, err=True))
    if as_json:
        from linkbound.convert.json import message_to_json
        from linkbound.convert.query_service import run_comparison_to_proto

        comparisons = [message_to_json(run_comparison_to_proto(comparison)) for comparison in result.comparisons.all]
        print_json({"comparisons": comparisons, "database": str(result.database_path)})
        return
    from linkbound.demo.tables import report

    print_text(report(result.study, result.comparisons), _how_to_open(result.database_path))


def _how_to_open(path: Path) -> str:
    code = f"import duckdb; duckdb.connect({str(path)!a}, read_only=True).sql('FROM metric_aggregates').show()"
    # Within double quotes nothing of it is special to a shell, for most paths; it reads better so.
    quoted = shlex.quote(code) if _SPECIAL_IN_DOUBLE_QUOTES & set(code) else f'"{code}"'
    return f"open it: duckdb {shlex.quote(str(path))}   or: python -c {quoted}"
