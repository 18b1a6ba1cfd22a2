"""One question at a time: `EstimatePrefill` against the empty handler, call by call in turn.

No two questions are alike, so that nothing is won by keeping answers; all of them and all answers have the same size.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import grpc

from estimator_service.transport.names import ESTIMATOR_SERVICE
from tests.bench.measure import Result
from tests.bench.processes import bench_server
from tests.bench.questions import PREFILL_BYTES, unlike_prefills
from tests.bench.server import EMPTY_SERVICE

CALL_COUNT = 4000
WARM_UP_COUNT = 500
MICROSECONDS = 1e6


def unary_overhead() -> Result:
    """Median time of an estimate over that of the empty handler; the client neither writes nor reads messages."""
    questions = tuple(unlike_prefills(WARM_UP_COUNT + CALL_COUNT))
    with bench_server() as target, grpc.insecure_channel(target, options=[("grpc.enable_http_proxy", 0)]) as channel:
        paths = (f"/{ESTIMATOR_SERVICE}/EstimatePrefill", f"/{EMPTY_SERVICE}/Call")
        methods: list[Any] = [channel.unary_unary(path) for path in paths]
        answer = methods[1](PREFILL_BYTES)
        if methods[0](PREFILL_BYTES) != answer:
            raise RuntimeError("the empty handler answers something else")
        seconds: list[list[float]] = [[] for _ in methods]
        for index, question in enumerate(questions):
            for method, noted in zip(methods, seconds, strict=True):
                started = time.perf_counter()
                given = method(question)
                ended = time.perf_counter()
                if len(question) != len(PREFILL_BYTES) or len(given) != len(answer):
                    raise RuntimeError("the messages differ in size")
                if index >= WARM_UP_COUNT:
                    noted.append(ended - started)
    estimate, empty = (statistics.median(noted) * MICROSECONDS for noted in seconds)
    return Result(
        name="one estimate, p50",
        value=f"{estimate:.0f} us",
        ratio=estimate / empty,
        ratio_of=f"the empty handler, {empty:.0f} us",
        goal="at most 1.3",
    )
