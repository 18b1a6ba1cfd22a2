"""Values of every domain type for Hypothesis, derived from the attrs classes.

Integers take their range from the proto field of the same name, so that extremes of the wire are drawn. Types with
rules have their own strategies in the modules beside this one, which keep the rules. `Fill.FULL` leaves nothing at its
default: every optional is there, every sequence has entries, nothing is zero or empty; it shows that no field is
forgotten.
"""

from __future__ import annotations

import functools
import typing
from collections.abc import Callable
from typing import Any

import attrs
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from hypothesis import strategies as st

from linkbound.domain.calibration import CollectivePoint, CollectiveTable, FitCalibrationRequest
from linkbound.domain.catalog import (
    CacheGroup,
    Collective,
    Hardware,
    HardwareRequest,
    ImportModelRequest,
    Model,
    ModelRequest,
    ParameterGroup,
)
from linkbound.domain.cluster_workload import ClusterWorkload
from linkbound.domain.collective_estimate import CollectiveRequest
from linkbound.domain.decode import DecodeRequest
from linkbound.domain.engine import (
    BurstPoint,
    BurstTable,
    EnginePoint,
    EngineRequest,
    EngineTable,
    FitEngineCalibrationRequest,
    SchedulerSettings,
)
from linkbound.domain.estimate import Estimate
from linkbound.domain.layout import ParallelLayout
from linkbound.domain.layout_comparison import LayoutComparisonRequest
from linkbound.domain.layout_recommendation import LayoutRecommendationRequest
from linkbound.domain.link import Link
from linkbound.domain.link_comparison import EmulatedLink, LinkComparisonRequest
from linkbound.domain.measured_range import MeasuredRange
from linkbound.domain.memory import MemoryFitRequest
from linkbound.domain.metric import Spread
from linkbound.domain.paging import Page, PageRequest, UnreadableEntry
from linkbound.domain.planning import PlanRequest, SlowestLinkRequest
from linkbound.domain.prediction import Baseline, PredictedValue, Prediction, TransferModel
from linkbound.domain.prefill import PrefillRequest
from linkbound.domain.records import AppendRequest, ListRequestRecordsRequest, RequestRecord
from linkbound.domain.run import CreateRunRequest, Run, RunRequest, RunRowCounts, SealRunRequest, Setting
from linkbound.domain.run_watch import RunChange, RunUpdate, WatchRunsRequest
from linkbound.domain.samples import OpenStreamRequest, SampleBatch, SampleColumns, SeriesDescriptor, StreamStart
from linkbound.domain.schedule import ScheduleRequest
from linkbound.domain.sizing import SizeClusterRequest
from linkbound.domain.sql import LARGEST_ROW_LIMIT, SqlRequest
from linkbound.domain.sweep import SweepAxis, SweepColumns, SweepRange, SweepRequest
from linkbound.domain.tp_projection import TpProjectionRequest
from linkbound.domain.traffic import ListPhaseTrafficRequest, PhaseTraffic, TrafficRequest
from linkbound.domain.training import TrainingStepRequest
from linkbound.domain.workload import DecodeWorkload, PrefillWorkload
from linkbound.ingest.v1 import run_pb2, run_service_pb2
from tests.strategies.collectives import (
    collective_points,
    collective_requests,
    collective_tables,
    fit_calibration_requests,
)
from tests.strategies.engine import (
    burst_points,
    burst_tables,
    engine_points,
    engine_requests,
    engine_tables,
    fit_engine_calibration_requests,
    measured_ranges,
    schedule_requests,
    scheduler_settings,
)
from tests.strategies.estimator import (
    cache_groups,
    collectives,
    decode_workloads,
    emulated_links,
    hardware,
    import_model_requests,
    link_comparison_requests,
    links,
    models,
    page_requests,
    parameter_groups,
    prefill_workloads,
    tp_projection_requests,
)
from tests.strategies.ingest import (
    RECORDS,
    append_requests,
    create_run_requests,
    list_phase_traffic_requests,
    list_request_records_requests,
    open_stream_requests,
    sample_batches,
    sample_columns,
    seal_run_requests,
    series,
    settings_of_runs,
    stream_starts,
    traffic_requests,
)
from tests.strategies.layouts import (
    cluster_workloads,
    decode_requests,
    layout_comparison_requests,
    layout_recommendation_requests,
    prefill_requests,
)
from tests.strategies.memory import (
    memory_fit_requests,
    parallel_layouts,
    training_step_requests,
)
from tests.strategies.planning import plan_requests, size_cluster_requests, slowest_link_requests
from tests.strategies.predictions import baselines, estimates, predicted_values, predictions, spreads, transfer_models
from tests.strategies.sweep import sweep_axes, sweep_columns, sweep_ranges, sweep_requests
from tests.strategies.values import IDS, INT32, INT64, Fill, Strategy, maybe, of_plain_type, texts, tuples_of, wholes

OWN: dict[type, Callable[[Fill], Strategy]] = {
    **RECORDS,
    AppendRequest: append_requests,
    Baseline: baselines,
    BurstPoint: burst_points,
    BurstTable: burst_tables,
    Collective: collectives,
    CollectivePoint: collective_points,
    CollectiveRequest: collective_requests,
    CollectiveTable: collective_tables,
    CreateRunRequest: create_run_requests,
    DecodeRequest: decode_requests,
    DecodeWorkload: decode_workloads,
    EmulatedLink: emulated_links,
    EnginePoint: engine_points,
    EngineRequest: engine_requests,
    EngineTable: engine_tables,
    Estimate: estimates,
    FitCalibrationRequest: fit_calibration_requests,
    FitEngineCalibrationRequest: fit_engine_calibration_requests,
    MeasuredRange: measured_ranges,
    CacheGroup: cache_groups,
    ParameterGroup: parameter_groups,
    ImportModelRequest: import_model_requests,
    Hardware: hardware,
    HardwareRequest: lambda _fill: st.builds(HardwareRequest, hardware=IDS),
    ClusterWorkload: cluster_workloads,
    LayoutComparisonRequest: layout_comparison_requests,
    LayoutRecommendationRequest: layout_recommendation_requests,
    Link: links,
    LinkComparisonRequest: link_comparison_requests,
    MemoryFitRequest: memory_fit_requests,
    Model: models,
    ModelRequest: lambda _fill: st.builds(ModelRequest, model=IDS),
    OpenStreamRequest: open_stream_requests,
    PageRequest: page_requests,
    ListPhaseTrafficRequest: list_phase_traffic_requests,
    ListRequestRecordsRequest: list_request_records_requests,
    ParallelLayout: parallel_layouts,
    PlanRequest: plan_requests,
    PredictedValue: predicted_values,
    Prediction: predictions,
    PrefillRequest: prefill_requests,
    PrefillWorkload: prefill_workloads,
    RunRequest: lambda _fill: st.builds(RunRequest, run=IDS),
    RunUpdate: lambda fill: run_updates(fill),  # noqa: PLW0108 - it is defined below
    SqlRequest: lambda fill: st.builds(SqlRequest, sql=texts(fill), row_limit=wholes(fill, 0, LARGEST_ROW_LIMIT)),
    WatchRunsRequest: lambda fill: st.builds(
        WatchRunsRequest, start_revision=wholes(fill, 0, 2**62), run=maybe(fill, IDS)
    ),
    SampleBatch: sample_batches,
    SampleColumns: sample_columns,
    StreamStart: stream_starts,
    ScheduleRequest: schedule_requests,
    SchedulerSettings: scheduler_settings,
    SealRunRequest: seal_run_requests,
    SeriesDescriptor: series,
    SizeClusterRequest: size_cluster_requests,
    SlowestLinkRequest: slowest_link_requests,
    Spread: spreads,
    SweepAxis: lambda _fill: sweep_axes(),
    SweepColumns: sweep_columns,
    SweepRange: sweep_ranges,
    SweepRequest: sweep_requests,
    TpProjectionRequest: tp_projection_requests,
    TrafficRequest: traffic_requests,
    TrainingStepRequest: training_step_requests,
    TransferModel: transfer_models,
}
"""Types whose rules, or whose columns, a value drawn by type alone would not keep."""


RESOURCE_FIELDS = {
    *("model", "run", "run_id", "model_id", "hardware_id", "switch"),
    *("calibration_id", "engine_calibration_id"),
}
"""Text fields that hold the id of a resource."""


@functools.cache
def of_type(fill: Fill, hint: Any, descriptor: Descriptor | None) -> Strategy:
    """Values of the type `hint`; `descriptor` is the message that holds them."""
    if typing.get_args(hint):
        return _of_generic_type(fill, hint, descriptor)
    if hint in OWN:
        return OWN[hint](fill)
    if attrs.has(hint):
        return of_class(fill, hint, descriptor)
    return of_plain_type(fill, hint)


def _of_generic_type(fill: Fill, hint: Any, descriptor: Descriptor | None) -> Strategy:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple and arguments[0] is Setting:
        return settings_of_runs(fill)
    if origin is tuple:
        return tuples_of(fill, of_type(fill, arguments[0], descriptor))
    if origin is Page:
        entries = tuples_of(fill, of_type(fill, arguments[0], None))
        # Runs, records and what is told of them are rows of a store: none of them is a file that can be broken.
        of_files = tuples_of(fill, of_class(fill, UnreadableEntry, None))
        unreadable = st.just(()) if arguments[0] in {PhaseTraffic, Run, RequestRecord} else of_files
        return st.builds(Page, entries=entries, next_page_token=texts(fill), unreadable=unreadable)
    kinds = [of_type(fill, argument, descriptor) for argument in arguments if argument is not type(None)]
    return maybe(fill, st.one_of(*kinds)) if type(None) in arguments else st.one_of(*kinds)


def run_updates(fill: Fill) -> Strategy:
    """A run as it is now, and unless everything has to be there one that is gone, or none."""
    revisions = wholes(fill, 0, 2**62)
    there = st.builds(
        lambda revision, change, run, counts: RunUpdate(
            revision=revision, change=change, run_id=run.run_id, run=run, row_counts=counts
        ),
        revisions,
        st.sampled_from([RunChange.CREATED, RunChange.APPENDED, RunChange.SEALED]),
        of_type(fill, Run, run_pb2.Run.DESCRIPTOR),
        of_type(fill, RunRowCounts, run_service_pb2.RunRowCounts.DESCRIPTOR),
    )
    gone = st.builds(RunUpdate, revision=revisions, change=st.just(RunChange.DELETED), run_id=IDS)
    return there if fill is Fill.FULL else st.one_of(there, gone, st.builds(RunUpdate, revision=revisions))


def of_class(fill: Fill, kind: type[Any], descriptor: Descriptor | None) -> Strategy:
    """Values of the attrs class `kind`, for a message of type `descriptor`."""
    hints = typing.get_type_hints(kind)
    proto_fields = descriptor.fields_by_name if descriptor is not None else {}
    return st.builds(
        kind,
        **{
            attribute.name: _of_field(fill, attribute.name, hints[attribute.name], proto_fields.get(attribute.name))
            for attribute in attrs.fields(kind)
        },
    )


def _of_field(fill: Fill, name: str, hint: Any, proto_field: FieldDescriptor | None) -> Strategy:
    if hint is str and name in RESOURCE_FIELDS:
        return IDS
    if hint in {int, int | None}:
        limits = INT64 if proto_field is not None and _is_64_bits(proto_field) else INT32
        numbers = wholes(fill, *limits)
        return numbers if hint is int else maybe(fill, numbers)
    return of_type(fill, hint, proto_field.message_type if proto_field is not None else None)


def _is_64_bits(field: FieldDescriptor) -> bool:
    return field.cpp_type == FieldDescriptor.CPPTYPE_INT64
