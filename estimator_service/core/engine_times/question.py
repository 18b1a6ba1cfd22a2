"""The schedule question with everything in its place: what it leaves open is the calibration's."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve, frozen

from estimator_service.core.engine_times.network import Path, path_over
from estimator_service.core.engine_times.violations import schedule_layout_violations
from estimator_service.core.schedule import engine_rules
from linkbound.domain.calibration import Calibration
from linkbound.domain.catalog import Model
from linkbound.domain.engine import EngineCalibration, SchedulerSettings
from linkbound.domain.errors import InvalidArgumentError, Violation
from linkbound.domain.layout import ParallelLayout, inner_link_violations
from linkbound.domain.schedule import DEFAULT_SCHEDULER, ScheduleRequest


@frozen(kw_only=True)
class Instance:
    """A model cut over ranks, the path that its transfers take, and the one that they change to."""

    model: Model
    layout: ParallelLayout
    path: Path
    to_path: Path | None
    calibration: Calibration | None

    @property
    def final_path(self) -> Path:
        """The path that times are of."""
        return self.path if self.to_path is None else self.to_path


def scheduler_of(request: ScheduleRequest, engine: EngineCalibration | None) -> SchedulerSettings:
    """The settings asked for, else those of the calibration, else the default (`docs/formulas.md`, Engine times).

    Raises InvalidArgumentError for an engine whose rules are not known; one that is not named is the newest of them.
    """
    chosen = request.scheduler or (DEFAULT_SCHEDULER if engine is None else engine.table.scheduler)
    return evolve(chosen, engine=engine_rules(chosen.engine).name)


def instance_of(
    request: ScheduleRequest, model: Model, engine: EngineCalibration | None, calibration: Calibration | None
) -> Instance:
    """The model over the links asked for, else those of the calibration (`docs/formulas.md`, Engine times).

    Bursts of the calibration belong to its link, and to no other. Raises InvalidArgumentError for a layout without a
    single schedule or without its links, and for a model that is not the calibration's.
    """
    table = None if engine is None else engine.table
    layout = request.layout or (None if table is None else table.layout)
    link = request.link or (None if table is None else table.link)
    if layout is None or link is None:
        missing = [name for name, value in (("layout", layout), ("link", link)) if value is None]
        raise InvalidArgumentError([Violation(name, "is missing, with a model") for name in missing])
    inner_link = request.inner_link or (None if table is None else table.inner_link)
    violations = (
        *_model_violations(request, engine),
        *schedule_layout_violations(model, layout, "layout."),
        *inner_link_violations(layout.ranks_per_node, inner_link),
    )
    if violations:
        raise InvalidArgumentError(violations)
    bursts = table.bursts if table is not None and link == table.link else None
    to_path = None
    if request.to_link is not None:
        own = table.bursts if table is not None and request.to_link == table.link else None
        to_path = path_over(request.to_link, request.to_bursts or own, inner_link, layout)
    return Instance(
        model=model,
        layout=layout,
        path=path_over(link, bursts, inner_link, layout),
        to_path=to_path,
        calibration=calibration,
    )


def _model_violations(request: ScheduleRequest, engine: EngineCalibration | None) -> Iterator[Violation]:
    if engine is None or not request.has_model:
        return
    table = engine.table
    if request.model != table.model or request.model_config_json != table.model_config_json:
        field = "model" if request.model else "model_config_json"
        yield Violation(field, f"is not the model of the engine calibration, {table.model or 'given by its config'}")
