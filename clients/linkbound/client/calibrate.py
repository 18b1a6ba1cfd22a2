"""Measured times of an engine, made of what a run stored, and fitted.

The pure part is `engine_table_of_run`; `calibrate_from_run` reads a run, makes the table and has it fitted, and
`calibrate_from_run_async` does the same on an event loop. Which engine a run measured is what the run says itself in
its settings and its prediction (`linkbound.client.run_engine`), where nothing else is given.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from attrs import frozen

from linkbound.client.link_reader import LinkOrRate
from linkbound.client.names import run_id
from linkbound.client.run_engine import GivenEngine, engine_of_run
from linkbound.client.run_points import NS_PER_SECOND, SubjectPoint, subject_points
from linkbound.domain.engine import (
    BurstTable,
    EngineCalibration,
    EngineTable,
    FitEngineCalibrationRequest,
    SchedulerSettings,
)
from linkbound.domain.errors import FailedPreconditionError
from linkbound.domain.layout import ParallelLayout
from linkbound.domain.names import RUNS, resource_name
from linkbound.domain.records import RequestRecord
from linkbound.domain.rules import as_tuple
from linkbound.domain.run import Run
from linkbound.domain.words import counted

if TYPE_CHECKING:
    from linkbound.client.aio_estimator import AsyncEstimatorClient
    from linkbound.client.aio_ingest import AsyncIngestClient
    from linkbound.client.estimator import EstimatorClient
    from linkbound.client.ingest import IngestClient

LONGEST_SOURCE = 1024
LARGEST_SOURCE_COUNT = 100
_UNSAID_SETTINGS = {"model_config_json"}
"""Settings that say too much to repeat."""

P = ParamSpec("P")
FunctionT = TypeVar("FunctionT", bound=Callable[..., object])


def engine_table_of_run(  # noqa: PLR0913 - the keywords are those of the table
    run: Run,
    records: Iterable[RequestRecord],
    *,
    model: str = "",
    model_config_json: str = "",
    layout: ParallelLayout | None = None,
    link: LinkOrRate | None = None,
    inner_link: LinkOrRate | None = None,
    scheduler: SchedulerSettings | None = None,
    bursts: BurstTable | None = None,
    subjects: Sequence[str] = (),
) -> EngineTable:
    """What `records` measured of the engine of `run`, a point for each of `subjects`; none named: each that counts.

    A point has the requests of one round in the order in which they were sent, and medians over the measured rounds:
    of the sorted TTFTs place by place, and of the output speed, (tokens - tokens of the first chunk) / (last token -
    first chunk). They are medians, not means, since rounds are few and whatever disturbs one only adds to its times.
    Rounds in which a request failed or was shorter than in others are left out. What is not given of the engine is what
    the run says in its settings, such as `tensor_parallel_size`, and in its prediction.

    Raises InvalidArgumentError with everything of the engine that nobody says, and FailedPreconditionError
    (NOT_MEASURED) where no round of a subject counts.
    """
    given = GivenEngine(
        model=model,
        model_config_json=model_config_json,
        layout=layout,
        link=link,
        inner_link=inner_link,
        scheduler=scheduler,
        bursts=bursts,
    )
    return _request(run, records, given, as_tuple(subjects), "").table


@frozen(kw_only=True)
class RunCalibration:
    """What is to be fitted: the engine of a run at some of its subjects, and the name to store it under."""

    run: str
    given: GivenEngine
    subjects: tuple[str, ...]
    engine_calibration: str

    def request(self, run: Run, records: Iterable[RequestRecord]) -> FitEngineCalibrationRequest:
        """What to ask an estimator, of the run and its records."""
        return _request(run, records, self.given, self.subjects, self.engine_calibration)


def _calibration_of_run(  # noqa: PLR0913 - the keywords are those of the table
    run: str,
    *,
    model: str = "",
    model_config_json: str = "",
    layout: ParallelLayout | None = None,
    link: LinkOrRate | None = None,
    inner_link: LinkOrRate | None = None,
    scheduler: SchedulerSettings | None = None,
    bursts: BurstTable | None = None,
    subjects: Sequence[str] = (),
    engine_calibration: str = "",
) -> RunCalibration:
    """The fit of what passes take to the request records of `run`, stored under `engine_calibration` if that is given.

    Points, medians and what the run itself says of its engine are those of `engine_table_of_run`. The sources of the
    fit say which run it was, what of its engine was given, which rounds count and which were left out, and why.

    Raises InvalidArgumentError with everything of the engine that nobody says, NotFoundError for an unknown run or
    model, FailedPreconditionError (NOT_MEASURED) where no round of a subject counts, and what the calls raise:
    `get_run` and `list_request_records` of `ingest`, `fit_engine_calibration` of `estimator`.
    """
    given = GivenEngine(
        model=model,
        model_config_json=model_config_json,
        layout=layout,
        link=link,
        inner_link=inner_link,
        scheduler=scheduler,
        bursts=bursts,
    )
    return RunCalibration(
        run=run_id(run), given=given, subjects=as_tuple(subjects), engine_calibration=engine_calibration
    )


def _blocking(
    asked: Callable[P, RunCalibration],
) -> Callable[Concatenate[EstimatorClient, IngestClient, P], EngineCalibration]:
    def calibrate_from_run(
        estimator: EstimatorClient, ingest: IngestClient, /, *args: P.args, **keywords: P.kwargs
    ) -> EngineCalibration:
        calibration = asked(*args, **keywords)
        run = ingest.get_run(calibration.run).run
        records = list(ingest.list_request_records(calibration.run))
        fit = calibration.request(run, records)
        return estimator.fit_engine_calibration(
            fit.table, engine_calibration=fit.engine_calibration, sources=fit.sources
        )

    return _described(calibrate_from_run, asked, "EstimatorClient", "IngestClient")


def _awaited(
    asked: Callable[P, RunCalibration],
) -> Callable[Concatenate[AsyncEstimatorClient, AsyncIngestClient, P], Coroutine[Any, Any, EngineCalibration]]:
    async def calibrate_from_run_async(
        estimator: AsyncEstimatorClient, ingest: AsyncIngestClient, /, *args: P.args, **keywords: P.kwargs
    ) -> EngineCalibration:
        calibration = asked(*args, **keywords)
        run = (await ingest.get_run(calibration.run)).run
        records = [record async for record in ingest.list_request_records(calibration.run)]
        fit = calibration.request(run, records)
        return await estimator.fit_engine_calibration(
            fit.table, engine_calibration=fit.engine_calibration, sources=fit.sources
        )

    return _described(calibrate_from_run_async, asked, "AsyncEstimatorClient", "AsyncIngestClient")


def _described(function: FunctionT, asked: Callable[..., object], estimator: str, ingest: str) -> FunctionT:
    """`function` with the words and the keywords of `asked`, behind its two clients, so that `help` shows them."""
    clients = [
        inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY, annotation=annotation)
        for name, annotation in (("estimator", estimator), ("ingest", ingest))
    ]
    signature = inspect.signature(asked)
    function.__doc__ = asked.__doc__
    vars(function)["__signature__"] = signature.replace(
        parameters=[*clients, *signature.parameters.values()], return_annotation="EngineCalibration"
    )
    return function


calibrate_from_run = _blocking(_calibration_of_run)
calibrate_from_run_async = _awaited(_calibration_of_run)


def _request(
    run: Run,
    records: Iterable[RequestRecord],
    given: GivenEngine,
    subjects: tuple[str, ...],
    engine_calibration: str,
) -> FitEngineCalibrationRequest:
    engine = engine_of_run(run, given)
    chosen = [record for record in records if not subjects or record.subject in subjects]
    found = subject_points(chosen)
    _check_measured(run, found, subjects)
    return FitEngineCalibrationRequest(
        table=EngineTable(
            model=engine.model,
            model_config_json=engine.model_config_json,
            layout=engine.layout,
            link=engine.link,
            inner_link=engine.inner_link,
            bursts=engine.bursts,
            scheduler=engine.scheduler,
            points=tuple(measured.point for measured in found if measured.point is not None),
        ),
        engine_calibration=engine_calibration,
        sources=_sources(run, given, found, chosen),
    )


def _check_measured(run: Run, found: Sequence[SubjectPoint], subjects: tuple[str, ...]) -> None:
    """Hold that every subject that was named, or one where none was, has a round that counts."""
    with_point = {measured.subject for measured in found if measured.point is not None}
    missing = [subject for subject in subjects if subject not in with_point]
    if with_point and not missing:
        return
    name = resource_name(RUNS, run.run_id)
    what = f"no complete round of {', '.join(map(repr, missing))}" if missing else "no complete round of any subject"
    left_out = "; ".join(_left_out(found))
    raise FailedPreconditionError(
        f"{name} measured {what}{f': {left_out}' if left_out else ''}",
        reason="NOT_MEASURED",
        metadata={"run": run.run_id, "subjects": ", ".join(missing)},
    )


def _left_out(found: Iterable[SubjectPoint]) -> Iterator[str]:
    return (f"{measured.subject}, {words}" for measured in found for words in measured.left_out)


def _sources(
    run: Run, given: GivenEngine, found: Sequence[SubjectPoint], records: Sequence[RequestRecord]
) -> tuple[str, ...]:
    """Where the times come from, as much of it as sources hold."""
    lines = [_run_words(run), _engine_words(run, given)]
    lines += [_point_words(measured, records) for measured in found if measured.point is not None]
    lines += [f"left out: {words}" for words in _left_out(found)]
    if len(lines) > LARGEST_SOURCE_COUNT:
        kept = lines[: LARGEST_SOURCE_COUNT - 1]
        lines = [*kept, f"and {len(lines) - len(kept)} more such lines"]
    return tuple(_shortened(line) for line in lines)


def _shortened(line: str) -> str:
    return line if len(line) <= LONGEST_SOURCE else f"{line[: LONGEST_SOURCE - 3]}..."


def _run_words(run: Run) -> str:
    shown = f" ({run.display_name})" if run.display_name else ""
    sealed = f", sealed {_time_words(run.seal_time)}" if run.seal_time is not None else ""
    source = f", from {run.source}" if run.source else ""
    return f"{resource_name(RUNS, run.run_id)}{shown}, created {_time_words(run.create_time)}{sealed}{source}"


def _time_words(time: datetime) -> str:
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _engine_words(run: Run, given: GivenEngine) -> str:
    names = given.names()
    of_run = [f"{setting.key}={setting.value}" for setting in run.settings if setting.key not in _UNSAID_SETTINGS]
    told = f"given: {', '.join(names)}" if names else "nothing of the engine was given"
    return f"{told}; settings of the run: {', '.join(of_run) or 'none'}"


def _point_words(measured: SubjectPoint, records: Sequence[RequestRecord]) -> str:
    kept = set(measured.round_indices)
    counting = [each for each in records if each.subject == measured.subject and each.round_index in kept]
    rounds = ", ".join(map(str, measured.round_indices))
    nodes = sorted({record.node for record in counting if record.node})
    sent = [record.send_time_unix_ns for record in counting if record.send_time_unix_ns is not None]
    of_each = counted(len(counting) // len(kept), "request")
    hosts = f" from {', '.join(nodes)}" if nodes else ""
    writers = sorted({record.writer_id for record in counting if record.writer_id})
    by = f", appended by {', '.join(writers)}" if writers else ""
    since = f", sent from {_time_words(datetime.fromtimestamp(min(sent) / NS_PER_SECOND, UTC))}" if sent else ""
    return (
        f"{measured.subject}: medians of {'round' if len(kept) == 1 else 'rounds'} {rounds}, {of_each} each"
        f"{hosts}{since}{by}"
    )
