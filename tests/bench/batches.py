"""Many questions in one call against one call each."""

from __future__ import annotations

from linkbound import EstimatorClient
from tests.bench.measure import Result, alternating, median_ratio, seconds_of
from tests.bench.processes import bench_server
from tests.bench.questions import BATCH, MIXED

SINGLE_COUNT = 200


def batch_against_single_calls() -> Result:
    """Questions a second of mixed kinds, over a batch of one question at a time."""
    with bench_server() as target, EstimatorClient(target) as client:

        def singles() -> None:
            for index in range(SINGLE_COUNT):
                client.batch_estimate([MIXED[index % len(MIXED)]])

        client.batch_estimate(BATCH)
        batch, single = alternating(
            lambda: seconds_of(lambda: client.batch_estimate(BATCH)) / len(BATCH),
            lambda: seconds_of(singles) / SINGLE_COUNT,
        )
    return Result(
        name="batch of 1000 mixed questions",
        value=f"{1 / min(batch):,.0f} questions/s",
        ratio=median_ratio(single, batch),
        ratio_of=f"one question a call, {1 / min(single):,.0f} questions/s",
    )
