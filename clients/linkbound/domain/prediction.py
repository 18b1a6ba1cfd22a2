"""What was predicted for a run, frozen when the run is created."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from attrs import field, frozen

from linkbound.domain.errors import Violation
from linkbound.domain.estimate import LARGEST_QUANTITY, Estimate
from linkbound.domain.metric import MEASURED_METRIC_OF_DIFFERENCE, Metric, Spread
from linkbound.domain.names import OPTIONAL_RUN_ID
from linkbound.domain.rules import (
    CrossChecked,
    finite,
    instance,
    member,
    optional,
    sequence,
    text,
    whole,
)

SUBJECT = text(128, minimum_length=1)
"""A test or setup within a run; predictions and measurements meet on it."""

LARGEST_VALUE_COUNT = 10_000

_NOTES = sequence(0, 100, text(1024, minimum_length=1))
METRIC = member(Metric, Metric.UNSPECIFIED, Metric.UNKNOWN)


@frozen(kw_only=True)
class TransferModel:
    """seconds = fixed_seconds + sent_bytes_per_rank / bandwidth (`docs/formulas.md`, implied bandwidth).

    Both are 0 where the metric is itself a bandwidth. `assumed_bytes_per_second` is the effective rate of one direction
    of one rank that the prediction used.
    """

    fixed_seconds: float = field(metadata=finite(-1e12, 1e12))
    sent_bytes_per_rank: int = field(metadata=whole(0, 2**63 - 1))
    assumed_bytes_per_second: float = field(metadata=finite(0, LARGEST_QUANTITY))
    assumed_source: str = field(default="", metadata=text(256))


@frozen(kw_only=True)
class Baseline:
    """A measured value that a difference is counted from; `run` is empty where it came from elsewhere."""

    value: Spread = field(metadata=instance(Spread))
    run: str = field(default="", metadata=OPTIONAL_RUN_ID)


@frozen(kw_only=True)
class PredictedValue(CrossChecked):
    """The prediction of one metric of one subject. No estimate: `missing_inputs` says what it would need."""

    metric: Metric = field(metadata=METRIC)
    subject: str = field(metadata=SUBJECT)
    estimate: Estimate | None = field(default=None, metadata=optional(instance(Estimate)))
    transfer: TransferModel | None = field(default=None, metadata=optional(instance(TransferModel)))
    baseline: Baseline | None = field(default=None, metadata=optional(instance(Baseline)))
    missing_inputs: tuple[str, ...] = field(default=(), metadata=sequence(0, 100, text(256, minimum_length=1)))
    assumptions: tuple[str, ...] = field(default=(), metadata=_NOTES)

    def cross_violations(self) -> Iterable[Violation]:
        """A difference has a baseline, nothing else has; what is not predicted says why."""
        is_difference = self.metric in MEASURED_METRIC_OF_DIFFERENCE
        if is_difference and self.baseline is None:
            yield Violation("baseline", f"is missing; {self.metric.name} is counted from it")
        if not is_difference and self.baseline is not None:
            yield Violation("baseline", f"{self.metric.name} is not counted from one")
        if self.estimate is None and not self.missing_inputs:
            yield Violation("missing_inputs", "is empty, though there is no estimate")


@frozen(kw_only=True)
class Prediction(CrossChecked):
    """All predicted values of a run. `store_time` is set by the ingest service."""

    estimator_version: str = field(metadata=text(64, minimum_length=1))
    values: tuple[PredictedValue, ...] = field(metadata=sequence(1, LARGEST_VALUE_COUNT, instance(PredictedValue)))
    store_time: datetime | None = None

    def cross_violations(self) -> Iterable[Violation]:
        """Each pair of metric and subject occurs once."""
        seen: set[tuple[Metric, str]] = set()
        for index, value in enumerate(self.values):
            key = (value.metric, value.subject)
            if key in seen:
                yield Violation(
                    f"values[{index}].subject",
                    f"{value.metric.name} of {value.subject!r} is predicted twice",
                )
            seen.add(key)
