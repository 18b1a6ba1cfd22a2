"""Sweeps: in this process on one core against NumPy alone, and through gRPC."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from estimator_service.service import default_estimator
from linkbound import EstimatorClient
from linkbound.domain.sweep import DEFAULT_POINTS_PER_RESPONSE, SweepColumns
from tests.bench.measure import Result, alternating, median_ratio, seconds_of
from tests.bench.processes import bench_server
from tests.bench.questions import sweep_of

LOCAL_POINT_COUNT = 4_000_000
REMOTE_POINT_COUNT = 4_000_000
MILLION = 1e6


def _drained(stretches: Iterable[SweepColumns], point_count: int) -> None:
    if sum(columns.point_count for columns in stretches) != point_count:
        raise RuntimeError("points are missing")


def _formula_alone() -> None:
    """The arithmetic of the same points with values that lie ready: what no implementation can go below."""
    tokens = np.arange(1, DEFAULT_POINTS_PER_RESPONSE + 1, dtype=np.float64)
    sent_per_token, rate, to_rate = 3_376_128.0, 2e11, np.full(DEFAULT_POINTS_PER_RESPONSE, 1e11)
    for _ in range(LOCAL_POINT_COUNT // DEFAULT_POINTS_PER_RESPONSE):
        sent = tokens * sent_per_token
        np.rint(sent).astype(np.int64)
        sent * 8 / rate
        change = sent * 8 * (1 / to_rate - 1 / rate)
        np.minimum(change, 0.0)
        np.maximum(change, 0.0)


def sweep_in_process() -> Result:
    """Points a second on one core, over what bare NumPy makes of the formula."""
    estimator, request = default_estimator(), sweep_of(LOCAL_POINT_COUNT)
    ours, floor = alternating(
        lambda: seconds_of(lambda: _drained(estimator.stream_sweep(request), LOCAL_POINT_COUNT)),
        lambda: seconds_of(_formula_alone),
    )
    return Result(
        name="sweep in process, one core",
        value=f"{LOCAL_POINT_COUNT / min(ours) / MILLION:.1f} million points/s",
        ratio=median_ratio(floor, ours),
        ratio_of=f"bare NumPy, {LOCAL_POINT_COUNT / min(floor) / MILLION:.0f} million points/s",
        goal="at least 1 million points/s",
    )


def sweep_through_grpc() -> Result:
    """Points a second through one stream, server and client in a process each, over the same in process."""
    estimator, request = default_estimator(), sweep_of(REMOTE_POINT_COUNT)
    with bench_server() as target, EstimatorClient(target) as client:

        def remote() -> None:
            stretches = client.stream_sweep(
                workload=request.workload, link=request.link, to_link=request.to_link, axes=request.axes
            )
            _drained(stretches, REMOTE_POINT_COUNT)

        remote()
        ours, local = alternating(
            lambda: seconds_of(remote),
            lambda: seconds_of(lambda: _drained(estimator.stream_sweep(request), REMOTE_POINT_COUNT)),
        )
    return Result(
        name="sweep through gRPC",
        value=f"{REMOTE_POINT_COUNT / min(ours) / MILLION:.1f} million points/s",
        ratio=median_ratio(local, ours),
        ratio_of="the same in process",
        goal="at least 0.3 million points/s",
    )
