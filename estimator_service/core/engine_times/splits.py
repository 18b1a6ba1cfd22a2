"""Requests that arrive together may still reach the engine apart: every way to part them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import evolve

from estimator_service.core.engine_times.timeline import Timeline
from linkbound.domain.engine import EngineRequest
from linkbound.domain.errors import InvalidArgumentError, Violation

LARGEST_SPLIT_COUNT = 64
"""Ways to part requests that one answer covers; each is a replay of its own."""
MOMENT_SECONDS = 1e-6
"""How much later a request that missed a pass arrived: any time within that pass gives the same passes."""


def split_arrivals(requests: tuple[EngineRequest, ...], together: Timeline) -> tuple[tuple[EngineRequest, ...], ...]:
    """`requests` once for each way in which the first of those that arrive together have a pass to themselves.

    (`docs/formulas.md`, Engine times) `together` is the replay of all that is not parted. Where no more fit into that
    pass anyway, it makes no difference. Raises InvalidArgumentError for more than 64 ways.
    """
    parted = tuple(_splits(requests, together))
    if len(parted) > LARGEST_SPLIT_COUNT:
        raise InvalidArgumentError(
            [
                Violation(
                    "arrivals_may_split",
                    f"requests that arrive together can be parted in {len(parted)} ways: at most {LARGEST_SPLIT_COUNT}"
                    " are covered",
                )
            ]
        )
    return parted


def _splits(requests: tuple[EngineRequest, ...], together: Timeline) -> Iterator[tuple[EngineRequest, ...]]:
    for start, end in _groups(requests):
        first_pass = together.passes[together.spans[start].arrival]
        fitting = len(set(first_pass.requests) & set(range(start, end)))
        for alone in range(1, fitting):
            yield tuple(
                _later(request, requests[start]) if start + alone <= index else request
                for index, request in enumerate(requests)
            )


def _groups(requests: Sequence[EngineRequest]) -> Iterator[tuple[int, int]]:
    """Where each run of requests with the same arrival starts and ends."""
    start = 0
    for index in range(1, len(requests) + 1):
        if index == len(requests) or _arrival(requests[index]) != _arrival(requests[start]):
            yield start, index
            start = index


def _arrival(request: EngineRequest) -> tuple[int, float]:
    return request.arrival_pass or 0, request.arrival_seconds or 0.0


def _later(request: EngineRequest, before: EngineRequest) -> EngineRequest:
    """No earlier than one pass, or a moment, after `before`."""
    if before.arrival_seconds is not None:
        seconds = before.arrival_seconds + MOMENT_SECONDS
        return evolve(request, arrival_seconds=max(request.arrival_seconds or 0.0, seconds))
    return evolve(request, arrival_pass=max(request.arrival_pass or 0, (before.arrival_pass or 0) + 1))
