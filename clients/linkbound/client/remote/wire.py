"""How each operation travels: the method's path, and the converters of its request and its response."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

from attrs import frozen
from google.protobuf.message import Message

from linkbound.client import operations
from linkbound.client.operations import Operation
from linkbound.client.remote.batch import batch_estimate_of_message, batch_request_message
from linkbound.convert import (
    calibration,
    catalog_service,
    collective_estimate,
    decode,
    engine_catalog,
    ingest_service,
    layout_comparison,
    layout_recommendation,
    link_comparison,
    memory,
    planning,
    prefill,
    query_service,
    run_service,
    sizing,
    tp_projection,
    training,
)
from linkbound.domain.records import (
    AppendOutcome,
    AppendRequest,
    CollectiveResult,
    Event,
    LinkTest,
    MetricAggregate,
    RequestRecord,
    TrainingStep,
)
from linkbound.estimator.v1 import (
    catalog_service_pb2,
    estimator_service_pb2,
    layout_pb2,
    memory_pb2,
    planning_pb2,
    sizing_pb2,
)
from linkbound.ingest.v1 import ingest_service_pb2, query_service_pb2, run_service_pb2

RequestT = TypeVar("RequestT")
ResultT = TypeVar("ResultT")

_ESTIMATOR = "/linkbound.estimator.v1.EstimatorService/"
_CATALOG = "/linkbound.estimator.v1.CatalogService/"
_RUNS = "/linkbound.ingest.v1.RunService/"
_INGEST = "/linkbound.ingest.v1.IngestService/"
_QUERIES = "/linkbound.ingest.v1.QueryService/"


@frozen
class WireMethod(Generic[RequestT, ResultT]):
    """One unary method of the protocol: its path, and what converts to and from its messages."""

    path: str
    request_to_proto: Callable[[RequestT], Message]
    response_type: type[Message]
    response_from_proto: Callable[[Any], ResultT]


def _entry(
    operation: Operation[RequestT, ResultT], method: WireMethod[RequestT, ResultT]
) -> tuple[Operation[Any, Any], WireMethod[Any, Any]]:
    # Lets the type checker hold that the converters are those of the operation.
    return operation, method


METHODS: dict[Operation[Any, Any], WireMethod[Any, Any]] = dict(
    (
        _entry(
            operations.ESTIMATE_PREFILL,
            WireMethod(
                _ESTIMATOR + "EstimatePrefill",
                prefill.prefill_request_to_proto,
                estimator_service_pb2.EstimatePrefillResponse,
                prefill.prefill_estimate_from_proto,
            ),
        ),
        _entry(
            operations.ESTIMATE_DECODE,
            WireMethod(
                _ESTIMATOR + "EstimateDecode",
                decode.decode_request_to_proto,
                estimator_service_pb2.EstimateDecodeResponse,
                decode.decode_estimate_from_proto,
            ),
        ),
        _entry(
            operations.ESTIMATE_COLLECTIVE,
            WireMethod(
                _ESTIMATOR + "EstimateCollective",
                collective_estimate.collective_request_to_proto,
                estimator_service_pb2.EstimateCollectiveResponse,
                collective_estimate.collective_estimate_from_proto,
            ),
        ),
        _entry(
            operations.ESTIMATE_TRAINING_STEP,
            WireMethod(
                _ESTIMATOR + "EstimateTrainingStep",
                training.training_step_request_to_proto,
                estimator_service_pb2.EstimateTrainingStepResponse,
                training.training_step_estimate_from_proto,
            ),
        ),
        _entry(
            operations.COMPARE_LINKS,
            WireMethod(
                _ESTIMATOR + "CompareLinks",
                link_comparison.link_comparison_request_to_proto,
                estimator_service_pb2.CompareLinksResponse,
                link_comparison.link_comparison_from_proto,
            ),
        ),
        _entry(
            operations.PROJECT_TP_SIZES,
            WireMethod(
                _ESTIMATOR + "ProjectTpSizes",
                tp_projection.tp_projection_request_to_proto,
                estimator_service_pb2.ProjectTpSizesResponse,
                tp_projection.tp_projection_from_proto,
            ),
        ),
        _entry(
            operations.COMPARE_LAYOUTS,
            WireMethod(
                _ESTIMATOR + "CompareLayouts",
                layout_comparison.layout_comparison_request_to_proto,
                layout_pb2.CompareLayoutsResponse,
                layout_comparison.layout_comparison_from_proto,
            ),
        ),
        _entry(
            operations.RECOMMEND_LAYOUT,
            WireMethod(
                _ESTIMATOR + "RecommendLayout",
                layout_recommendation.layout_recommendation_request_to_proto,
                layout_pb2.RecommendLayoutResponse,
                layout_recommendation.layout_recommendation_from_proto,
            ),
        ),
        _entry(
            operations.CHECK_MEMORY_FIT,
            WireMethod(
                _ESTIMATOR + "CheckMemoryFit",
                memory.memory_fit_request_to_proto,
                memory_pb2.CheckMemoryFitResponse,
                memory.memory_fit_from_proto,
            ),
        ),
        _entry(
            operations.FIND_SLOWEST_LINK,
            WireMethod(
                _ESTIMATOR + "FindSlowestLink",
                planning.slowest_link_request_to_proto,
                planning_pb2.FindSlowestLinkResponse,
                planning.slowest_link_from_proto,
            ),
        ),
        _entry(
            operations.SIZE_CLUSTER,
            WireMethod(
                _ESTIMATOR + "SizeCluster",
                sizing.size_cluster_request_to_proto,
                sizing_pb2.SizeClusterResponse,
                sizing.cluster_sizing_from_proto,
            ),
        ),
        _entry(
            operations.CHECK_PLAN,
            WireMethod(
                _ESTIMATOR + "CheckPlan",
                planning.plan_request_to_proto,
                planning_pb2.CheckPlanResponse,
                planning.plan_check_from_proto,
            ),
        ),
        _entry(
            operations.BATCH_ESTIMATE,
            WireMethod(
                _ESTIMATOR + "BatchEstimate",
                batch_request_message,
                estimator_service_pb2.BatchEstimateResponse,
                batch_estimate_of_message,
            ),
        ),
        _entry(
            operations.LIST_MODELS,
            WireMethod(
                _CATALOG + "ListModels",
                catalog_service.list_models_request_to_proto,
                catalog_service_pb2.ListModelsResponse,
                catalog_service.list_models_response_from_proto,
            ),
        ),
        _entry(
            operations.GET_MODEL,
            WireMethod(
                _CATALOG + "GetModel",
                catalog_service.get_model_request_to_proto,
                catalog_service_pb2.GetModelResponse,
                catalog_service.get_model_response_from_proto,
            ),
        ),
        _entry(
            operations.IMPORT_MODEL,
            WireMethod(
                _CATALOG + "ImportModel",
                catalog_service.import_model_request_to_proto,
                catalog_service_pb2.ImportModelResponse,
                catalog_service.import_model_response_from_proto,
            ),
        ),
        _entry(
            operations.LIST_HARDWARE,
            WireMethod(
                _CATALOG + "ListHardware",
                catalog_service.list_hardware_request_to_proto,
                catalog_service_pb2.ListHardwareResponse,
                catalog_service.list_hardware_response_from_proto,
            ),
        ),
        _entry(
            operations.GET_HARDWARE,
            WireMethod(
                _CATALOG + "GetHardware",
                catalog_service.get_hardware_request_to_proto,
                catalog_service_pb2.GetHardwareResponse,
                catalog_service.get_hardware_response_from_proto,
            ),
        ),
        _entry(
            operations.FIT_CALIBRATION,
            WireMethod(
                _CATALOG + "FitCalibration",
                calibration.fit_calibration_request_to_proto,
                catalog_service_pb2.FitCalibrationResponse,
                calibration.fit_calibration_response_from_proto,
            ),
        ),
        _entry(
            operations.LIST_CALIBRATIONS,
            WireMethod(
                _CATALOG + "ListCalibrations",
                calibration.list_calibrations_request_to_proto,
                catalog_service_pb2.ListCalibrationsResponse,
                calibration.list_calibrations_response_from_proto,
            ),
        ),
        _entry(
            operations.GET_CALIBRATION,
            WireMethod(
                _CATALOG + "GetCalibration",
                calibration.get_calibration_request_to_proto,
                catalog_service_pb2.GetCalibrationResponse,
                calibration.get_calibration_response_from_proto,
            ),
        ),
        _entry(
            operations.FIT_ENGINE_CALIBRATION,
            WireMethod(
                _CATALOG + "FitEngineCalibration",
                engine_catalog.fit_engine_calibration_request_to_proto,
                catalog_service_pb2.FitEngineCalibrationResponse,
                engine_catalog.fit_engine_calibration_response_from_proto,
            ),
        ),
        _entry(
            operations.LIST_ENGINE_CALIBRATIONS,
            WireMethod(
                _CATALOG + "ListEngineCalibrations",
                engine_catalog.list_engine_calibrations_request_to_proto,
                catalog_service_pb2.ListEngineCalibrationsResponse,
                engine_catalog.list_engine_calibrations_response_from_proto,
            ),
        ),
        _entry(
            operations.GET_ENGINE_CALIBRATION,
            WireMethod(
                _CATALOG + "GetEngineCalibration",
                engine_catalog.get_engine_calibration_request_to_proto,
                catalog_service_pb2.GetEngineCalibrationResponse,
                engine_catalog.get_engine_calibration_response_from_proto,
            ),
        ),
        _entry(
            operations.CREATE_RUN,
            WireMethod(
                _RUNS + "CreateRun",
                run_service.create_run_request_to_proto,
                run_service_pb2.CreateRunResponse,
                run_service.create_run_response_from_proto,
            ),
        ),
        _entry(
            operations.GET_RUN,
            WireMethod(
                _RUNS + "GetRun",
                run_service.get_run_request_to_proto,
                run_service_pb2.GetRunResponse,
                run_service.run_details_from_proto,
            ),
        ),
        _entry(
            operations.LIST_RUNS,
            WireMethod(
                _RUNS + "ListRuns",
                run_service.list_runs_request_to_proto,
                run_service_pb2.ListRunsResponse,
                run_service.list_runs_response_from_proto,
            ),
        ),
        _entry(
            operations.SEAL_RUN,
            WireMethod(
                _RUNS + "SealRun",
                run_service.seal_run_request_to_proto,
                run_service_pb2.SealRunResponse,
                run_service.seal_run_response_from_proto,
            ),
        ),
        _entry(
            operations.DELETE_RUN,
            WireMethod(
                _RUNS + "DeleteRun",
                run_service.delete_run_request_to_proto,
                run_service_pb2.DeleteRunResponse,
                run_service.delete_run_response_from_proto,
            ),
        ),
        _entry(
            operations.COMPARE_RUN,
            WireMethod(
                _QUERIES + "CompareRun",
                query_service.compare_run_request_to_proto,
                query_service_pb2.CompareRunResponse,
                query_service.run_comparison_from_proto,
            ),
        ),
        _entry(
            operations.LIST_REQUEST_RECORDS,
            WireMethod(
                _QUERIES + "ListRequestRecords",
                query_service.list_request_records_request_to_proto,
                query_service_pb2.ListRequestRecordsResponse,
                query_service.list_request_records_response_from_proto,
            ),
        ),
        _entry(
            operations.PUBLISH_SNAPSHOT,
            WireMethod(
                _QUERIES + "PublishSnapshot",
                query_service.publish_snapshot_request_to_proto,
                query_service_pb2.PublishSnapshotResponse,
                query_service.publish_snapshot_response_from_proto,
            ),
        ),
        _entry(
            operations.QUERY_TRAFFIC,
            WireMethod(
                _QUERIES + "QueryTraffic",
                query_service.query_traffic_request_to_proto,
                query_service_pb2.QueryTrafficResponse,
                query_service.query_traffic_response_from_proto,
            ),
        ),
        _entry(
            operations.LIST_PHASE_TRAFFIC,
            WireMethod(
                _QUERIES + "ListPhaseTraffic",
                query_service.list_phase_traffic_request_to_proto,
                query_service_pb2.ListPhaseTrafficResponse,
                query_service.list_phase_traffic_response_from_proto,
            ),
        ),
    )
)


def _append(name: str, response_type: type[Message]) -> WireMethod[AppendRequest, AppendOutcome]:
    return WireMethod(
        _INGEST + name,
        ingest_service.append_request_to_proto,
        response_type,
        ingest_service.append_response_from_proto,
    )


APPEND_METHODS: dict[type, WireMethod[AppendRequest, AppendOutcome]] = {
    RequestRecord: _append("AppendRequestRecords", ingest_service_pb2.AppendRequestRecordsResponse),
    MetricAggregate: _append("AppendMetricAggregates", ingest_service_pb2.AppendMetricAggregatesResponse),
    CollectiveResult: _append("AppendCollectiveResults", ingest_service_pb2.AppendCollectiveResultsResponse),
    TrainingStep: _append("AppendTrainingSteps", ingest_service_pb2.AppendTrainingStepsResponse),
    LinkTest: _append("AppendLinkTests", ingest_service_pb2.AppendLinkTestsResponse),
    Event: _append("AppendEvents", ingest_service_pb2.AppendEventsResponse),
}
"""Appends travel by a method for each kind of record."""


def wire_method(operation: Operation[RequestT, ResultT], request: RequestT) -> WireMethod[RequestT, ResultT]:
    """How `operation` travels with this `request`."""
    if isinstance(request, AppendRequest):
        return cast("WireMethod[RequestT, ResultT]", APPEND_METHODS[type(request.records[0])])
    return METHODS[operation]
