"""All figures of measured points, each with the passes that a replay finds in it."""

from __future__ import annotations

from estimator_service.core.engine_times.clock import LinkClock
from estimator_service.core.engine_times.figures import Figure, point_figures, point_spans
from estimator_service.core.engine_times.terms import Coefficients
from estimator_service.core.engine_times.timeline import timeline
from estimator_service.core.engine_times.violations import prefixed
from estimator_service.core.engine_times.work import pass_rows, pass_work
from estimator_service.core.schedule.passes import Pass
from linkbound.domain.engine import EngineTable
from linkbound.domain.errors import InvalidArgumentError, Violation


def table_figures(
    table: EngineTable, clock: LinkClock, coefficients: Coefficients, prefix: str = ""
) -> tuple[Figure, ...]:
    """The figures of every point, replayed at the times of `coefficients` (`docs/formulas.md`, Engine times).

    `clock` is that of the table's link. Raises InvalidArgumentError, paths behind `prefix`, for what the engine
    refuses.
    """

    def seconds(found: Pass) -> float:
        return coefficients.compute(pass_work(found)).seconds + found.repeat * clock.likely_seconds(pass_rows(found))

    figures: list[Figure] = []
    violations: list[Violation] = []
    for index, point in enumerate(table.points):
        try:
            found = timeline(table.scheduler, point.requests, seconds)
        except InvalidArgumentError as error:
            violations.extend(prefixed(error.field_violations, f"{prefix}points[{index}]."))
            continue
        figures.extend(point_figures(index, point, table.scheduler, point_spans(found, clock), coefficients))
    if violations:
        raise InvalidArgumentError(violations)
    return tuple(figures)
