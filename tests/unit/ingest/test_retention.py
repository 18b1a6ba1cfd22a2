"""Which sealed runs a rule removes."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from ingest_service.core.retention import ExpiryReason, RetentionRule, SealedRun, expired_runs

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


def run(name: str, day: int, size_bytes: int = 100) -> SealedRun:
    return SealedRun(run_id=name, seal_time=START + day * DAY, size_bytes=size_bytes)


def removed(
    runs: list[SealedRun], rule: RetentionRule, day: float, snapshot_time: datetime | None = None
) -> list[tuple[str, ExpiryReason]]:
    expired = expired_runs(runs, rule, START + day * DAY, snapshot_time)
    return [(expiry.run.run_id, expiry.reason) for expiry in expired]


RUNS = [run("b", 2), run("a", 1), run("c", 3)]
AGE, SIZE = ExpiryReason.AGE, ExpiryReason.SIZE


def test_nothing_is_removed_without_a_limit() -> None:
    assert not RetentionRule().is_on
    assert removed(RUNS, RetentionRule(), 10_000) == []


def test_runs_are_removed_once_they_are_older_than_the_limit() -> None:
    rule = RetentionRule(age_seconds=2 * DAY.total_seconds())
    assert rule.is_on
    assert removed(RUNS, rule, 3.0) == []
    assert removed(RUNS, rule, 3.1) == [("a", AGE)]
    assert removed(RUNS, rule, 10) == [("a", AGE), ("b", AGE), ("c", AGE)]


def test_the_oldest_are_removed_until_the_rest_fits() -> None:
    assert removed(RUNS, RetentionRule(size_bytes=300), 4) == []
    assert removed(RUNS, RetentionRule(size_bytes=299), 4) == [("a", SIZE)]
    assert removed(RUNS, RetentionRule(size_bytes=100), 4) == [("a", SIZE), ("b", SIZE)]
    assert removed(RUNS, RetentionRule(size_bytes=0), 4) == [("a", SIZE), ("b", SIZE), ("c", SIZE)]


def test_what_goes_by_its_age_makes_room_too() -> None:
    rule = RetentionRule(age_seconds=2 * DAY.total_seconds(), size_bytes=200)
    assert removed(RUNS, rule, 3.5) == [("a", AGE)]


def test_what_no_snapshot_holds_is_kept() -> None:
    rule = RetentionRule(age_seconds=1, size_bytes=0, only_published=True)
    assert removed(RUNS, rule, 10) == []
    assert removed(RUNS, rule, 10, START + DAY) == []
    assert removed(RUNS, rule, 10, START + 2 * DAY) == [("a", AGE)]
    assert [name for name, _ in removed(RUNS, rule, 10, START + 5 * DAY)] == ["a", "b", "c"]


SEALED_RUNS = st.lists(
    st.builds(
        SealedRun,
        run_id=st.uuids().map(str),
        seal_time=st.integers(0, 50).map(lambda d: START + d * DAY),
        size_bytes=st.integers(0, 1000),
    ),
    max_size=8,
    unique_by=lambda sealed: sealed.run_id,
)
RULES = st.builds(
    RetentionRule,
    age_seconds=st.none() | st.integers(1, 50).map(lambda days: days * DAY.total_seconds()),
    size_bytes=st.none() | st.integers(0, 5000),
    only_published=st.booleans(),
)


@given(SEALED_RUNS, RULES, st.integers(0, 120), st.none() | st.integers(0, 120))
def test_what_is_removed_is_old_enough_published_and_no_more_than_needed(
    runs: list[SealedRun], rule: RetentionRule, day: int, snapshot_day: int | None
) -> None:
    now = START + day * DAY
    snapshot_time = None if snapshot_day is None else START + snapshot_day * DAY
    expired = expired_runs(runs, rule, now, snapshot_time)
    gone = [expiry.run for expiry in expired]
    kept = [sealed for sealed in runs if sealed not in gone]
    assert [sealed.seal_time for sealed in gone] == sorted(sealed.seal_time for sealed in gone)
    if rule.only_published:
        assert all(snapshot_time is not None and sealed.seal_time < snapshot_time for sealed in gone)
    is_removable = [
        sealed
        for sealed in kept
        if not rule.only_published or (snapshot_time is not None and sealed.seal_time < snapshot_time)
    ]
    if rule.age_seconds is not None:
        assert all((now - sealed.seal_time).total_seconds() <= rule.age_seconds for sealed in is_removable)
    size_bytes = sum(sealed.size_bytes for sealed in kept)
    if rule.size_bytes is not None and is_removable:
        assert size_bytes <= rule.size_bytes
    last = [expiry.run for expiry in expired if expiry.reason is SIZE][-1:]
    for sealed in last:
        # Without the last of them it would not have fitted.
        later_by_age = sum(e.run.size_bytes for e in expired if e.reason is AGE and e.run.seal_time >= sealed.seal_time)
        assert rule.size_bytes is not None
        assert size_bytes + sealed.size_bytes + later_by_age > rule.size_bytes
