"""Linkbound: what the network costs an LLM that is split over several machines.

The clients, the types that they take and return, and the errors that they raise. Everything is loaded when it is used,
so `import linkbound` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from linkbound.client import (
        UNSET,
        AsyncEstimatorClient,
        AsyncIngestClient,
        AsyncSampleWriter,
        EstimatorClient,
        IngestClient,
        SampleWriter,
        Timeout,
        TlsFiles,
    )
    from linkbound.domain.batch import BatchAnswer, BatchQuestion
    from linkbound.domain.calibration import (
        Calibration,
        CalibrationResidual,
        CollectivePoint,
        CollectiveTable,
        CollectiveTiming,
        ProtocolChange,
    )
    from linkbound.domain.catalog import Hardware, Model
    from linkbound.domain.collective import CollectiveAlgorithm, CollectiveKind, CollectiveProtocol
    from linkbound.domain.collective_estimate import CollectiveChoice, CollectiveEstimate, CollectiveRequest
    from linkbound.domain.decode import DecodeEstimate, DecodeRequest
    from linkbound.domain.errors import (
        AbortedError,
        AlreadyExistsError,
        CancelledError,
        DeadlineExceededError,
        Error,
        FailedPreconditionError,
        InternalError,
        InvalidArgumentError,
        NotFoundError,
        OutOfRangeError,
        PermissionDeniedError,
        ResourceExhaustedError,
        UnauthenticatedError,
        UnavailableError,
        UnimplementedError,
        Violation,
    )
    from linkbound.domain.estimate import Basis, Constraint, Effect, Estimate
    from linkbound.domain.layout import CollectiveTraffic, ExpertParallelism, ParallelLayout, RankGroup
    from linkbound.domain.layout_comparison import LayoutChoice, LayoutComparison, LayoutEstimate
    from linkbound.domain.layout_recommendation import LayoutOption, LayoutRecommendation
    from linkbound.domain.link import Link, LinkTransport, ResolvedLink
    from linkbound.domain.link_comparison import EmulatedLink, LinkComparison, LinkComparisonRequest
    from linkbound.domain.memory import MemoryFit, MemoryFitRequest, MemoryNeed
    from linkbound.domain.metric import Metric, Spread
    from linkbound.domain.paging import UnreadableEntry, UnreadableEntryWarning
    from linkbound.domain.planning import LinkVerdict, PlanCheck, PlanItem, PlanStatus, SlowestLink, Verdict
    from linkbound.domain.prediction import Baseline, PredictedValue, Prediction, TransferModel
    from linkbound.domain.prefill import PrefillEstimate, PrefillRequest
    from linkbound.domain.records import CollectiveResult, MetricAggregate, Record, RequestRecord, TrainingStep
    from linkbound.domain.run import Run, RunDetails, RunRowCounts, RunState, Setting
    from linkbound.domain.run_comparison import ComparisonRow, Finding, RunComparison, Severity
    from linkbound.domain.samples import SampleColumns, SeriesDescriptor
    from linkbound.domain.sizing import CableLine, ClusterSizing, SizeOption
    from linkbound.domain.sweep import SweepAxis, SweepColumns, SweepRange, SweepVariable
    from linkbound.domain.tp_projection import TpProjection, TpProjectionRequest, TpSizeProjection
    from linkbound.domain.training import TrainingSharding, TrainingStepEstimate, TrainingStepRequest
    from linkbound.domain.workload import DecodeWorkload, PrefillWorkload

__version__ = "0.1.0"
"""The version of the distribution; `pyproject.toml` says the same."""

__all__ = [
    "UNSET",
    "AbortedError",
    "AlreadyExistsError",
    "AsyncEstimatorClient",
    "AsyncIngestClient",
    "AsyncSampleWriter",
    "Baseline",
    "Basis",
    "BatchAnswer",
    "BatchQuestion",
    "CableLine",
    "Calibration",
    "CalibrationResidual",
    "CancelledError",
    "ClusterSizing",
    "CollectiveAlgorithm",
    "CollectiveChoice",
    "CollectiveEstimate",
    "CollectiveKind",
    "CollectivePoint",
    "CollectiveProtocol",
    "CollectiveRequest",
    "CollectiveResult",
    "CollectiveTable",
    "CollectiveTiming",
    "CollectiveTraffic",
    "ComparisonRow",
    "Constraint",
    "DeadlineExceededError",
    "DecodeEstimate",
    "DecodeRequest",
    "DecodeWorkload",
    "Effect",
    "EmulatedLink",
    "Error",
    "Estimate",
    "EstimatorClient",
    "ExpertParallelism",
    "FailedPreconditionError",
    "Finding",
    "Hardware",
    "IngestClient",
    "InternalError",
    "InvalidArgumentError",
    "LayoutChoice",
    "LayoutComparison",
    "LayoutEstimate",
    "LayoutOption",
    "LayoutRecommendation",
    "Link",
    "LinkComparison",
    "LinkComparisonRequest",
    "LinkTransport",
    "LinkVerdict",
    "MemoryFit",
    "MemoryFitRequest",
    "MemoryNeed",
    "Metric",
    "MetricAggregate",
    "Model",
    "NotFoundError",
    "OutOfRangeError",
    "ParallelLayout",
    "PermissionDeniedError",
    "PlanCheck",
    "PlanItem",
    "PlanStatus",
    "PredictedValue",
    "Prediction",
    "PrefillEstimate",
    "PrefillRequest",
    "PrefillWorkload",
    "ProtocolChange",
    "RankGroup",
    "Record",
    "RequestRecord",
    "ResolvedLink",
    "ResourceExhaustedError",
    "Run",
    "RunComparison",
    "RunDetails",
    "RunRowCounts",
    "RunState",
    "SampleColumns",
    "SampleWriter",
    "SeriesDescriptor",
    "Setting",
    "Severity",
    "SizeOption",
    "SlowestLink",
    "Spread",
    "SweepAxis",
    "SweepColumns",
    "SweepRange",
    "SweepVariable",
    "Timeout",
    "TlsFiles",
    "TpProjection",
    "TpProjectionRequest",
    "TpSizeProjection",
    "TrainingSharding",
    "TrainingStep",
    "TrainingStepEstimate",
    "TrainingStepRequest",
    "TransferModel",
    "UnauthenticatedError",
    "UnavailableError",
    "UnimplementedError",
    "UnreadableEntry",
    "UnreadableEntryWarning",
    "Verdict",
    "Violation",
    "__version__",
]

_MODULES = {
    "AbortedError": "domain.errors",
    "AlreadyExistsError": "domain.errors",
    "AsyncEstimatorClient": "client",
    "AsyncIngestClient": "client",
    "AsyncSampleWriter": "client",
    "Baseline": "domain.prediction",
    "Basis": "domain.estimate",
    "BatchAnswer": "domain.batch",
    "BatchQuestion": "domain.batch",
    "CableLine": "domain.sizing",
    "Calibration": "domain.calibration",
    "CalibrationResidual": "domain.calibration",
    "CancelledError": "domain.errors",
    "ClusterSizing": "domain.sizing",
    "CollectiveAlgorithm": "domain.collective",
    "CollectiveChoice": "domain.collective_estimate",
    "CollectiveEstimate": "domain.collective_estimate",
    "CollectiveKind": "domain.collective",
    "CollectivePoint": "domain.calibration",
    "CollectiveProtocol": "domain.collective",
    "CollectiveRequest": "domain.collective_estimate",
    "CollectiveResult": "domain.records",
    "CollectiveTable": "domain.calibration",
    "CollectiveTiming": "domain.calibration",
    "CollectiveTraffic": "domain.layout",
    "ComparisonRow": "domain.run_comparison",
    "Constraint": "domain.estimate",
    "DeadlineExceededError": "domain.errors",
    "DecodeEstimate": "domain.decode",
    "DecodeRequest": "domain.decode",
    "DecodeWorkload": "domain.workload",
    "Effect": "domain.estimate",
    "EmulatedLink": "domain.link_comparison",
    "Error": "domain.errors",
    "Estimate": "domain.estimate",
    "EstimatorClient": "client",
    "ExpertParallelism": "domain.layout",
    "FailedPreconditionError": "domain.errors",
    "Finding": "domain.run_comparison",
    "Hardware": "domain.catalog",
    "IngestClient": "client",
    "InternalError": "domain.errors",
    "InvalidArgumentError": "domain.errors",
    "LayoutChoice": "domain.layout_comparison",
    "LayoutComparison": "domain.layout_comparison",
    "LayoutEstimate": "domain.layout_comparison",
    "LayoutOption": "domain.layout_recommendation",
    "LayoutRecommendation": "domain.layout_recommendation",
    "Link": "domain.link",
    "LinkComparison": "domain.link_comparison",
    "LinkComparisonRequest": "domain.link_comparison",
    "LinkTransport": "domain.link",
    "LinkVerdict": "domain.planning",
    "MemoryFit": "domain.memory",
    "MemoryFitRequest": "domain.memory",
    "MemoryNeed": "domain.memory",
    "Metric": "domain.metric",
    "MetricAggregate": "domain.records",
    "Model": "domain.catalog",
    "NotFoundError": "domain.errors",
    "OutOfRangeError": "domain.errors",
    "ParallelLayout": "domain.layout",
    "PermissionDeniedError": "domain.errors",
    "PlanCheck": "domain.planning",
    "PlanItem": "domain.planning",
    "PlanStatus": "domain.planning",
    "PredictedValue": "domain.prediction",
    "Prediction": "domain.prediction",
    "PrefillEstimate": "domain.prefill",
    "PrefillRequest": "domain.prefill",
    "PrefillWorkload": "domain.workload",
    "ProtocolChange": "domain.calibration",
    "RankGroup": "domain.layout",
    "Record": "domain.records",
    "RequestRecord": "domain.records",
    "ResolvedLink": "domain.link",
    "ResourceExhaustedError": "domain.errors",
    "Run": "domain.run",
    "RunComparison": "domain.run_comparison",
    "RunDetails": "domain.run",
    "RunRowCounts": "domain.run",
    "RunState": "domain.run",
    "SampleColumns": "domain.samples",
    "SampleWriter": "client",
    "SeriesDescriptor": "domain.samples",
    "Setting": "domain.run",
    "Severity": "domain.run_comparison",
    "SizeOption": "domain.sizing",
    "SlowestLink": "domain.planning",
    "Spread": "domain.metric",
    "SweepAxis": "domain.sweep",
    "SweepColumns": "domain.sweep",
    "SweepRange": "domain.sweep",
    "SweepVariable": "domain.sweep",
    "Timeout": "client",
    "TlsFiles": "client",
    "TpProjection": "domain.tp_projection",
    "TpProjectionRequest": "domain.tp_projection",
    "TpSizeProjection": "domain.tp_projection",
    "TrainingSharding": "domain.training",
    "TrainingStep": "domain.records",
    "TrainingStepEstimate": "domain.training",
    "TrainingStepRequest": "domain.training",
    "TransferModel": "domain.prediction",
    "UNSET": "client",
    "UnauthenticatedError": "domain.errors",
    "UnavailableError": "domain.errors",
    "UnimplementedError": "domain.errors",
    "UnreadableEntry": "domain.paging",
    "UnreadableEntryWarning": "domain.paging",
    "Verdict": "domain.planning",
    "Violation": "domain.errors",
}


def __getattr__(name: str) -> object:
    """The public name `name`, loaded now."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names, loaded or not."""
    return sorted({*globals(), *__all__})
