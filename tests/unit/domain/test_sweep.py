"""Sweeps as they are asked for: what they may hold, how points are counted."""

from __future__ import annotations

from typing import Any

import pytest

from linkbound.domain.errors import InvalidArgumentError
from linkbound.domain.layout import ExpertParallelism
from linkbound.domain.link import Link
from linkbound.domain.sweep import SweepAxis, SweepRange, SweepRequest, SweepVariable
from linkbound.domain.workload import PrefillWorkload

TOKENS = SweepAxis(variable=SweepVariable.PROMPT_TOKENS, range=SweepRange(first=1000, step=1000, value_count=3))
SIZES = SweepAxis(variable=SweepVariable.TENSOR_PARALLEL_SIZE, values=(8, 2))
LINK = Link(line_rate_bits_per_second=200 * 10**9)


def request(*axes: SweepAxis, **fields: Any) -> SweepRequest:
    workload = PrefillWorkload(model="glm-5.3", tensor_parallel_size=8, prompt_tokens=1)
    return SweepRequest(**{"workload": workload, "link": LINK, "axes": axes or (TOKENS,), **fields})


def broken_fields(*axes: SweepAxis, **fields: Any) -> list[str]:
    with pytest.raises(InvalidArgumentError) as caught:
        request(*axes, **fields)
    return [violation.field for violation in caught.value.field_violations]


def test_the_last_axis_varies_fastest() -> None:
    sweep = request(SIZES, TOKENS)
    assert sweep.total_point_count == 6
    assert [sweep.values_at(index) for index in range(6)] == [
        (8, 1000),
        (8, 2000),
        (8, 3000),
        (2, 1000),
        (2, 2000),
        (2, 3000),
    ]


def test_a_range_may_fall_and_is_never_written_out() -> None:
    falling = SweepAxis(
        variable=SweepVariable.LINK_BITS_PER_SECOND, range=SweepRange(first=10**10, step=-10, value_count=10**9)
    )
    assert (falling.smallest, falling.largest) == (10, 10**10)
    assert request(falling).values_at(10**9 - 1) == (10,)


def test_a_million_million_points_are_the_most() -> None:
    tokens = SweepAxis(variable=SweepVariable.PROMPT_TOKENS, range=SweepRange(first=1, step=1, value_count=10**6))
    rates = SweepAxis(variable=SweepVariable.LINK_BITS_PER_SECOND, range=SweepRange(first=1, step=1, value_count=10**6))
    assert request(tokens, rates, start_index=10**12 - 1).values_at(10**12 - 1) == (10**6, 10**6)
    assert broken_fields(SIZES, tokens, rates) == ["axes"]


@pytest.mark.parametrize(
    ("axis", "field"),
    [
        (SweepAxis(variable=SweepVariable.UNSPECIFIED, values=(1,)), "variable"),
        (SweepAxis(variable=SweepVariable.UNKNOWN, values=(1,)), "variable"),
        (SweepAxis(variable=SweepVariable.PROMPT_TOKENS), "values"),
        (SweepAxis(variable=SweepVariable.PROMPT_TOKENS, values=(1,), range=TOKENS.range), "values"),
        (SweepAxis(variable=SweepVariable.PROMPT_TOKENS, values=(0,)), "values[0]"),
        (SweepAxis(variable=SweepVariable.PROMPT_TOKENS, values=(1, 10**9 + 1)), "values[1]"),
        (SweepAxis(variable=SweepVariable.REQUEST_COUNT, values=(100_001,)), "values[0]"),
        (SweepAxis(variable=SweepVariable.TENSOR_PARALLEL_SIZE, values=(4097,)), "values[0]"),
        (SweepAxis(variable=SweepVariable.LINK_BITS_PER_SECOND, values=(10**15 + 1,)), "values[0]"),
        (SweepAxis(variable=SweepVariable.PROMPT_TOKENS, values=tuple([1] * 10_001)), "values"),
        (
            SweepAxis(variable=SweepVariable.PROMPT_TOKENS, range=SweepRange(first=1, step=10**6, value_count=10**6)),
            "range",
        ),
        (
            SweepAxis(variable=SweepVariable.PROMPT_TOKENS, range=SweepRange(first=1, step=-1, value_count=2)),
            "range",
        ),
        (SweepAxis(variable=SweepVariable.PROMPT_TOKENS, range=SweepRange(first=1, value_count=2)), "range.step"),
        (SweepAxis(variable=SweepVariable.PROMPT_TOKENS, range=SweepRange(first=0, value_count=1)), "range.first"),
        (
            SweepAxis(variable=SweepVariable.PROMPT_TOKENS, range=SweepRange(first=1, step=1, value_count=10**9 + 1)),
            "range.value_count",
        ),
    ],
)
def test_an_axis_that_cannot_be_varied_is_named(axis: SweepAxis, field: str) -> None:
    assert broken_fields(axis) == [f"axes[0].{field}"]


def test_what_does_not_go_together_is_named() -> None:
    assert broken_fields(axes=()) == ["axes"]
    assert broken_fields(TOKENS, SIZES, TOKENS) == ["axes[2].variable"]
    to_link = SweepAxis(variable=SweepVariable.TO_LINK_BITS_PER_SECOND, values=(1,))
    assert broken_fields(to_link) == ["to_link"]
    assert broken_fields(start_index=3) == ["start_index"]
    assert broken_fields(start_index=-1, points_per_response=65_537) == ["start_index", "points_per_response"]
    requests = SweepAxis(variable=SweepVariable.REQUEST_COUNT, values=(1, 100_000))
    tokens = SweepAxis(variable=SweepVariable.PROMPT_TOKENS, values=(10**6 + 1,))
    assert broken_fields(requests, tokens) == ["axes"]


@pytest.mark.parametrize(
    "cut",
    [
        {"pipeline_parallel_size": 2},
        {"ranks_per_node": 2},
        {"data_parallel_size": 2, "expert_parallelism": ExpertParallelism.ALL_GATHER},
        {"sequence_parallel": True},
    ],
)
def test_only_one_tensor_parallel_group_is_swept(cut: dict[str, Any]) -> None:
    workload = PrefillWorkload(model="glm-5.3", tensor_parallel_size=8, prompt_tokens=1, **cut)
    assert broken_fields(workload=workload) == ["workload"]


def test_every_violation_comes_at_once() -> None:
    workload = PrefillWorkload(model="glm-5.3", tensor_parallel_size=0, prompt_tokens=1)
    bad_axis = SweepAxis(variable=SweepVariable.PROMPT_TOKENS, values=(0, -1))
    assert broken_fields(bad_axis, workload=workload, link=Link()) == [
        "workload.tensor_parallel_size",
        "link.line_rate_bits_per_second",
        "axes[0].values[0]",
        "axes[0].values[1]",
    ]
