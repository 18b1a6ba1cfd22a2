"""Why times of an engine cannot be read as they are given."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from attrs import evolve

from estimator_service.core.engine_times.figures import Figure, output_tokens
from estimator_service.core.layouts.feasibility import layout_violations
from estimator_service.core.schedule import limits_of
from linkbound.domain.catalog import Model
from linkbound.domain.engine import EngineMetric, EnginePoint, EngineTable, SchedulerSettings
from linkbound.domain.errors import InvalidArgumentError, Violation
from linkbound.domain.layout import ParallelLayout

_FIELDS = {
    EngineMetric.LAST_TTFT: "last_ttft_seconds",
    EngineMetric.MEAN_TTFT: "mean_ttft_seconds",
    EngineMetric.DECODE_PASS: "output_tokens_per_second",
}


def schedule_layout_violations(model: Model, layout: ParallelLayout, prefix: str) -> Iterator[Violation]:
    """Why a layout has no single schedule, beside why a model cannot be cut so (`docs/formulas.md`, Engine times)."""
    yield from layout_violations(model, layout, prefix)
    if layout.pipeline_parallel_size > 1:
        yield Violation(
            f"{prefix}pipeline_parallel_size",
            f"{layout.pipeline_parallel_size} stages work on several passes at a time, which no replay covers: 1 is",
        )
    if layout.data_parallel_size > 1:
        yield Violation(
            f"{prefix}data_parallel_size",
            f"{layout.data_parallel_size} attention groups have a schedule each, which no replay covers: 1 is",
        )


def table_violations(table: EngineTable, model: Model, prefix: str) -> Iterator[Violation]:
    """What no fit of `table` could start from (`docs/formulas.md`, Engine times)."""
    yield from schedule_layout_violations(model, table.layout, f"{prefix}layout.")
    try:
        limits_of(table.scheduler)
    except InvalidArgumentError as error:
        yield from prefixed(error.field_violations, prefix)
        return
    for index, point in enumerate(table.points):
        yield from _output_violations(point, table.scheduler, f"{prefix}points[{index}].")


def _output_violations(point: EnginePoint, scheduler: SchedulerSettings, prefix: str) -> Iterator[Violation]:
    # A request without room for any output is the replay's to refuse.
    if point.output_tokens_per_second is not None and set(output_tokens(point, scheduler)) == {1}:
        yield Violation(f"{prefix}output_tokens_per_second", "is given, and no request generates a second token")


def prefixed(violations: Iterable[Violation], prefix: str) -> tuple[Violation, ...]:
    """The same of something that lies within a request (`docs/formulas.md`, Engine times)."""
    return tuple(evolve(violation, field=f"{prefix}{violation.field}") for violation in violations)


def figure_violations(figures: Iterable[Figure], prefix: str) -> Iterator[Violation]:
    """Times in which the links could not have carried the bytes (`docs/formulas.md`, Engine times)."""
    for figure in figures:
        if figure.measured_seconds < figure.least_seconds:
            name = _FIELDS.get(figure.metric, f"ttft_seconds[{figure.request}]")
            yield Violation(
                f"{prefix}points[{figure.point}].{name}",
                f"{_times_of_passes(figure)}{figure.measured_seconds:.6g} s are below {figure.least_seconds:.6g} s,"
                " which the link needs for the bytes that one rank sends",
            )


def _times_of_passes(figure: Figure) -> str:
    """An output speed is held against the link by the time of its passes."""
    return "is too fast: passes of " if figure.metric is EngineMetric.DECODE_PASS else ""
