"""`linkbound calibrations`: measured times of collectives, and what is fitted to them."""

from __future__ import annotations

from pathlib import Path

import click

from linkbound.cli import text
from linkbound.cli.collective_options import KINDS, TIMINGS, kind_name
from linkbound.cli.connect import estimator_client
from linkbound.cli.failures import USAGE, Failure, naming
from linkbound.cli.listing import listed
from linkbound.cli.measured_file import measured_text
from linkbound.cli.options import Reply, reply_option
from linkbound.cli.output import print_message, print_text
from linkbound.cli.params import WHOLE
from linkbound.cli.table import Column, pairs, right, table
from linkbound.domain.calibration import Calibration, CollectiveTable
from linkbound.domain.collective import CollectiveKind
from linkbound.domain.words import counted
from linkbound.importers.collective_times import CollectiveTimes, read_collective_times

_LIST_COLUMNS = (
    Column("calibration"),
    Column("collective"),
    right("ranks"),
    right("per node"),
    Column("timed"),
    right("points"),
    right("small"),
    right("bus bandwidth"),
)
_POINT_COLUMNS = (right("message bytes"), right("measured"), right("fit without it"))
_FIELDS = {
    "file": "FILE",
    "table.kind": "--kind",
    "table.rank_count": "--ranks",
    "table.ranks_per_node": "--ranks-per-node",
    "table.points": "FILE",
    "calibration": "--name",
    "sources": "--source",
}


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def calibrations() -> None:
    """Measured times of collectives."""


@calibrations.command("list")
@reply_option("estimator")
@naming({})
def list_calibrations(*, reply: Reply) -> None:
    """Lists the calibrations."""
    with estimator_client(reply.target, reply.data) as estimator:
        entries, unreadable = listed(estimator.list_calibrations())
    if reply.as_json:
        from linkbound.convert.calibration import list_calibrations_response_to_proto
        from linkbound.domain.paging import Page

        print_message(list_calibrations_response_to_proto(Page(entries=entries, unreadable=unreadable)))
    else:
        rows = [_list_cells(entry) for entry in entries]
        print_text(counted(len(entries), "calibration"), table(_LIST_COLUMNS, rows))


@calibrations.command("show")
@click.argument("calibration")
@reply_option("estimator")
@naming({"calibration": "CALIBRATION"})
def show_calibration(*, calibration: str, reply: Reply) -> None:
    """Shows the points of CALIBRATION and what the fit leaves, with sources."""
    with estimator_client(reply.target, reply.data) as estimator:
        _print(estimator.get_calibration(calibration), reply)


@calibrations.command("fit")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--name", default="", metavar="NAME", help="Store the fit in the catalogue under this name.")
@click.option("--kind", type=click.Choice(list(KINDS)), help="The collective; default: what FILE says.")
@click.option("--ranks", type=WHOLE, help="Ranks of the group; default: what FILE says.")
@click.option("--ranks-per-node", type=WHOLE, help="Ranks in one node; default: what FILE says, else 1.")
@click.option(
    "--timing",
    type=click.Choice(list(TIMINGS)),
    default="back-to-back",
    show_default=True,
    help="Many in a row as nccl-tests does, or one at a time within a framework.",
)
@click.option("--source", "sources", multiple=True, metavar="TEXT", help="Where the times come from. May be repeated.")
@reply_option("estimator")
@naming(_FIELDS)
def fit_calibration(
    *,
    file: Path,
    name: str,
    kind: str | None,
    ranks: int | None,
    ranks_per_node: int | None,
    timing: str,
    sources: tuple[str, ...],
    reply: Reply,
) -> None:
    """Fits the times in FILE: the output of nccl-tests, or a CSV with the columns message_bytes,seconds."""
    times = read_collective_times(measured_text(file, "FILE"))
    measured = CollectiveTable(
        kind=_kind(kind, times),
        rank_count=_rank_count(ranks, times),
        ranks_per_node=ranks_per_node if ranks_per_node is not None else _ranks_per_node(ranks, times),
        points=times.points,
        timing=TIMINGS[timing],
    )
    with estimator_client(reply.target, reply.data) as estimator:
        _print(estimator.fit_calibration(measured, calibration=name, sources=sources), reply)


def _kind(name: str | None, times: CollectiveTimes) -> CollectiveKind:
    if name is not None:
        return KINDS[name]
    if times.kind is CollectiveKind.UNSPECIFIED:
        raise Failure("--kind: is missing, and FILE does not name a collective", USAGE)
    return times.kind


def _rank_count(given: int | None, times: CollectiveTimes) -> int:
    rank_count = given if given is not None else times.rank_count
    if rank_count is None:
        raise Failure("--ranks: is missing, and FILE does not list its ranks", USAGE)
    return rank_count


def _ranks_per_node(given_rank_count: int | None, times: CollectiveTimes) -> int:
    """What the file says, as long as it speaks of the same group."""
    is_same_group = given_rank_count in {None, times.rank_count}
    return times.ranks_per_node if is_same_group and times.ranks_per_node is not None else 1


def _print(calibration: Calibration, reply: Reply) -> None:
    if reply.as_json:
        from linkbound.convert.calibration import calibration_to_proto

        print_message(calibration_to_proto(calibration))
    else:
        print_text(
            _headline(calibration), pairs(_details(calibration)), _points(calibration), pairs(_notes(calibration))
        )


def _headline(calibration: Calibration) -> str:
    measured = calibration.table
    return (
        f"{text.seconds(calibration.fixed_seconds)} for small and"
        f" {text.bytes_per_second(calibration.bus_bandwidth_bytes_per_second)} bus bandwidth for large ones:"
        f" {kind_name(measured.kind)} among {counted(measured.rank_count, 'rank')}"
    )


def _list_cells(calibration: Calibration) -> list[str]:
    measured = calibration.table
    return [
        calibration.calibration_id,
        kind_name(measured.kind),
        f"{measured.rank_count}",
        f"{measured.ranks_per_node}",
        kind_name(measured.timing),
        f"{len(measured.points)}",
        text.seconds(calibration.fixed_seconds),
        text.bytes_per_second(calibration.bus_bandwidth_bytes_per_second),
    ]


def _details(calibration: Calibration) -> list[tuple[str, str]]:
    changes = [
        f"{change.from_message_bytes:,} to {change.to_message_bytes:,} bytes" for change in calibration.protocol_changes
    ]
    return [
        ("calibration", calibration.calibration_id or "not stored"),
        ("ranks per node", f"{calibration.table.ranks_per_node}"),
        ("timed", kind_name(calibration.table.timing)),
        ("interval at a measured size", f"+- {text.percent(calibration.interval_fraction)}"),
        ("protocol seems to change", ", ".join(changes) or "nowhere"),
    ]


def _points(calibration: Calibration) -> str:
    left = {residual.message_bytes: text.signed_percent(residual.error_ratio) for residual in calibration.residuals}
    rows = [
        [f"{point.message_bytes:,}", text.seconds(point.seconds), left.get(point.message_bytes, "")]
        for point in calibration.table.points
    ]
    return table(_POINT_COLUMNS, rows)


def _notes(calibration: Calibration) -> list[tuple[str, str]]:
    return [
        *text.assumed(calibration.assumptions),
        *(("source", source) for source in calibration.sources),
    ]
