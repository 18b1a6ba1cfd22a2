"""The estimator as an object: requests in, answers out, both domain types. The servicers and `local:` call it alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from estimator_service.catalog.directory import SHIPPED_DIRECTORY, Catalog
from estimator_service.catalog.pages import page_of
from estimator_service.core import decode, link_comparison, prefill, single_collective, tp_projection, training
from linkbound.domain.calibration import Calibration, CalibrationRequest, CollectiveTable, FitCalibrationRequest
from linkbound.domain.catalog import Hardware, HardwareRequest, ImportModelRequest, Model, ModelRequest
from linkbound.domain.collective_estimate import CollectiveEstimate, CollectiveRequest
from linkbound.domain.decode import DecodeEstimate, DecodeRequest
from linkbound.domain.errors import Error, FailedPreconditionError
from linkbound.domain.link_comparison import LinkComparison, LinkComparisonRequest
from linkbound.domain.memory import MemoryFit, MemoryFitRequest
from linkbound.domain.names import CALIBRATIONS, ENGINE_CALIBRATIONS, HARDWARE, MODELS
from linkbound.domain.paging import Page, PageRequest
from linkbound.domain.prefill import PrefillEstimate, PrefillRequest
from linkbound.domain.tp_projection import TpProjection, TpProjectionRequest
from linkbound.domain.training import TrainingStepEstimate, TrainingStepRequest
from linkbound.domain.workload import AsksOfModel

if TYPE_CHECKING:
    from pathlib import Path

    from estimator_service.catalog.imports import InlineModels
    from linkbound.domain.batch import BatchAnswer, BatchEstimate, BatchQuestion, BatchRequest
    from linkbound.domain.engine import EngineCalibration, FitEngineCalibrationRequest
    from linkbound.domain.layout_comparison import LayoutComparison, LayoutComparisonRequest
    from linkbound.domain.layout_recommendation import LayoutRecommendation, LayoutRecommendationRequest
    from linkbound.domain.network_parts import NetworkParts
    from linkbound.domain.planning import PlanCheck, PlanRequest, SlowestLink, SlowestLinkRequest
    from linkbound.domain.schedule import SchedulePasses, ScheduleRequest, ScheduleSummary
    from linkbound.domain.sizing import ClusterSizing, SizeClusterRequest
    from linkbound.domain.sweep import SweepColumns, SweepRequest


class Estimator:
    """Answers every question of the estimator from `catalog` alone. Safe to share between threads.

    Every method raises InvalidArgumentError with all violations of a request, and NotFoundError with near names for a
    model or hardware that the catalogue does not hold. Formulas, units and sources: `docs/formulas.md`.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._inline: InlineModels | None = None

    def estimate_prefill(self, request: PrefillRequest) -> PrefillEstimate:
        """Bytes on the wire and the time bounds of prompts."""
        calibration = self._calibration_of(request.calibration, request.collective_table)
        return prefill.estimate_prefill(request, self._workload_model(request.workload), calibration)

    def estimate_decode(self, request: DecodeRequest) -> DecodeEstimate:
        """Bytes, pass floor and traffic while tokens are generated."""
        model = self._workload_model(request.workload)
        calibration = self._calibration_of(request.calibration, request.collective_table)
        return decode.estimate_decode(request, model, self._hardware_of(request.workload.hardware), calibration)

    def estimate_collective(self, request: CollectiveRequest) -> CollectiveEstimate:
        """Bytes, time and bandwidth bounds of one collective."""
        return single_collective.estimate_collective(
            request, self._calibration_of(request.calibration, request.collective_table)
        )

    def estimate_training_step(self, request: TrainingStepRequest) -> TrainingStepEstimate:
        """The gradient exchange of data-parallel training and the step that follows."""
        model = (
            self.model_of(request.model, request.model_config_json, "model_config_json")
            if request.is_of_model
            else None
        )
        calibration = self._calibration_of(request.calibration, request.collective_table)
        return training.estimate_training_step(request, model, calibration)

    def compare_links(self, request: LinkComparisonRequest) -> LinkComparison:
        """One workload over two links."""
        return link_comparison.compare_links(request, self._workload_model(request.workload))

    def project_tp_sizes(self, request: TpProjectionRequest) -> TpProjection:
        """One prompt workload over several tensor-parallel sizes."""
        model = self._workload_model(request.workload)
        hardware = self._hardware_of(request.hardware)
        return tp_projection.project_tp_sizes(request, model, hardware)

    def compare_layouts(self, request: LayoutComparisonRequest) -> LayoutComparison:
        """Every way to cut one instance of a model over the same nodes."""
        from estimator_service.core.layouts import comparison

        model = self._workload_model(request.workload)
        hardware = self._hardware_of(request.workload.hardware)
        calibration = self._calibration_of(request.calibration, request.collective_table)
        return comparison.compare_layouts(request, model, hardware, calibration)

    def recommend_layout(self, request: LayoutRecommendationRequest) -> LayoutRecommendation:
        """How to run a model on the nodes at hand: one large instance, or several smaller ones."""
        from estimator_service.core.layouts import recommendation

        model = self._workload_model(request.workload)
        hardware = self._hardware_of(request.workload.hardware)
        calibration = self._calibration_of(request.calibration, request.collective_table)
        return recommendation.recommend_layout(request, model, hardware, calibration)

    def check_memory_fit(self, request: MemoryFitRequest) -> MemoryFit:
        """What a model and its requests need in memory, and whether it is there."""
        # Only this question needs it.
        from estimator_service.core import memory

        model = self.model_of(request.model, request.model_config_json, "model_config_json")
        return memory.check_memory_fit(request, model, self._catalog.hardware.get(request.hardware))

    def find_slowest_link(self, request: SlowestLinkRequest) -> SlowestLink:
        """The slowest link that keeps a TTFT target."""
        # Sizing and planning are loaded by the questions that need them.
        from estimator_service.core.planning.slowest_link import find_slowest_link

        return find_slowest_link(request, self._workload_model(request.workload))

    def size_cluster(self, request: SizeClusterRequest) -> ClusterSizing:
        """Switches and cables for a number of nodes at a rate, best first."""
        from estimator_service.core.sizing.cluster import size_cluster

        return size_cluster(request, self._network_parts(request.switch, request.nic))

    def check_plan(self, request: PlanRequest) -> PlanCheck:
        """The planning checklist, answered for one case."""
        from estimator_service.core.planning.checklist import check_plan
        from estimator_service.core.planning.facts import plan_facts

        model = self._catalog.models.get(request.model) if request.model else None
        hardware = self._hardware_of(request.hardware)
        parts = self._network_parts(request.switch, request.nic)
        return check_plan(plan_facts(request, model, hardware, parts))

    def batch_estimate(self, request: BatchRequest) -> BatchEstimate:
        """Many questions, each with an answer or with the error that it ends with alone."""
        from linkbound.domain.batch import BatchEstimate

        return BatchEstimate(answers=tuple(map(self._answer_or_error, request.questions)))

    def answer(self, question: BatchQuestion) -> BatchAnswer:
        """The answer to one question of a batch."""
        answer: BatchAnswer
        match question:
            case PrefillRequest():
                answer = self.estimate_prefill(question)
            case DecodeRequest():
                answer = self.estimate_decode(question)
            case CollectiveRequest():
                answer = self.estimate_collective(question)
            case TrainingStepRequest():
                answer = self.estimate_training_step(question)
            case LinkComparisonRequest():
                answer = self.compare_links(question)
            case TpProjectionRequest():
                answer = self.project_tp_sizes(question)
            case MemoryFitRequest():
                answer = self.check_memory_fit(question)
        return answer

    def stream_sweep(self, request: SweepRequest) -> Iterator[SweepColumns]:
        """Prompts at every point of a sweep, a stretch at a time; each is computed when it is asked for.

        Raises FailedPreconditionError (SWEEPS_UNAVAILABLE) where NumPy is missing, before anything is asked for.
        """
        try:
            from estimator_service.sweep.prefill import sweep_prefill
        except ModuleNotFoundError as error:
            raise FailedPreconditionError(
                f"a sweep needs {error.name}: pip install 'linkbound[services]'",
                reason="SWEEPS_UNAVAILABLE",
                metadata={"module": error.name or ""},
            ) from error
        return sweep_prefill(request, self._workload_model(request.workload))

    def stream_schedule(self, request: ScheduleRequest) -> Iterator[SchedulePasses | ScheduleSummary]:
        """The passes that an engine makes of requests, what links take of them, and when first tokens come.

        In parts: passes in their order, then the summary. Errors come from the iterator.
        """
        # The replay is loaded by the questions that need it.
        from estimator_service.core.engine_times import estimate
        from estimator_service.schedule_parts import parts_of

        engine = self._engine_of(request)
        calibration = self._calibration_of(request.calibration, request.collective_table)
        entries = estimate.schedule_parts(request, self._schedule_model(request, engine), engine, calibration)
        yield from parts_of(entries, request.start_index)

    def _engine_of(self, request: ScheduleRequest) -> EngineCalibration | None:
        """The engine calibration that a request names, or the fit of the times that it brings."""
        table = request.engine_table
        if table is not None:
            from estimator_service.core.engine_times.fit import fit_engine

            model = self.model_of(table.model, table.model_config_json, "engine_table.model_config_json")
            return fit_engine(table, model, field="engine_table")
        name = request.engine_calibration
        return self._catalog.engine_calibrations.get(name) if name else None

    def _schedule_model(self, request: ScheduleRequest, engine: EngineCalibration | None) -> Model | None:
        """The model of a request, else that of its engine calibration; None: passes alone."""
        if request.has_model:
            return self.model_of(request.model, request.model_config_json, "model_config_json")
        if engine is None:
            return None
        return self.model_of(engine.table.model, engine.table.model_config_json, "engine_calibration.model_config_json")

    def _network_parts(self, switch_id: str, nic_id: str) -> NetworkParts:
        """The parts of the catalogue; no switch is every one, no adapter that of a DGX Spark."""
        from linkbound.domain.network_parts import NetworkParts
        from linkbound.domain.sizing import DEFAULT_NIC

        catalog = self._catalog
        switch_ids = (switch_id,) if switch_id else catalog.switches.ids
        return NetworkParts(
            switches=tuple(map(catalog.switches.get, switch_ids)),
            cables=tuple(map(catalog.cables.get, catalog.cables.ids)),
            nic=catalog.nics.get(nic_id or DEFAULT_NIC),
        )

    def _hardware_of(self, hardware_id: str) -> Hardware | None:
        """The hardware that a request names; None where it names none."""
        return self._catalog.hardware.get(hardware_id) if hardware_id else None

    def _answer_or_error(self, question: BatchQuestion) -> BatchAnswer | Error:
        try:
            return self.answer(question)
        except Error as error:
            return error

    def list_models(self, request: PageRequest) -> Page[Model]:
        """One page of the models, in the order of their ids."""
        return page_of(MODELS, self._catalog.models, request)

    def get_model(self, model_id: str) -> Model:
        """One model. A malformed id is a violation."""
        return self._catalog.models.get(ModelRequest(model=model_id).model)

    def import_model(self, request: ImportModelRequest) -> Model:
        """The model in a config, kept under its name unless it is only to be read.

        Raises AlreadyExistsError (MODEL_EXISTS), FailedPreconditionError (CATALOG_READ_ONLY) and ResourceExhaustedError
        (DISK_FULL) besides.
        """
        # Only this question, and those that bring a config, need it.
        from estimator_service.catalog.imports import read_import

        imported = read_import(request)
        if request.validate_only:
            return imported.model
        return self._catalog.models.store(request.model, imported.text, imported.model)

    def model_of(self, model_id: str, model_config_json: str, field: str) -> Model:
        """The model that a request names, or that is in the config that it brings; `field` names the config."""
        if not model_config_json:
            return self._catalog.models.get(model_id)
        return self._inline_models().get(model_config_json, field)

    def _workload_model(self, workload: AsksOfModel) -> Model:
        return self.model_of(workload.model, workload.model_config_json, "workload.model_config_json")

    def _inline_models(self) -> InlineModels:
        if self._inline is None:
            from estimator_service.catalog.imports import InlineModels

            self._inline = InlineModels()
        return self._inline

    def list_hardware(self, request: PageRequest) -> Page[Hardware]:
        """One page of the hardware, in the order of its ids."""
        return page_of(HARDWARE, self._catalog.hardware, request)

    def get_hardware(self, hardware_id: str) -> Hardware:
        """One kind of hardware. A malformed id is a violation."""
        return self._catalog.hardware.get(HardwareRequest(hardware=hardware_id).hardware)

    def fit_calibration(self, request: FitCalibrationRequest) -> Calibration:
        """The fit of measured times, kept under its name where it has one.

        Raises AlreadyExistsError (CALIBRATION_EXISTS), FailedPreconditionError (CATALOG_READ_ONLY) and
        ResourceExhaustedError (DISK_FULL) besides.
        """
        # Only this question, and those that bring measured times, need it.
        from estimator_service.catalog.calibration_files import calibration_text
        from estimator_service.core.collective_time import fit

        calibration = fit(request.table, request.calibration, request.sources)
        if not request.calibration:
            return calibration
        return self._catalog.calibrations.store(request.calibration, calibration_text(calibration), calibration)

    def list_calibrations(self, request: PageRequest) -> Page[Calibration]:
        """One page of the calibrations, in the order of their ids."""
        return page_of(CALIBRATIONS, self._catalog.calibrations, request)

    def get_calibration(self, calibration_id: str) -> Calibration:
        """One calibration. A malformed id is a violation."""
        return self._catalog.calibrations.get(CalibrationRequest(calibration=calibration_id).calibration)

    def fit_engine_calibration(self, request: FitEngineCalibrationRequest) -> EngineCalibration:
        """The fit of measured times of an engine, kept under its name where it has one.

        Raises AlreadyExistsError (ENGINE_CALIBRATION_EXISTS), FailedPreconditionError (CATALOG_READ_ONLY) and
        ResourceExhaustedError (DISK_FULL) besides.
        """
        from attrs import evolve

        from estimator_service.core.engine_times.fit import fit_engine

        table, name = request.table, request.engine_calibration
        model = self.model_of(table.model, table.model_config_json, "table.model_config_json")
        fit = evolve(fit_engine(table, model, sources=request.sources), engine_calibration_id=name)
        if not name:
            return fit
        from estimator_service.catalog.engine_files import engine_calibration_text

        return self._catalog.engine_calibrations.store(name, engine_calibration_text(fit), fit)

    def list_engine_calibrations(self, request: PageRequest) -> Page[EngineCalibration]:
        """One page of the engine calibrations, in the order of their ids."""
        return page_of(ENGINE_CALIBRATIONS, self._catalog.engine_calibrations, request)

    def get_engine_calibration(self, engine_calibration_id: str) -> EngineCalibration:
        """One engine calibration. A malformed id is a violation."""
        from linkbound.domain.engine import EngineCalibrationRequest

        asked = EngineCalibrationRequest(engine_calibration=engine_calibration_id)
        return self._catalog.engine_calibrations.get(asked.engine_calibration)

    def _calibration_of(self, calibration_id: str, table: CollectiveTable | None) -> Calibration | None:
        """The calibration that a request names, or the fit of the times that it brings; None where it does neither."""
        if table is not None:
            from estimator_service.core.collective_time import fit

            return fit(table)
        return self._catalog.calibrations.get(calibration_id) if calibration_id else None


def default_estimator(find_catalog_directory: Callable[[], Path] | None = None) -> Estimator:
    """An estimator over the catalogue that comes with the package, and over a directory that takes imports.

    The directory is asked for when it is first needed; None: nothing can be imported.
    """
    return Estimator(Catalog(SHIPPED_DIRECTORY, find_catalog_directory))
