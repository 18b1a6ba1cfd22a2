"""A sweep answers at every point what the question about that point alone is answered, to the last bit."""

from __future__ import annotations

from typing import Any

import attrs
from hypothesis import given
from hypothesis import strategies as st

from estimator_service.core.feasibility import infeasible_reasons
from linkbound.domain.link import Link
from linkbound.domain.prefill import PrefillEstimate, PrefillRequest
from linkbound.domain.sweep import SweepColumns, SweepRequest, SweepVariable
from tests.property.estimator_strategies import ESTIMATOR, LINKS, MODEL_IDS, MODELS, SIZES
from tests.strategies.sweep import VARIABLES, sweep_axes, sweep_workloads, with_start
from tests.strategies.values import Fill

FIELDS = {SweepVariable.PROMPT_TOKENS: "prompt_tokens", SweepVariable.REQUEST_COUNT: "request_count"}
RATES = {SweepVariable.LINK_BITS_PER_SECOND: "link", SweepVariable.TO_LINK_BITS_PER_SECOND: "to_link"}
BY_ID = {model.model_id: model for model in MODELS}


@st.composite
def requests(draw: st.DrawFn) -> SweepRequest:
    variables = draw(st.lists(st.sampled_from(VARIABLES), min_size=1, max_size=4, unique=True))
    needs_second_link = SweepVariable.TO_LINK_BITS_PER_SECOND in variables
    request = SweepRequest(
        workload=draw(sweep_workloads(Fill.ANY, MODEL_IDS, SIZES)),
        link=draw(LINKS),
        to_link=draw(LINKS if needs_second_link else st.none() | LINKS),
        axes=tuple(draw(sweep_axes(variable, most=4)) for variable in variables),
        points_per_response=draw(st.integers(1, 50)),
    )
    return with_start(request, draw(st.integers(0, request.total_point_count - 1)))


def question_at(request: SweepRequest, index: int) -> tuple[PrefillRequest, int]:
    """The question about one point, and the tensor-parallel size that it is about."""
    workload, links = request.workload, {"link": request.link, "to_link": request.to_link}
    size = workload.tensor_parallel_size
    for axis, value in zip(request.axes, request.values_at(index), strict=True):
        if axis.variable in RATES:
            links[RATES[axis.variable]] = Link(line_rate_bits_per_second=value)
        elif axis.variable in FIELDS:
            varied: dict[str, Any] = {FIELDS[axis.variable]: value}
            workload = attrs.evolve(workload, **varied)
        else:
            size = value
    link = links["link"]
    assert link is not None
    return PrefillRequest(workload=workload, link=link, to_link=links["to_link"]), size


def point_of(columns: SweepColumns, index: int) -> tuple[Any, ...]:
    position = index - columns.start_index
    extra = (
        (columns.extra_ttft_lower_seconds[position], columns.extra_ttft_upper_seconds[position])
        if columns.extra_ttft_lower_seconds
        else (None, None)
    )
    return (columns.sent_bytes_per_rank[position], columns.network_seconds[position], *extra)


def answered(estimate: PrefillEstimate) -> tuple[Any, ...]:
    extra = estimate.extra_ttft_seconds
    ends = (None, None) if extra is None else (extra.lower, extra.upper)
    assert estimate.network_seconds.lower == estimate.network_seconds.upper
    return (estimate.sent_bytes_per_rank, estimate.network_seconds.lower, *ends)


@given(requests())
def test_a_point_of_a_sweep_is_the_answer_to_the_question_about_it(request: SweepRequest) -> None:
    model = BY_ID[request.workload.model]
    next_index = request.start_index
    for columns in ESTIMATOR.stream_sweep(request):
        assert columns.start_index == next_index
        assert 1 <= columns.point_count <= request.points_per_response
        next_index = columns.end_index
        infeasible = set(columns.infeasible_indices)
        for index in range(columns.start_index, columns.end_index):
            question, size = question_at(request, index)
            assert (index in infeasible) == bool(infeasible_reasons(model, size))
            if index not in infeasible:
                sized = attrs.evolve(question.workload, tensor_parallel_size=size)
                estimate = ESTIMATOR.estimate_prefill(attrs.evolve(question, workload=sized))
                assert point_of(columns, index) == answered(estimate)
    assert next_index == request.total_point_count


@given(requests(), st.data())
def test_a_sweep_that_is_resumed_goes_on_where_it_was(request: SweepRequest, data: st.DataObject) -> None:
    start = data.draw(st.integers(request.start_index, request.total_point_count - 1))
    whole = {i: point_of(c, i) for c in ESTIMATOR.stream_sweep(request) for i in range(c.start_index, c.end_index)}
    rest = ESTIMATOR.stream_sweep(with_start(request, start))
    assert {i: point_of(c, i) for c in rest for i in range(c.start_index, c.end_index)} == {
        index: point for index, point in whole.items() if index >= start
    }
