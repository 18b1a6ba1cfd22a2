"""Sealed runs that are kept no longer are removed with their files, and no others."""

from datetime import datetime, timedelta
from pathlib import Path

import duckdb
import pytest
from attrs import define
from structlog.testing import capture_logs

from ingest_service.core.retention import RetentionRule
from ingest_service.service import Ingest
from ingest_service.store.retention import Retention, RetentionSources
from linkbound.domain.errors import InternalError
from linkbound.domain.run import SealRunRequest
from tests.integration.sealing.content import COUNTS, Seen, filled, hot_row_count, run_ids, sealed_names
from tests.integration.store_content import opened, with_run
from tests.new_store import START

pytestmark = pytest.mark.storage

DAY_SECONDS = timedelta(days=1).total_seconds()


@define
class SetClock:
    """A clock that stands where it is set."""

    day: float = 0

    def __call__(self) -> datetime:
        return START + timedelta(days=self.day)


def sealed_on_days(store: Ingest, clock: SetClock, names: str) -> None:
    """One sealed run for each letter, each a day after the one before; the clock stands at the last one's day."""
    for day, name in enumerate(names):
        clock.day = day
        filled(store, name).seal_run(SealRunRequest(run=name))


def removed(store: Ingest) -> list[str]:
    """What is removed now, as the log says it, after a look at what is left."""
    before = set(run_ids(store))
    with capture_logs() as logs:
        names = list(store.remove_expired_runs())
    assert [entry["run"] for entry in logs if entry["event"] == "expired_run_removed"] == names
    assert set(run_ids(store)) == before - set(names)
    return names


def test_nothing_is_removed_unless_asked_for(tmp_path: Path) -> None:
    clock = SetClock()
    with opened(tmp_path, clock) as store:
        sealed_on_days(store, clock, "ab")
        clock.day = 10_000
        assert removed(store) == []


def test_old_sealed_runs_go_with_their_files_and_open_ones_stay(tmp_path: Path) -> None:
    clock = SetClock()
    with opened(tmp_path, clock, retention_age_seconds=2 * DAY_SECONDS) as store:
        filled(store, "open-and-old")
        sealed_on_days(store, clock, "abc")
        assert removed(store) == []
        clock.day = 3.5
        assert removed(store) == ["a", "b"]
        clock.day = 1000
        assert removed(store) == ["c"]
        assert run_ids(store) == ["open-and-old"]
        assert Seen.of(store, "open-and-old").counts == COUNTS
        assert sealed_names(tmp_path) == set()
        store.delete_run("open-and-old")
    assert hot_row_count(tmp_path) == 0


def test_the_oldest_go_while_all_take_too_much_space(tmp_path: Path) -> None:
    clock = SetClock()
    with opened(tmp_path / "sizes", clock) as store:
        sealed_on_days(store, clock, "a")
        size_bytes = store.get_run("a").run.sealed_size_bytes
    clock = SetClock()
    with opened(tmp_path / "store", clock, retention_size_bytes=round(2.5 * size_bytes)) as store:
        filled(store, "open-and-large")
        sealed_on_days(store, clock, "ab")
        assert removed(store) == []
        for name in "cd":
            filled(store, name).seal_run(SealRunRequest(run=name))
        with capture_logs() as logs:
            assert store.remove_expired_runs() == ("a", "b")
        assert [entry["reason"] for entry in logs] == ["SIZE", "SIZE"]
        assert [entry["size_bytes"] > 0 for entry in logs] == [True, True]
        assert sorted(run_ids(store)) == ["c", "d", "open-and-large"]


def test_it_happens_by_itself(tmp_path: Path) -> None:
    clock = SetClock()
    with opened(tmp_path, clock, retention_age_seconds=1.0, retention_interval_seconds=0.01) as store:
        with_run(store, "open-one")
        sealed_on_days(store, clock, "a")
        clock.day = 1
        while len(run_ids(store)) > 1:
            pass
        assert run_ids(store) == ["open-one"]


def test_what_no_snapshot_holds_stays_where_snapshots_are_published(tmp_path: Path) -> None:
    clock = SetClock()
    with opened(tmp_path, clock, retention_age_seconds=DAY_SECONDS) as store:
        store.publish_every(3600.0)
        sealed_on_days(store, clock, "ab")
        store.publish_snapshot()
        clock.day = 2
        filled(store, "c").seal_run(SealRunRequest(run="c"))
        clock.day = 100
        # The snapshot is of the very moment at which b was sealed, which is no newer.
        assert removed(store) == ["a"]
        store.publish_snapshot()
        assert removed(store) == ["b", "c"]


def test_one_that_cannot_be_removed_does_not_keep_the_others(tmp_path: Path) -> None:
    clock = SetClock()
    with opened(tmp_path, clock) as store:
        sealed_on_days(store, clock, "ab")
    asked: list[str] = []

    def delete(run_id: str) -> None:
        asked.append(run_id)
        if run_id == "a":
            raise InternalError("not this one")

    clock.day = 30
    with duckdb.connect(str(tmp_path / "linkbound.duckdb"), read_only=True) as root:
        sources = RetentionSources(root=root, clock=clock, snapshot=tmp_path / "none", delete_run=delete)
        retention = Retention(RetentionRule(age_seconds=DAY_SECONDS), 3600.0, sources)
        with capture_logs() as logs:
            assert retention.remove_expired() == ("b",)
        retention.close()
    assert asked == ["a", "b"]
    assert [(entry["event"], entry["run"]) for entry in logs] == [
        ("expired_run_not_removed", "a"),
        ("expired_run_removed", "b"),
    ]
