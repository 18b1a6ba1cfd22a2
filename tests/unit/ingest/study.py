"""Figures that the two source studies print, and what their formulas make of them (`docs/formulas.md`).

First study: TTFT at 200 Gb/s and at 109 Gb/s, mean and range of three rounds; prefill bytes of one rank follow from
3,376,128 bytes per prompt token. Second study: full fine-tuning, 7,615,616,512 parameters with 2 bytes each.
"""

import attrs

from linkbound.domain.estimate import Estimate
from linkbound.domain.metric import Metric, Spread
from linkbound.domain.prediction import Baseline, PredictedValue, TransferModel
from linkbound.domain.records import MetricAggregate, TrainingStep

SENT_BYTES_PER_PROMPT_TOKEN = 3_376_128
OLD_BYTES_PER_SECOND = 200e9 / 8
NEW_BYTES_PER_SECOND = 109e9 / 8

GRADIENT_BYTES = 15_231_233_024
COMPUTE_STEP_SECONDS = 2.289


@attrs.frozen
class PrintedTtft:
    """One test: tokens of all its prompts together, and TTFT as (mean, smallest, largest) over both links."""

    subject: str
    metric: Metric
    extra_metric: Metric
    prompt_tokens: int
    at_200g: tuple[float, float, float]
    at_109g: tuple[float, float, float]

    @property
    def predicted(self) -> PredictedValue:
        """The bound on the extra time, 0 to bytes x (1/new - 1/old)."""
        sent_bytes = self.prompt_tokens * SENT_BYTES_PER_PROMPT_TOKEN
        old_seconds = sent_bytes / OLD_BYTES_PER_SECOND
        return PredictedValue(
            metric=self.extra_metric,
            subject=self.subject,
            estimate=Estimate(lower=0.0, upper=sent_bytes / NEW_BYTES_PER_SECOND - old_seconds),
            transfer=TransferModel(
                fixed_seconds=-old_seconds,
                sent_bytes_per_rank=sent_bytes,
                assumed_bytes_per_second=NEW_BYTES_PER_SECOND,
                assumed_source="given rate",
            ),
            baseline=Baseline(value=_three_rounds(self.at_200g)),
        )

    @property
    def measured(self) -> MetricAggregate:
        """The measurement over the slower link."""
        return MetricAggregate(metric=self.metric, subject=self.subject, value=_three_rounds(self.at_109g))


def _three_rounds(figures: tuple[float, float, float]) -> Spread:
    mean, minimum, maximum = figures
    return Spread(mean=mean, minimum=minimum, maximum=maximum, round_count=3)


_LONE = (Metric.TTFT_SECONDS, Metric.EXTRA_TTFT_SECONDS)
_LAST = (Metric.LAST_TTFT_SECONDS, Metric.EXTRA_LAST_TTFT_SECONDS)

PRINTED_TTFTS = (
    PrintedTtft("P1", *_LONE, 1024, (0.96, 0.91, 0.99), (0.97, 0.94, 1.00)),
    PrintedTtft("P2", *_LONE, 8192, (6.36, 6.21, 6.56), (7.24, 7.14, 7.45)),
    PrintedTtft("P3", *_LONE, 32768, (27.02, 26.96, 27.12), (30.57, 30.40, 30.87)),
    PrintedTtft("P4", *_LAST, 4 * 8192, (23.00, 22.61, 23.19), (26.44, 26.20, 26.59)),
    PrintedTtft("P5", *_LONE, 65536, (55.47, 55.39, 55.55), (62.47, 62.34, 62.56)),
    PrintedTtft("P6", *_LAST, 4 * 16384, (45.82, 45.36, 46.52), (54.26, 54.08, 54.60)),
)


@attrs.frozen
class PrintedStep:
    """One row of full fine-tuning, with the bus bandwidth that nccl-tests shows on the same link."""

    node_count: int
    link: str
    bus_bandwidth_bytes_per_second: float
    step_seconds: float

    @property
    def subject(self) -> str:
        """The row's name."""
        return f"full {self.node_count} {self.link}"

    @property
    def sent_bytes_per_rank(self) -> int:
        """Ring all-reduce: 2 (N - 1) / N times the gradients."""
        return 2 * (self.node_count - 1) * GRADIENT_BYTES // self.node_count

    @property
    def predicted(self) -> PredictedValue:
        """Whole overlap to none."""
        sync_seconds = self.sent_bytes_per_rank / self.bus_bandwidth_bytes_per_second
        return PredictedValue(
            metric=Metric.TRAINING_STEP_SECONDS,
            subject=self.subject,
            estimate=Estimate(lower=max(COMPUTE_STEP_SECONDS, sync_seconds), upper=COMPUTE_STEP_SECONDS + sync_seconds),
            transfer=TransferModel(
                fixed_seconds=COMPUTE_STEP_SECONDS,
                sent_bytes_per_rank=self.sent_bytes_per_rank,
                assumed_bytes_per_second=self.bus_bandwidth_bytes_per_second,
                assumed_source="nccl-tests busbw",
            ),
        )

    @property
    def measured(self) -> TrainingStep:
        """The mean step that the study prints."""
        return TrainingStep(subject=self.subject, node_count=self.node_count, step_seconds=self.step_seconds)


PRINTED_STEPS = (
    PrintedStep(2, "RJ45", 1.18e9, 14.818),
    PrintedStep(2, "QSFP", 22.14e9, 11.087),
    PrintedStep(4, "RJ45", 1.18e9, 21.331),
    PrintedStep(4, "QSFP", 22.07e9, 14.501),
)
