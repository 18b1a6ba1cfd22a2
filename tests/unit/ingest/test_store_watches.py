"""What the thread that commits looks at besides its work: the log, the time, the room on the disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from ingest_service.store.checkpoint_rests import CheckpointRests
from ingest_service.store.free_space import FreeSpace
from ingest_service.store.log_watch import LogWatch, log_path
from linkbound.domain.errors import ResourceExhaustedError


def grown(path: Path, size_bytes: int) -> None:
    path.write_bytes(bytes(size_bytes))


def test_a_log_that_grows_has_not_been_emptied(tmp_path: Path) -> None:
    log = log_path(tmp_path / "x.duckdb")
    assert log.name == "x.duckdb.wal"
    watch = LogWatch(log)
    for size_bytes in (10, 10, 20):
        grown(log, size_bytes)
        assert not watch.has_been_emptied()
        assert watch.size_bytes == size_bytes


def test_a_log_that_is_gone_empty_or_shorter_has_been_emptied(tmp_path: Path) -> None:
    log = tmp_path / "x.wal"
    watch = LogWatch(log)
    assert watch.has_been_emptied()
    grown(log, 20)
    assert not watch.has_been_emptied()
    grown(log, 5)
    assert watch.has_been_emptied()
    grown(log, 0)
    assert watch.has_been_emptied()
    log.unlink()
    assert watch.has_been_emptied()


def test_a_log_needs_room_in_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watch = LogWatch(tmp_path / "x.wal")
    monkeypatch.setattr("ingest_service.store.log_watch.SPARE_BYTES", 2**60)
    assert not watch.lacks_room()
    grown(tmp_path / "x.wal", 1000)
    assert watch.lacks_room()
    # A look at the room is no look at what has become of the log.
    assert watch.size_bytes == 0
    monkeypatch.undo()
    assert not watch.lacks_room()


def rests() -> CheckpointRests:
    return CheckpointRests(idle_seconds=1.0, age_seconds=10.0)


def test_without_anything_to_move_work_is_waited_for_for_ever() -> None:
    subject = rests()
    assert subject.wait_seconds(100.0) is None
    subject.note(100.0, has_uncheckpointed=False)
    assert subject.wait_seconds(101.0) is None


def test_a_checkpoint_comes_after_a_rest_or_once_a_commit_is_old() -> None:
    subject = rests()
    subject.note(100.0, has_uncheckpointed=True)
    assert subject.wait_seconds(100.0) == 1.0
    # Work that goes on does not make the oldest commit younger.
    subject.note(109.5, has_uncheckpointed=True)
    assert subject.wait_seconds(109.5) == 0.5
    assert subject.wait_seconds(200.0) == 0.0
    subject.note(200.0, has_uncheckpointed=False)
    assert subject.wait_seconds(200.0) is None


def test_a_checkpoint_that_was_not_possible_is_not_tried_again_at_once() -> None:
    subject = rests()
    subject.note(100.0, has_uncheckpointed=True)
    subject.postpone(110.0)
    subject.note(110.0, has_uncheckpointed=True)
    assert subject.wait_seconds(110.0) == 1.0


def test_above_the_floor_nothing_is_refused_and_without_one_never(tmp_path: Path) -> None:
    for floor_bytes in (0, 1):
        space = FreeSpace(tmp_path, floor_bytes)
        assert not space.is_short
        space.check()


def test_below_the_floor_is_said_how_much_is_left(tmp_path: Path) -> None:
    space = FreeSpace(tmp_path, 2**60)
    assert space.is_short
    with pytest.raises(ResourceExhaustedError) as caught:
        space.check()
    assert caught.value.reason == "DISK_FULL"
    assert caught.value.retry_delay_seconds is None
    assert int(caught.value.metadata["freeBytes"]) < int(caught.value.metadata["floorBytes"]) == 2**60
