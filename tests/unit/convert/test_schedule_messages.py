"""A schedule in messages: as many passes as fit, in their order, then the requests, then the summary."""

from collections.abc import Sequence
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from estimator_service.schedule_parts import LARGEST_SHARE_COUNT_OF_PART, parts_of
from linkbound.convert.schedule_parts import (
    LARGEST_REQUEST_COUNT_OF_MESSAGE,
    parts_that_fit,
    schedule_part_to_proto,
)
from linkbound.domain.engine import LARGEST_SCHEDULED_REQUEST_COUNT, SchedulerSettings
from linkbound.domain.errors import InvalidArgumentError
from linkbound.domain.estimate import Basis, Constraint, Effect, Estimate
from linkbound.domain.schedule import (
    PassShare,
    RequestTimes,
    ScheduledRequests,
    SchedulePass,
    SchedulePasses,
    ScheduleSummary,
    TtftEstimates,
)

SUMMARY = ScheduleSummary(
    requests=(), pass_count=0, scheduler=SchedulerSettings(max_num_batched_tokens=1), estimator_version="1"
)
LONGEST = Estimate(
    lower=1.1,
    expected=2.2,
    upper=3.3,
    lower_basis=Basis.FORMULA,
    expected_basis=Basis.CALIBRATED,
    upper_basis=Basis.FORMULA,
    binding_constraint=Constraint.NETWORK_BANDWIDTH,
    effects_left_out=tuple(effect for effect in Effect if effect.name not in {"UNSPECIFIED", "UNKNOWN"}),
)
TIMED = SchedulePass(scheduled=(), repeat=10**18, network_seconds=LONGEST, seconds=LONGEST)
REQUEST = RequestTimes(
    request=2**31 - 1,
    first_token_pass=2**63 - 1,
    last_token_pass=2**63 - 1,
    preemption_count=2**31 - 1,
    output_tokens=2**63 - 1,
    ttft=TtftEstimates(
        ttft_seconds=LONGEST,
        extra_ttft_seconds=LONGEST,
        calibrated_ttft_seconds=LONGEST,
        calibrated_extra_ttft_seconds=LONGEST,
    ),
    output_tokens_per_second=LONGEST,
)
BYTES_OF_CLIENTS = 4 * 2**20
"""What a client of gRPC takes where nobody sets it otherwise."""


def passes_of(share_count: int) -> SchedulePass:
    shares = tuple(PassShare(2**31 - 1, 2**63 - 1) for _ in range(share_count))
    return evolve(TIMED, scheduled=shares)


def taken_apart(passes: Sequence[SchedulePass], start_index: int = 0) -> list[SchedulePasses]:
    *stretches, last = parts_of([*passes, SUMMARY], start_index)
    assert last is SUMMARY
    assert all(isinstance(stretch, SchedulePasses) for stretch in stretches)
    return [stretch for stretch in stretches if isinstance(stretch, SchedulePasses)]


@given(st.lists(st.integers(0, 3).map(lambda power: 20**power), max_size=20), st.data())
def test_passes_stay_in_order_and_the_summary_comes_last(share_counts: list[int], data: st.DataObject) -> None:
    passes = [passes_of(count) for count in share_counts]
    start_index = data.draw(st.integers(0, len(passes)))
    index = start_index
    for stretch in taken_apart(passes, start_index):
        assert stretch.passes
        assert stretch.start_index == index
        assert list(stretch.passes) == passes[index : stretch.end_index]
        index = stretch.end_index
    assert index == len(passes)


def test_there_is_nothing_behind_the_last_pass() -> None:
    assert taken_apart([TIMED] * 3, 3) == []
    with pytest.raises(InvalidArgumentError, match="start_index: 4 is behind the last of the 3 entries"):
        taken_apart([TIMED] * 3, 4)


def test_no_message_of_passes_nears_what_clients_take() -> None:
    for one in (TIMED, passes_of(1), passes_of(10_000)):
        stretches = taken_apart([one] * (3 * LARGEST_SHARE_COUNT_OF_PART // (len(one.scheduled) + 1)))
        assert len(stretches) > 3
        assert max(schedule_part_to_proto(part).ByteSize() for part in stretches) < BYTES_OF_CLIENTS / 2


@pytest.mark.parametrize("size", [1, 1999, 2000, 2001, 4000, LARGEST_SCHEDULED_REQUEST_COUNT])
def test_no_message_of_requests_nears_what_clients_take(size: int) -> None:
    """A summary in one message would be several times as long."""
    summary = evolve(SUMMARY, requests=(REQUEST,) * size)
    *firsts, last = parts_that_fit([summary])
    requests: list[RequestTimes] = []
    for part in firsts:
        assert isinstance(part, ScheduledRequests)
        assert len(part.requests) == LARGEST_REQUEST_COUNT_OF_MESSAGE
        requests += part.requests
    assert isinstance(last, ScheduleSummary)
    assert evolve(last, requests=(*requests, *last.requests)) == summary
    sizes = [schedule_part_to_proto(part).ByteSize() for part in (*firsts, last)]
    assert max(sizes) < BYTES_OF_CLIENTS / 4
    assert sum(sizes) == pytest.approx(size * schedule_part_to_proto(last).ByteSize() / len(last.requests), rel=0.2)


def test_passes_are_taken_as_they_are_asked_for() -> None:
    """An answer of any length needs the memory of one part."""
    taken = 0

    def endless() -> Any:
        nonlocal taken
        while True:
            taken += 1
            yield passes_of(1000)

    next(parts_of(endless(), 0))
    assert taken < 2 * LARGEST_SHARE_COUNT_OF_PART // 1000
