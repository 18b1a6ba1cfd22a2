"""`linkbound engine-calibrations`: measured times of engines, and what is fitted to them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from linkbound.cli import text
from linkbound.cli.collective_options import kind_name
from linkbound.cli.connect import estimator_client, ingest_client
from linkbound.cli.failures import naming
from linkbound.cli.listing import listed
from linkbound.cli.measured_file import measured_text
from linkbound.cli.options import Reply, reply_option
from linkbound.cli.output import print_message, print_text
from linkbound.cli.run_options import RUN_FIELDS, RunChoice, run_option
from linkbound.cli.table import Column, pairs, right, table
from linkbound.domain.layout import layout_name
from linkbound.domain.words import counted

if TYPE_CHECKING:
    from linkbound.client.estimator import EstimatorClient
    from linkbound.domain.engine import EngineCalibration, EngineResidual, EngineTerm, SchedulerSettings
    from linkbound.domain.link import Link

_LIST_COLUMNS = (
    Column("engine calibration"),
    Column("model"),
    Column("layout"),
    right("link"),
    right("points"),
    right("terms"),
    right("TTFT off at points left out"),
    right("output speed"),
)
_TERM_COLUMNS = (Column("term"), right("time of each"))
_RESIDUAL_COLUMNS = (Column("point"), Column("figure"), right("measured"), right("fit"), right("fit without the point"))
_STORED_FIELDS = {"engine_calibration": "--name", "sources": "--source"}
_FILE_FIELDS = {**_STORED_FIELDS, "file": "FILE", "table": "FILE", "table.": "FILE: "}
_RUN_FIELDS = {**_STORED_FIELDS, **RUN_FIELDS, "table": "--run", "table.": "--run: "}


@click.group("engine-calibrations", context_settings={"help_option_names": ["-h", "--help"]})
def engine_calibrations() -> None:
    """Measured times of engines."""


@engine_calibrations.command("list")
@reply_option("estimator")
@naming({})
def list_engine_calibrations(*, reply: Reply) -> None:
    """Lists the engine calibrations."""
    with estimator_client(reply.target, reply.data) as estimator:
        entries, unreadable = listed(estimator.list_engine_calibrations())
    if reply.as_json:
        from linkbound.convert.engine_catalog import list_engine_calibrations_response_to_proto
        from linkbound.domain.paging import Page

        print_message(list_engine_calibrations_response_to_proto(Page(entries=entries, unreadable=unreadable)))
    else:
        rows = [_list_cells(entry) for entry in entries]
        print_text(counted(len(entries), "engine calibration"), table(_LIST_COLUMNS, rows))


@engine_calibrations.command("show")
@click.argument("engine_calibration")
@reply_option("estimator")
@naming({"engine_calibration": "ENGINE_CALIBRATION"})
def show_engine_calibration(*, engine_calibration: str, reply: Reply) -> None:
    """Shows the terms of ENGINE_CALIBRATION and what the fit leaves, with assumptions and sources."""
    with estimator_client(reply.target, reply.data) as estimator:
        _print(estimator.get_engine_calibration(engine_calibration), reply)


@engine_calibrations.command("fit")
@click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@run_option
@click.option("--name", default="", metavar="NAME", help="Store the fit in the catalogue under this name.")
@click.option(
    "--source", "sources", multiple=True, metavar="TEXT", help="Where the times in FILE come from. May be repeated."
)
@reply_option("estimator")
def fit_engine_calibration(
    *, file: Path | None, choice: RunChoice, name: str, sources: tuple[str, ...], reply: Reply
) -> None:
    """Fits the times in FILE, a TOML file with model, layout, link, scheduler and measured points, or those of a run.

    Each test of a run is a point: the medians over its measured rounds. What is not typed of its engine is what the run
    says in its settings, such as `model`, `link`, `tensor_parallel_size` and `max_num_batched_tokens`.
    """
    if (file is None) == (not choice.run):
        raise click.UsageError("FILE: is given beside --run" if choice.run else "FILE: is missing, and so is --run")
    if file is None and sources:
        raise click.UsageError("--source: is of FILE; a run says itself where its times come from")
    with estimator_client(reply.target, reply.data) as estimator:
        if file is not None:
            fit = _fit_of_file(estimator, file, name, sources)
        else:
            fit = _fit_of_run(estimator, choice, name, reply.data)
    _print(fit, reply)


@naming(_FILE_FIELDS)
def _fit_of_file(estimator: EstimatorClient, file: Path, name: str, sources: tuple[str, ...]) -> EngineCalibration:
    from linkbound.importers.engine_table import read_engine_file

    content = read_engine_file(measured_text(file, "FILE"))
    return estimator.fit_engine_calibration(
        content.table, engine_calibration=name, sources=(*content.sources, *sources)
    )


@naming(_RUN_FIELDS)
def _fit_of_run(estimator: EstimatorClient, choice: RunChoice, name: str, data: str | None) -> EngineCalibration:
    from linkbound.client.calibrate import calibrate_from_run

    with ingest_client(choice.ingest, data) as ingest:
        return calibrate_from_run(estimator, ingest, choice.run, engine_calibration=name, **choice.keywords)


def _print(calibration: EngineCalibration, reply: Reply) -> None:
    if reply.as_json:
        from linkbound.convert.engine import engine_calibration_to_proto

        print_message(engine_calibration_to_proto(calibration))
        return
    print_text(
        _headline(calibration),
        pairs(_details(calibration)),
        table(_TERM_COLUMNS, [_term_cells(term) for term in calibration.terms]),
        table(_RESIDUAL_COLUMNS, [_residual_cells(residual) for residual in calibration.residuals]),
        pairs(_notes(calibration)),
    )


def _headline(calibration: EngineCalibration) -> str:
    measured = calibration.table
    speed = _speed_off(calibration)
    parts = [
        *([] if calibration.interval_fraction is None else [f"TTFT off by {_off(calibration)}"]),
        *([] if speed is None else [f"output speed by up to {text.percent(speed)}"]),
    ]
    off = f", {' and '.join(parts)} at points left out" if parts else ""
    return (
        f"{counted(len(calibration.terms), 'term')} from {counted(len(measured.points), 'point')}{off}:"
        f" {_model(calibration)} on {layout_name(measured.layout)}"
    )


def _off(calibration: EngineCalibration) -> str:
    fraction = calibration.interval_fraction
    return "not known" if fraction is None else f"up to {text.percent(fraction)}"


def _speed_off(calibration: EngineCalibration) -> float | None:
    """The largest error of an output speed at a point left out, by the time of a pass."""
    from linkbound.domain.engine import EngineMetric

    errors = [
        abs(one.left_out_error_ratio)
        for one in calibration.residuals
        if one.metric is EngineMetric.DECODE_PASS and one.left_out_error_ratio is not None
    ]
    return max(errors, default=None)


def _speed_cell(calibration: EngineCalibration) -> str:
    speed = _speed_off(calibration)
    return "not known" if speed is None else f"up to {text.percent(speed)}"


def _model(calibration: EngineCalibration) -> str:
    return calibration.table.model or "a config"


def _list_cells(calibration: EngineCalibration) -> list[str]:
    measured = calibration.table
    return [
        calibration.engine_calibration_id,
        _model(calibration),
        layout_name(measured.layout),
        _rate(measured.link),
        f"{len(measured.points)}",
        f"{len(calibration.terms)}",
        _off(calibration),
        _speed_cell(calibration),
    ]


def _rate(link: Link) -> str:
    return text.bits_per_second(link.measured_bits_per_second or link.line_rate_bits_per_second or 0)


def _details(calibration: EngineCalibration) -> list[tuple[str, str]]:
    measured = calibration.table
    scheduler = measured.scheduler
    settings = [f"max_num_batched_tokens {scheduler.max_num_batched_tokens}"]
    if scheduler.long_prefill_token_threshold:
        settings.append(f"long_prefill_token_threshold {scheduler.long_prefill_token_threshold}")
    if scheduler.max_num_seqs is not None:
        settings.append(f"max_num_seqs {scheduler.max_num_seqs}")
    if scheduler.draft_token_count:
        settings.append(f"{counted(scheduler.draft_token_count, 'draft token')}, {_accepted(scheduler)}")
    return [
        ("engine calibration", calibration.engine_calibration_id or "not stored"),
        ("link", _rate(measured.link)),
        ("bursts", "none" if measured.bursts is None else counted(len(measured.bursts.points), "size")),
        ("engine", scheduler.engine or "the newest whose rules are known"),
        ("settings", ", ".join(settings)),
        ("TTFT off at points left out", _off(calibration)),
        ("output speed", _speed_cell(calibration)),
    ]


def _accepted(scheduler: SchedulerSettings) -> str:
    accepted = scheduler.accepted_draft_tokens_per_pass
    return "not known how many are accepted" if accepted is None else f"{accepted:g} accepted"


def _term_cells(term: EngineTerm) -> list[str]:
    return [kind_name(term.kind), text.seconds(term.seconds)]


def _residual_cells(residual: EngineResidual) -> list[str]:
    left_out = residual.left_out_error_ratio
    return [
        residual.label,
        _figure(residual),
        text.seconds(residual.measured_seconds),
        text.signed_percent(residual.error_ratio),
        "not known" if left_out is None else text.signed_percent(left_out),
    ]


def _figure(residual: EngineResidual) -> str:
    from linkbound.domain.engine import EngineMetric

    name = kind_name(residual.metric).replace("-", " ").replace("ttft", "TTFT")
    return f"{name} of place {residual.request}" if residual.metric is EngineMetric.TTFT else name


def _notes(calibration: EngineCalibration) -> list[tuple[str, str]]:
    return [*text.assumed(calibration.assumptions), *(("source", source) for source in calibration.sources)]
