"""A run's frozen prediction beside what was measured."""

from __future__ import annotations

from enum import Enum

from attrs import frozen

from linkbound.domain.estimate import Estimate
from linkbound.domain.metric import Metric
from linkbound.domain.prediction import Baseline


class Severity(Enum):
    """How bad a finding is."""

    UNSPECIFIED = "SEVERITY_UNSPECIFIED"
    INFO = "SEVERITY_INFO"
    WARNING = "SEVERITY_WARNING"
    ERROR = "SEVERITY_ERROR"
    UNKNOWN = "SEVERITY_UNKNOWN"


@frozen(kw_only=True)
class ComparisonRow:
    """One metric of one subject. None: not predicted, not measured, or not stated; see the proto of the same name."""

    metric: Metric
    subject: str
    predicted: Estimate | None = None
    measured: float | None = None
    measured_min: float | None = None
    measured_max: float | None = None
    round_count: int | None = None
    inside_interval: bool | None = None
    implied_bytes_per_second: float | None = None
    implied_bandwidth_ratio: float | None = None
    baseline: Baseline | None = None
    measured_fraction: float | None = None
    missing_inputs: tuple[str, ...] = ()
    assumed_bytes_per_second: float | None = None
    assumed_source: str = ""


@frozen(kw_only=True)
class Finding:
    """Something that a person should know; `subject` is empty for the whole run."""

    code: str
    severity: Severity
    subject: str
    evidence: str
    advice: str


@frozen(kw_only=True)
class RunComparison:
    """Rows in the order of the prediction, then what is measured only; findings worst first."""

    run_id: str
    rows: tuple[ComparisonRow, ...]
    findings: tuple[Finding, ...] = ()
