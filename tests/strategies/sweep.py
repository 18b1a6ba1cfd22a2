"""Sweeps and what they answer, questions of a batch among them."""

from __future__ import annotations

from array import array
from typing import Any

from hypothesis import strategies as st

from linkbound.domain.sweep import (
    LARGEST_POINT_COUNT,
    LARGEST_VALUES,
    SweepAxis,
    SweepColumns,
    SweepRange,
    SweepRequest,
    SweepVariable,
)
from linkbound.domain.workload import PrefillWorkload
from tests.strategies.estimator import links
from tests.strategies.values import IDS, INT64, Fill, Strategy, maybe, texts, tuples_of

VARIABLES = tuple(LARGEST_VALUES)
SMALL_LIMITS = {SweepVariable.PROMPT_TOKENS: 10**6, SweepVariable.REQUEST_COUNT: 10**5}
"""Together within the prompt tokens that a request may have in all."""


@st.composite
def sweep_ranges(draw: st.DrawFn, fill: Fill = Fill.ANY, largest: int = 10**15, most: int = 1000) -> SweepRange:
    first, last = draw(st.integers(1, largest)), draw(st.integers(1, largest))
    count = draw(st.integers(2 if fill is Fill.FULL else 1, most))
    step = (last - first) // max(count - 1, 1) or 1
    # A step away from both ends keeps every value within them.
    count = min(count, 1 + (largest - first) // step if step > 0 else 1 + (first - 1) // -step)
    return SweepRange(first=first, step=step, value_count=count)


@st.composite
def sweep_axes(draw: st.DrawFn, variable: SweepVariable | None = None, most: int = 1000) -> SweepAxis:
    chosen = variable or draw(st.sampled_from(VARIABLES))
    largest = SMALL_LIMITS.get(chosen, LARGEST_VALUES[chosen])
    if draw(st.booleans()):
        return SweepAxis(variable=chosen, range=draw(sweep_ranges(largest=largest, most=most)))
    values = st.lists(st.integers(1, largest), min_size=1, max_size=min(most, 10))
    return SweepAxis(variable=chosen, values=tuple(draw(values)))


def sweep_requests(fill: Fill) -> Strategy:
    @st.composite
    def build(draw: st.DrawFn) -> SweepRequest:
        variables = draw(st.lists(st.sampled_from(VARIABLES), min_size=1, max_size=4, unique=True))
        axes = tuple(draw(sweep_axes(variable)) for variable in variables)
        needs_second_link = fill is Fill.FULL or SweepVariable.TO_LINK_BITS_PER_SECOND in variables
        request = SweepRequest(
            workload=draw(sweep_workloads(fill)),
            link=draw(links(fill)),
            to_link=draw(links(fill) if needs_second_link else maybe(fill, links(fill))),
            axes=axes,
            points_per_response=draw(st.integers(1, 65_536)),
        )
        assert request.total_point_count <= LARGEST_POINT_COUNT
        first = 1 if fill is Fill.FULL and request.total_point_count > 1 else 0
        return with_start(request, draw(st.integers(first, request.total_point_count - 1)))

    return build().filter(lambda request: request.start_index > 0) if fill is Fill.FULL else build()


def with_start(request: SweepRequest, start_index: int) -> SweepRequest:
    return SweepRequest(
        workload=request.workload,
        link=request.link,
        to_link=request.to_link,
        axes=request.axes,
        start_index=start_index,
        points_per_response=request.points_per_response,
    )


def sweep_workloads(fill: Fill, models: Strategy = IDS, sizes: Strategy | None = None) -> Strategy:
    return st.builds(
        PrefillWorkload,
        model=models,
        tensor_parallel_size=st.integers(1, 4096) if sizes is None else sizes,
        prompt_tokens=st.integers(1, 10**6),
        request_count=st.integers(1, 10**5),
        max_num_batched_tokens=maybe(fill, st.integers(1, 10**9)),
    )


def sweep_columns(fill: Fill) -> Strategy:
    count = st.integers(1, 50)
    finite = st.floats(allow_nan=False, allow_infinity=False)

    def column(typecode: str, entries: Strategy, length: int) -> Strategy:
        return st.lists(entries, min_size=length, max_size=length).map(lambda values: array(typecode, values))

    def of_length(length: int) -> Strategy:
        with_changes: dict[str, Any] = {
            name: column("d", finite, length) for name in ("extra_ttft_lower_seconds", "extra_ttft_upper_seconds")
        }
        without: dict[str, Any] = dict.fromkeys(with_changes, st.just(array("d")))
        common: dict[str, Any] = {
            "start_index": st.integers(1, LARGEST_POINT_COUNT),
            "total_point_count": st.integers(1, LARGEST_POINT_COUNT),
            "sent_bytes_per_rank": column("q", st.integers(*INT64), length),
            "network_seconds": column("d", finite, length),
            "infeasible_indices": column("q", st.integers(*INT64), length),
            "estimator_version": texts(fill),
            "assumptions": tuples_of(fill, texts(fill)),
        }
        full = st.builds(SweepColumns, **common, **with_changes)
        return full if fill is Fill.FULL else full | st.builds(SweepColumns, **common, **without)

    return count.flatmap(of_length)
