"""A schedule in messages: as many passes as fit, in their order, then the summary."""

from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from linkbound.convert.schedule import LARGEST_SHARE_COUNT_OF_MESSAGE, bounded_parts, schedule_part_to_proto
from linkbound.domain.engine import SchedulerSettings
from linkbound.domain.estimate import Basis, Constraint, Effect, Estimate
from linkbound.domain.schedule import PassShare, SchedulePass, ScheduleSummary

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
BYTES_OF_CLIENTS = 4 * 2**20
"""What a client of gRPC takes where nobody sets it otherwise."""


def passes_of(share_count: int) -> SchedulePass:
    shares = tuple(PassShare(2**31 - 1, 2**63 - 1) for _ in range(share_count))
    return evolve(TIMED, scheduled=shares)


@given(st.lists(st.integers(0, 3).map(lambda power: 20**power), max_size=20))
def test_passes_stay_in_order_and_the_summary_comes_last(share_counts: list[int]) -> None:
    passes = [passes_of(count) for count in share_counts]
    *stretches, last = bounded_parts([*passes, SUMMARY])
    assert last is SUMMARY
    assert all(isinstance(stretch, tuple) and stretch for stretch in stretches)
    assert [one for stretch in stretches if isinstance(stretch, tuple) for one in stretch] == passes


def test_no_message_of_passes_nears_what_clients_take() -> None:
    for one in (TIMED, passes_of(1), passes_of(10_000)):
        messages = [
            schedule_part_to_proto(part)
            for part in bounded_parts(
                [*[one] * (3 * LARGEST_SHARE_COUNT_OF_MESSAGE // (len(one.scheduled) + 1)), SUMMARY]
            )
        ]
        assert len(messages) > 3
        assert max(message.ByteSize() for message in messages) < BYTES_OF_CLIENTS / 2


def test_passes_are_taken_as_they_are_asked_for() -> None:
    """An answer of any length needs the memory of one message."""
    taken = 0

    def endless() -> object:
        nonlocal taken
        while True:
            taken += 1
            yield passes_of(1000)

    parts = bounded_parts(endless())  # type: ignore[arg-type]  # what is yielded are passes alone
    next(parts)
    assert taken < 2 * LARGEST_SHARE_COUNT_OF_MESSAGE // 1000
