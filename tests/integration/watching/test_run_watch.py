"""What watchers of runs are told: every change, in order, once a second at most, and across restarts."""

import threading
from pathlib import Path

import pytest

from ingest_service.service import Ingest, StoreSettings
from ingest_service.store import run_changes, run_watch
from ingest_service.store.run_watch import RunWatch
from linkbound.domain.errors import OutOfRangeError, UnavailableError
from linkbound.domain.records import AppendRequest, TrainingStep
from linkbound.domain.run import CreateRunRequest, RunState, SealRunRequest
from linkbound.domain.run_watch import RunChange, RunUpdate, WatchRunsRequest
from tests.integration.sql.asking import rows_of
from tests.new_store import laid

pytestmark = pytest.mark.storage

STEP = TrainingStep(subject="load", node_count=2, step_index=0, step_seconds=1.0, source="load.csv")


@pytest.fixture
def ingest(tmp_path: Path) -> Ingest:
    return Ingest.open(StoreSettings(path=laid(tmp_path / "linkbound.duckdb")))


def append(ingest: Ingest, run: str, number: int) -> None:
    ingest.append(AppendRequest(run=run, writer_id="w", sequence_number=number, records=(STEP,))).result()


def told(watch: RunWatch) -> list[tuple[int, str, str]]:
    """What there is to tell now, briefly."""
    updates: list[RunUpdate] = []
    while new := watch.next_updates():
        updates += new
    return [(update.revision, update.change.name, update.run_id) for update in updates]


def watching(ingest: Ingest, start_revision: int = 0, run: str | None = None) -> RunWatch:
    return ingest.watch_runs(WatchRunsRequest(start_revision=start_revision, run=run))


def next_after(watch: RunWatch) -> tuple[RunUpdate, ...]:
    """What is told next, however long it takes."""
    changed = threading.Event()
    with watch.listening(changed.set):
        while not (updates := watch.next_updates()):
            changed.wait(0.1)
            changed.clear()
    return updates


def test_every_run_is_told_as_it_is_and_then_how_far_that_is(ingest: Ingest) -> None:
    with ingest:
        for run in ("a", "b"):
            ingest.create_run(CreateRunRequest(run_id=run))
        append(ingest, "a", 1)
        watch = watching(ingest)
        [first, second, end] = watch.next_updates()
        assert [first.run_id, second.run_id] == ["a", "b"]
        assert (first.revision, first.change) == (0, RunChange.CREATED)
        assert first.run is not None
        assert first.run.prediction is None
        assert first.row_counts is not None
        assert first.row_counts.training_step_count == 1
        assert end == RunUpdate(revision=3)
        assert watch.next_updates() == ()


def test_a_store_without_runs_says_how_far_it_is(ingest: Ingest) -> None:
    with ingest:
        watch = watching(ingest)
        assert watch.next_updates() == (RunUpdate(revision=0),)
        ingest.create_run(CreateRunRequest(run_id="a"))
        assert told(watch) == [(1, "CREATED", "a")]


def test_the_whole_life_of_a_run_is_told(ingest: Ingest) -> None:
    with ingest:
        watch = watching(ingest)
        told(watch)
        ingest.create_run(CreateRunRequest(run_id="a"))
        assert told(watch) == [(1, "CREATED", "a")]
        append(ingest, "a", 1)
        assert told(watch) == [(2, "APPENDED", "a")]
        sealed_at = 3
        ingest.seal_run(SealRunRequest(run="a"))
        [sealed] = watch.next_updates()
        assert (sealed.revision, sealed.change) == (sealed_at, RunChange.SEALED)
        assert sealed.run is not None
        assert sealed.run.state is RunState.SEALED
        assert sealed.run.sealed_path
        assert sealed.row_counts is not None
        assert sealed.row_counts.training_step_count == 1
        ingest.delete_run("a")
        [deleted] = watch.next_updates()
        assert deleted == RunUpdate(revision=4, change=RunChange.DELETED, run_id="a")


def test_creating_it_again_changes_nothing_and_tells_nothing(ingest: Ingest) -> None:
    with ingest:
        watch = watching(ingest)
        ingest.create_run(CreateRunRequest(run_id="a"))
        told(watch)
        ingest.create_run(CreateRunRequest(run_id="a"))
        append(ingest, "a", 1)
        append(ingest, "a", 1)
        assert told(watch) == [(2, "APPENDED", "a")]


def test_many_appends_are_told_at_most_once_a_second_and_the_last_one_too(ingest: Ingest) -> None:
    with ingest:
        ingest.create_run(CreateRunRequest(run_id="a"))
        watch = watching(ingest)
        told(watch)
        for number in range(1, 51):
            append(ingest, "a", number)
        counts = [0]
        while counts[-1] < 50:
            counts += [update.row_counts.training_step_count for update in next_after(watch) if update.row_counts]
        # At once and at the end of each second, which is less often than it happened.
        assert kept_revisions_of(ingest) < 1 + 50


def kept_revisions_of(ingest: Ingest) -> int:
    [row] = rows_of(ingest, "SELECT count(*) AS n FROM hot.run_changes")
    return int(row["n"])


def test_several_changes_of_a_run_are_told_as_the_last_one(ingest: Ingest) -> None:
    with ingest:
        ingest.create_run(CreateRunRequest(run_id="a"))
        ingest.create_run(CreateRunRequest(run_id="b"))
        append(ingest, "a", 1)
        ingest.delete_run("b")
        assert told(watching(ingest, 1)) == [(3, "APPENDED", "a"), (4, "DELETED", "b")]
        ingest.create_run(CreateRunRequest(run_id="b"))
        assert told(watching(ingest, 1)) == [(3, "APPENDED", "a"), (5, "CREATED", "b")]


def test_one_run_alone_is_told_with_the_revisions_of_all(ingest: Ingest) -> None:
    with ingest:
        for run in ("a", "b"):
            ingest.create_run(CreateRunRequest(run_id=run))
        watch = watching(ingest, run="b")
        assert told(watch) == [(0, "CREATED", "b"), (2, "UNSPECIFIED", "")]
        ingest.create_run(CreateRunRequest(run_id="c"))
        assert told(watch) == []
        # It need not begin behind what does not concern it.
        assert watch.progress == RunUpdate(revision=3)
        ingest.delete_run("b")
        assert told(watch) == [(4, "DELETED", "b")]


def test_a_run_that_is_not_there_can_be_waited_for(ingest: Ingest) -> None:
    with ingest:
        watch = watching(ingest, run="later")
        assert told(watch) == [(0, "UNSPECIFIED", "")]
        ingest.create_run(CreateRunRequest(run_id="later"))
        assert told(watch) == [(1, "CREATED", "later")]


def test_it_goes_on_from_a_revision_after_a_restart(tmp_path: Path) -> None:
    settings = StoreSettings(path=laid(tmp_path / "linkbound.duckdb"))
    with Ingest.open(settings) as ingest:
        ingest.create_run(CreateRunRequest(run_id="a"))
        ingest.create_run(CreateRunRequest(run_id="b"))
    with Ingest.open(settings) as ingest:
        assert told(watching(ingest, 2)) == [(2, "CREATED", "b")]
        assert told(watching(ingest, 3)) == []
        ingest.delete_run("a")
        assert told(watching(ingest, 3)) == [(3, "DELETED", "a")]


def test_appends_that_a_crash_kept_from_being_told_are_told_after_it(tmp_path: Path) -> None:
    settings = StoreSettings(path=laid(tmp_path / "linkbound.duckdb"))
    with Ingest.open(settings) as ingest:
        ingest.create_run(CreateRunRequest(run_id="a"))
        append(ingest, "a", 1)
        append(ingest, "a", 2)
        watch = watching(ingest, 3)
        assert told(watch) == []
    with Ingest.open(settings) as ingest:
        [update] = watching(ingest, 3).next_updates()
        assert (update.revision, update.change) == (3, RunChange.APPENDED)
        assert update.row_counts is not None
        assert update.row_counts.training_step_count == 2
    with Ingest.open(settings) as ingest:
        assert told(watching(ingest, 4)) == []


def test_a_revision_that_is_not_kept_any_more_is_told(ingest: Ingest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_changes, "KEPT_CHANGE_COUNT", 10)
    monkeypatch.setattr(run_changes, "COMPACTION_COUNT", 5)
    with ingest:
        for index in range(40):
            ingest.create_run(CreateRunRequest(run_id=f"run-{index:0>2}"))
        with pytest.raises(OutOfRangeError) as caught:
            watching(ingest, 3).next_updates()
        assert caught.value.reason == "REVISION_COMPACTED"
        oldest = int(caught.value.metadata["oldestRevision"])
        assert 40 - 15 - 1 <= oldest <= 40 - 10 + 1
        assert told(watching(ingest, oldest))[0][0] == oldest
        # From the start there is everything, at whatever revision it came to be.
        assert len(told(watching(ingest))) == 41


@pytest.mark.parametrize("start", [3, 1000])
def test_a_revision_that_is_still_to_come_is_told(ingest: Ingest, start: int) -> None:
    with ingest:
        ingest.create_run(CreateRunRequest(run_id="a"))
        with pytest.raises(OutOfRangeError) as caught:
            watching(ingest, start).next_updates()
        assert caught.value.metadata["latestRevision"] == "1"
        assert told(watching(ingest, 2)) == []


def test_many_runs_are_told_in_parts(ingest: Ingest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_watch, "TOLD_RUN_COUNT", 3)
    monkeypatch.setattr(run_watch, "READ_CHANGE_COUNT", 4)
    with ingest:
        names = [f"run-{index}" for index in range(8)]
        for name in names:
            ingest.create_run(CreateRunRequest(run_id=name))
        watch = watching(ingest)
        assert [update.run_id for update in watch.next_updates()] == names[:3]
        ingest.delete_run("run-5")
        assert [run for _, _, run in told(watch)] == ["run-3", "run-4", "run-6", "run-7", "", "run-5"]
        assert [run for _, _, run in told(watching(ingest, 1))] == [*names[:5], *names[6:], "run-5"]


def test_a_listener_hears_of_every_change_until_it_leaves(ingest: Ingest) -> None:
    with ingest:
        heard = threading.Event()
        watch = watching(ingest)
        with watch.listening(heard.set):
            ingest.create_run(CreateRunRequest(run_id="a"))
            heard.wait()
            heard.clear()
            append(ingest, "a", 1)
            heard.wait()
        heard.clear()
        ingest.create_run(CreateRunRequest(run_id="b"))
        assert not heard.is_set()


def test_a_closed_store_wakes_watchers_and_says_so(ingest: Ingest) -> None:
    heard = threading.Event()
    watch = watching(ingest)
    with watch.listening(heard.set):
        ingest.close()
        heard.wait()
        with pytest.raises(UnavailableError):
            watch.next_updates()
