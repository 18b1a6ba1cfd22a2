"""Of a run it is told at once, then once for all appends within a second, and nothing is left untold."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from ingest_service.core.run_pulse import TELLING_INTERVAL_SECONDS, RunPulse

RUNS = ("a", "b", "c")


def test_the_first_append_is_told_at_once() -> None:
    assert RunPulse().appended({"a"}, 5.0) == ("a",)


def test_further_ones_wait_for_their_turn() -> None:
    pulse = RunPulse()
    pulse.told(pulse.appended({"a"}, 5.0), 5.0)
    assert pulse.appended({"a"}, 5.5) == ()
    assert pulse.wait_seconds(5.5) == 0.5
    assert pulse.due(5.9) == ()
    assert pulse.due(6.0) == ("a",)


def test_what_waits_is_told_with_the_next_append_of_another_run() -> None:
    pulse = RunPulse()
    pulse.told(pulse.appended({"a"}, 5.0), 5.0)
    pulse.appended({"a"}, 5.5)
    assert pulse.appended({"b"}, 7.0) == ("a", "b")


def test_what_was_not_told_after_all_stays_due() -> None:
    pulse = RunPulse()
    assert pulse.appended({"a"}, 5.0) == ("a",)
    assert pulse.due(5.0) == ("a",)


def test_nothing_is_told_of_a_run_that_is_over() -> None:
    pulse = RunPulse()
    pulse.told(pulse.appended({"a"}, 5.0), 5.0)
    pulse.appended({"a"}, 5.5)
    pulse.forget("a")
    assert pulse.due(99.0) == ()
    assert pulse.wait_seconds(5.5) is None


# Fractions of a power of two, which add up without rounding.
@given(
    st.lists(st.tuples(st.sampled_from(RUNS), st.integers(0, 3 * 1024).map(lambda count: count / 1024)), max_size=30)
)
def test_every_append_is_told_within_its_time_and_no_run_more_often(appends: list[tuple[str, float]]) -> None:
    pulse, now = RunPulse(), 0.0
    told_at: dict[str, list[float]] = {run: [] for run in RUNS}
    appended_at: dict[str, float] = {}

    def tell(runs: tuple[str, ...]) -> None:
        pulse.told(runs, now)
        for run in runs:
            told_at[run].append(now)

    for run, pause in appends:
        until = now + pause
        # The thread that writes wakes when something is due.
        while (wait := pulse.wait_seconds(now)) is not None and now + wait <= until:
            now += wait
            tell(pulse.due(now))
        now = until
        appended_at[run] = now
        tell(pulse.appended({run}, now))
    while (wait := pulse.wait_seconds(now)) is not None:
        now += wait
        tell(pulse.due(now))
    for run, time in appended_at.items():
        assert told_at[run][-1] >= time
        assert told_at[run][-1] - time <= TELLING_INTERVAL_SECONDS
    for times in told_at.values():
        assert all(later - earlier >= TELLING_INTERVAL_SECONDS for earlier, later in pairwise(times))
