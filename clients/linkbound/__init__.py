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
    from linkbound.domain.catalog import Hardware, Model
    from linkbound.domain.collective import CollectiveEstimate, CollectiveKind
    from linkbound.domain.decode import DecodeEstimate
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
    from linkbound.domain.link import Link, ResolvedLink
    from linkbound.domain.link_comparison import EmulatedLink, LinkComparison
    from linkbound.domain.metric import Metric, Spread
    from linkbound.domain.prediction import Baseline, PredictedValue, Prediction, TransferModel
    from linkbound.domain.prefill import PrefillEstimate
    from linkbound.domain.records import CollectiveResult, MetricAggregate, Record, RequestRecord, TrainingStep
    from linkbound.domain.run import Run, RunDetails, RunRowCounts, RunState, Setting
    from linkbound.domain.run_comparison import ComparisonRow, Finding, RunComparison, Severity
    from linkbound.domain.samples import SampleColumns, SeriesDescriptor
    from linkbound.domain.tp_projection import TpProjection, TpSizeProjection
    from linkbound.domain.training import TrainingStepEstimate
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
    "CancelledError",
    "CollectiveEstimate",
    "CollectiveKind",
    "CollectiveResult",
    "ComparisonRow",
    "Constraint",
    "DeadlineExceededError",
    "DecodeEstimate",
    "DecodeWorkload",
    "Effect",
    "EmulatedLink",
    "Error",
    "Estimate",
    "EstimatorClient",
    "FailedPreconditionError",
    "Finding",
    "Hardware",
    "IngestClient",
    "InternalError",
    "InvalidArgumentError",
    "Link",
    "LinkComparison",
    "Metric",
    "MetricAggregate",
    "Model",
    "NotFoundError",
    "OutOfRangeError",
    "PermissionDeniedError",
    "PredictedValue",
    "Prediction",
    "PrefillEstimate",
    "PrefillWorkload",
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
    "Spread",
    "Timeout",
    "TlsFiles",
    "TpProjection",
    "TpSizeProjection",
    "TrainingStep",
    "TrainingStepEstimate",
    "TransferModel",
    "UnauthenticatedError",
    "UnavailableError",
    "UnimplementedError",
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
    "CancelledError": "domain.errors",
    "CollectiveEstimate": "domain.collective",
    "CollectiveKind": "domain.collective",
    "CollectiveResult": "domain.records",
    "ComparisonRow": "domain.run_comparison",
    "Constraint": "domain.estimate",
    "DeadlineExceededError": "domain.errors",
    "DecodeEstimate": "domain.decode",
    "DecodeWorkload": "domain.workload",
    "Effect": "domain.estimate",
    "EmulatedLink": "domain.link_comparison",
    "Error": "domain.errors",
    "Estimate": "domain.estimate",
    "EstimatorClient": "client",
    "FailedPreconditionError": "domain.errors",
    "Finding": "domain.run_comparison",
    "Hardware": "domain.catalog",
    "IngestClient": "client",
    "InternalError": "domain.errors",
    "InvalidArgumentError": "domain.errors",
    "Link": "domain.link",
    "LinkComparison": "domain.link_comparison",
    "Metric": "domain.metric",
    "MetricAggregate": "domain.records",
    "Model": "domain.catalog",
    "NotFoundError": "domain.errors",
    "OutOfRangeError": "domain.errors",
    "PermissionDeniedError": "domain.errors",
    "PredictedValue": "domain.prediction",
    "Prediction": "domain.prediction",
    "PrefillEstimate": "domain.prefill",
    "PrefillWorkload": "domain.workload",
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
    "Spread": "domain.metric",
    "Timeout": "client",
    "TlsFiles": "client",
    "TpProjection": "domain.tp_projection",
    "TpSizeProjection": "domain.tp_projection",
    "TrainingStep": "domain.records",
    "TrainingStepEstimate": "domain.training",
    "TransferModel": "domain.prediction",
    "UNSET": "client",
    "UnauthenticatedError": "domain.errors",
    "UnavailableError": "domain.errors",
    "UnimplementedError": "domain.errors",
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
