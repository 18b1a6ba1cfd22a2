"""Quantities that are predicted and measured, and their spread over rounds."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from attrs import field, frozen

from linkbound.domain.errors import Violation
from linkbound.domain.rules import CrossChecked, optional, real, whole

LARGEST_MEASURED_VALUE = 1e18
"""Above any measured value in any unit used here."""


class Metric(Enum):
    """A quantity that is predicted and measured; the name ends in its unit."""

    UNSPECIFIED = "METRIC_UNSPECIFIED"
    TTFT_SECONDS = "METRIC_TTFT_SECONDS"
    LAST_TTFT_SECONDS = "METRIC_LAST_TTFT_SECONDS"
    MEAN_TTFT_SECONDS = "METRIC_MEAN_TTFT_SECONDS"
    EXTRA_TTFT_SECONDS = "METRIC_EXTRA_TTFT_SECONDS"
    EXTRA_LAST_TTFT_SECONDS = "METRIC_EXTRA_LAST_TTFT_SECONDS"
    EXTRA_MEAN_TTFT_SECONDS = "METRIC_EXTRA_MEAN_TTFT_SECONDS"
    DECODE_TOKENS_PER_SECOND = "METRIC_DECODE_TOKENS_PER_SECOND"
    BUS_BANDWIDTH_BYTES_PER_SECOND = "METRIC_BUS_BANDWIDTH_BYTES_PER_SECOND"
    TRAINING_STEP_SECONDS = "METRIC_TRAINING_STEP_SECONDS"
    TRAINING_TOKENS_PER_SECOND = "METRIC_TRAINING_TOKENS_PER_SECOND"
    TRAINING_SAMPLES_PER_SECOND = "METRIC_TRAINING_SAMPLES_PER_SECOND"
    TRAINING_ELAPSED_SECONDS = "METRIC_TRAINING_ELAPSED_SECONDS"
    UNKNOWN = "METRIC_UNKNOWN"


MEASURED_METRIC_OF_DIFFERENCE = {
    Metric.EXTRA_TTFT_SECONDS: Metric.TTFT_SECONDS,
    Metric.EXTRA_LAST_TTFT_SECONDS: Metric.LAST_TTFT_SECONDS,
    Metric.EXTRA_MEAN_TTFT_SECONDS: Metric.MEAN_TTFT_SECONDS,
}
"""The metrics that are counted from a baseline, each with the measured metric that it is the difference of."""


@frozen(kw_only=True)
class Spread(CrossChecked):
    """A measured value over several rounds, in the unit of the metric beside it. None: the source does not say."""

    mean: float = field(metadata=real(LARGEST_MEASURED_VALUE))
    minimum: float | None = field(default=None, metadata=optional(real(LARGEST_MEASURED_VALUE)))
    maximum: float | None = field(default=None, metadata=optional(real(LARGEST_MEASURED_VALUE)))
    round_count: int | None = field(default=None, metadata=optional(whole(1, 10**9)))

    def cross_violations(self) -> Iterable[Violation]:
        """Hold minimum <= mean <= maximum."""
        if self.minimum is not None and self.minimum > self.mean:
            yield Violation("minimum", f"{self.minimum} is above the mean, {self.mean}")
        if self.maximum is not None and self.maximum < self.mean:
            yield Violation("maximum", f"{self.maximum} is below the mean, {self.mean}")
