"""What the services can do: one entry per operation, shared by every client and both backends.

An entry says what goes in, what comes out and which class of calls it belongs to; how it travels stands in
`linkbound.client.remote.wire`, who computes it in `linkbound.client.local`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from attrs import frozen

if TYPE_CHECKING:
    # Named in annotations alone; a command that estimates must not pay for the types of the store.
    from linkbound.domain.batch import BatchEstimate, BatchRequest
    from linkbound.domain.calibration import Calibration, FitCalibrationRequest
    from linkbound.domain.catalog import Hardware, ImportModelRequest, Model
    from linkbound.domain.collective_estimate import CollectiveEstimate, CollectiveRequest
    from linkbound.domain.decode import DecodeEstimate, DecodeRequest
    from linkbound.domain.engine import EngineCalibration, FitEngineCalibrationRequest
    from linkbound.domain.layout_comparison import LayoutComparison, LayoutComparisonRequest
    from linkbound.domain.layout_recommendation import LayoutRecommendation, LayoutRecommendationRequest
    from linkbound.domain.link_comparison import LinkComparison, LinkComparisonRequest
    from linkbound.domain.memory import MemoryFit, MemoryFitRequest
    from linkbound.domain.paging import Page, PageRequest
    from linkbound.domain.planning import PlanCheck, PlanRequest, SlowestLink, SlowestLinkRequest
    from linkbound.domain.prefill import PrefillEstimate, PrefillRequest
    from linkbound.domain.records import AppendOutcome, AppendRequest, ListRequestRecordsRequest, RequestRecord
    from linkbound.domain.run import CreateRunRequest, Run, RunDetails, RunRequest, RunRowCounts, SealRunRequest
    from linkbound.domain.run_comparison import RunComparison
    from linkbound.domain.sizing import ClusterSizing, SizeClusterRequest
    from linkbound.domain.sql import PublishSnapshotRequest, Snapshot
    from linkbound.domain.tp_projection import TpProjection, TpProjectionRequest
    from linkbound.domain.traffic import ListPhaseTrafficRequest, PhaseTraffic, PortTraffic, TrafficRequest
    from linkbound.domain.training import TrainingStepEstimate, TrainingStepRequest

RequestT = TypeVar("RequestT")
ResultT = TypeVar("ResultT")


@frozen
class CallClass:
    """A class of calls: what they may take, and whether gRPC may send one again while the service is unavailable.

    Which methods are retried stands a second time in `remote/service_config.json`, where gRPC reads it.
    """

    name: str
    deadline_seconds: float
    is_retried: bool


READ = CallClass("read", 5.0, is_retried=True)
QUERY = CallClass("query", 30.0, is_retried=True)
COMPUTE = CallClass("compute", 10.0, is_retried=True)
BATCH = CallClass("batch", 60.0, is_retried=True)
CREATE = CallClass("create", 10.0, is_retried=True)
"""Repeatable by its content: the same run again is the run that exists."""
APPEND_RECORDS = CallClass("append", 30.0, is_retried=True)
"""Repeatable by run, writer and sequence number."""
SEAL = CallClass("seal", 60.0, is_retried=True)
SNAPSHOT = CallClass("snapshot", 300.0, is_retried=True)
"""A copy of everything that is stored; a repetition makes a later one."""
DELETE = CallClass("delete", 60.0, is_retried=False)
"""A repetition answers NOT_FOUND if the first call went through, so the caller has to know."""


@frozen
class Operation(Generic[RequestT, ResultT]):
    """One thing that a service does. `name` is the method of the application object and of the client."""

    name: str
    call_class: CallClass


ESTIMATE_PREFILL: Operation[PrefillRequest, PrefillEstimate] = Operation("estimate_prefill", COMPUTE)
ESTIMATE_DECODE: Operation[DecodeRequest, DecodeEstimate] = Operation("estimate_decode", COMPUTE)
ESTIMATE_COLLECTIVE: Operation[CollectiveRequest, CollectiveEstimate] = Operation("estimate_collective", COMPUTE)
ESTIMATE_TRAINING_STEP: Operation[TrainingStepRequest, TrainingStepEstimate] = Operation(
    "estimate_training_step", COMPUTE
)
COMPARE_LINKS: Operation[LinkComparisonRequest, LinkComparison] = Operation("compare_links", COMPUTE)
PROJECT_TP_SIZES: Operation[TpProjectionRequest, TpProjection] = Operation("project_tp_sizes", COMPUTE)
COMPARE_LAYOUTS: Operation[LayoutComparisonRequest, LayoutComparison] = Operation("compare_layouts", COMPUTE)
RECOMMEND_LAYOUT: Operation[LayoutRecommendationRequest, LayoutRecommendation] = Operation("recommend_layout", COMPUTE)
CHECK_MEMORY_FIT: Operation[MemoryFitRequest, MemoryFit] = Operation("check_memory_fit", COMPUTE)
FIND_SLOWEST_LINK: Operation[SlowestLinkRequest, SlowestLink] = Operation("find_slowest_link", COMPUTE)
SIZE_CLUSTER: Operation[SizeClusterRequest, ClusterSizing] = Operation("size_cluster", COMPUTE)
CHECK_PLAN: Operation[PlanRequest, PlanCheck] = Operation("check_plan", COMPUTE)
BATCH_ESTIMATE: Operation[BatchRequest, BatchEstimate] = Operation("batch_estimate", BATCH)
LIST_MODELS: Operation[PageRequest, Page[Model]] = Operation("list_models", READ)
GET_MODEL: Operation[str, Model] = Operation("get_model", READ)
IMPORT_MODEL: Operation[ImportModelRequest, Model] = Operation("import_model", CREATE)
LIST_HARDWARE: Operation[PageRequest, Page[Hardware]] = Operation("list_hardware", READ)
GET_HARDWARE: Operation[str, Hardware] = Operation("get_hardware", READ)
FIT_CALIBRATION: Operation[FitCalibrationRequest, Calibration] = Operation("fit_calibration", CREATE)
LIST_CALIBRATIONS: Operation[PageRequest, Page[Calibration]] = Operation("list_calibrations", READ)
GET_CALIBRATION: Operation[str, Calibration] = Operation("get_calibration", READ)
FIT_ENGINE_CALIBRATION: Operation[FitEngineCalibrationRequest, EngineCalibration] = Operation(
    "fit_engine_calibration", CREATE
)
LIST_ENGINE_CALIBRATIONS: Operation[PageRequest, Page[EngineCalibration]] = Operation("list_engine_calibrations", READ)
GET_ENGINE_CALIBRATION: Operation[str, EngineCalibration] = Operation("get_engine_calibration", READ)

CREATE_RUN: Operation[CreateRunRequest, Run] = Operation("create_run", CREATE)
GET_RUN: Operation[RunRequest, RunDetails] = Operation("get_run", READ)
LIST_RUNS: Operation[PageRequest, Page[Run]] = Operation("list_runs", READ)
SEAL_RUN: Operation[SealRunRequest, Run] = Operation("seal_run", SEAL)
DELETE_RUN: Operation[RunRequest, RunRowCounts] = Operation("delete_run", DELETE)
APPEND: Operation[AppendRequest, AppendOutcome] = Operation("append", APPEND_RECORDS)
COMPARE_RUN: Operation[RunRequest, RunComparison] = Operation("compare_run", QUERY)
LIST_REQUEST_RECORDS: Operation[ListRequestRecordsRequest, Page[RequestRecord]] = Operation(
    "list_request_records", QUERY
)
QUERY_TRAFFIC: Operation[TrafficRequest, tuple[PortTraffic, ...]] = Operation("query_traffic", QUERY)
PUBLISH_SNAPSHOT: Operation[PublishSnapshotRequest, Snapshot] = Operation("publish_snapshot", SNAPSHOT)
LIST_PHASE_TRAFFIC: Operation[ListPhaseTrafficRequest, Page[PhaseTraffic]] = Operation("list_phase_traffic", QUERY)
