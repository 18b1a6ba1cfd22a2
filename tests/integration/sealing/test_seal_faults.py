"""A sealing that cannot be done leaves the run as it was: open, whole, and writable."""

import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest

from ingest_service.service import Ingest, StoreSettings
from ingest_service.store.life_steps import LifeStep
from ingest_service.store.sealed_folder import sync_file
from linkbound.domain.errors import Error, FailedPreconditionError, ResourceExhaustedError, UnavailableError
from linkbound.domain.run import RunState, SealRunRequest
from linkbound.domain.samples import BatchOutcome
from tests.integration.sealing.content import (
    COUNTS,
    RECORDS,
    Seen,
    append,
    filled,
    hot_row_count,
    sample_batch,
    sealed_names,
)
from tests.integration.store_content import RUN, TickingClock, opened, stream, with_run
from tests.new_store import laid

pytestmark = pytest.mark.storage

NEVER_WRITING: dict[str, Any] = {
    "free_space_floor_bytes": 0,
    "checkpoint_idle_seconds": 3600.0,
    "checkpoint_age_seconds": 3600.0,
}
"""Settings of a store that writes nothing that nobody asked for."""

PATIENCE_SECONDS = 60
"""A test never waits this long; it only keeps a broken one from waiting for ever."""


@contextmanager
def mounted(path: Path, options: str) -> Iterator[None]:
    """A small file system of its own at `path`; skips where this user may not mount one."""
    path.mkdir(parents=True, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(path)]
    mount = subprocess.run(command, check=False, capture_output=True, text=True)
    if mount.returncode != 0:
        pytest.skip(f"no file system can be mounted here: {mount.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


def remount(path: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", str(path)], check=True)


def opened_with(folder: Path, on_step: Callable[[LifeStep], None]) -> Ingest:
    return Ingest.open(StoreSettings(path=laid(folder / "linkbound.duckdb")), TickingClock(), on_step)


def check_open_and_whole(store: Ingest, seen: Seen) -> None:
    assert store.healthy
    assert store.get_run(RUN).run.state is RunState.OPEN
    assert Seen.of(store) == seen
    assert append(store, RUN, "bench", 2, RECORDS["bench"][1:]) == 2
    assert append(store, RUN, "late", 1, RECORDS["events"][:1]) == 1


def fill(path: Path, left_bytes: int) -> None:
    """Writes a file that leaves `left_bytes` of its disk free."""
    free = shutil.disk_usage(path.parent).free
    path.write_bytes(bytes(free))
    assert shutil.disk_usage(path.parent).free == 0
    os.truncate(path, free - left_bytes)


@pytest.mark.parametrize("left_bytes", [0, 8 * 1024, 24 * 1024])
def test_a_disk_that_fills_up_while_sealing_leaves_the_run_open(tmp_path: Path, left_bytes: int) -> None:
    with mounted(tmp_path / "sealed", "size=1m"), opened(tmp_path) as store:
        seen = Seen.of(filled(store))
        ballast = tmp_path / "sealed" / "ballast"
        fill(ballast, left_bytes)
        with pytest.raises(ResourceExhaustedError) as caught:
            store.seal_run(SealRunRequest(run=RUN))
        assert (caught.value.reason, caught.value.retry_delay_seconds) == ("DISK_FULL", None)
        assert "stays open" in caught.value.message
        assert sealed_names(tmp_path) == {"ballast"}
        check_open_and_whole(store, seen)
        ballast.unlink()
        assert store.seal_run(SealRunRequest(run=RUN)).state is RunState.SEALED
        assert store.get_run(RUN).row_counts.event_count == COUNTS.event_count + 1


def test_a_disk_that_is_full_as_a_whole_leaves_the_run_open(tmp_path: Path) -> None:
    folder = tmp_path / "disk"
    with mounted(folder, "size=8m"), opened(folder, **NEVER_WRITING) as store:
        seen = Seen.of(filled(store))
        ballast = folder / "ballast"
        fill(ballast, 0)
        with pytest.raises(ResourceExhaustedError) as caught:
            store.seal_run(SealRunRequest(run=RUN))
        assert caught.value.reason == "DISK_FULL"
        ballast.unlink()
        assert sealed_names(folder) == set()
        assert Seen.of(store) == seen
        assert store.seal_run(SealRunRequest(run=RUN)).state is RunState.SEALED


def test_a_folder_that_cannot_be_written_to_leaves_the_run_open(tmp_path: Path) -> None:
    with mounted(tmp_path / "sealed", "size=4m"), opened(tmp_path) as store:
        seen = Seen.of(filled(store))
        remount(tmp_path / "sealed", "ro")
        with pytest.raises(FailedPreconditionError) as caught:
            store.seal_run(SealRunRequest(run=RUN))
        assert caught.value.reason == "SEAL_FAILED"
        assert caught.value.metadata == {"run": RUN}
        check_open_and_whole(store, seen)
        remount(tmp_path / "sealed", "rw")
        assert store.seal_run(SealRunRequest(run=RUN)).state is RunState.SEALED


def test_a_file_in_the_place_of_the_folder_leaves_the_run_open(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        filled(store)
        (tmp_path / "sealed").write_text("not a folder")
        with pytest.raises(FailedPreconditionError) as caught:
            store.seal_run(SealRunRequest(run=RUN))
        assert caught.value.reason == "SEAL_FAILED"
        assert store.get_run(RUN).run.state is RunState.OPEN
        (tmp_path / "sealed").unlink()
        assert store.seal_run(SealRunRequest(run=RUN)).state is RunState.SEALED
        assert Seen.of(store).counts == COUNTS


def test_files_of_a_run_that_the_store_does_not_know_are_neither_overwritten_nor_shown(tmp_path: Path) -> None:
    foreign = tmp_path / "sealed" / f"run_id={RUN}"
    with opened(tmp_path) as store:
        foreign.mkdir(parents=True)
        (foreign / "precious").write_text("rows of another store")
        filled(store)
        with pytest.raises(FailedPreconditionError) as caught:
            store.seal_run(SealRunRequest(run=RUN))
        assert caught.value.reason == "SEAL_FAILED"
        assert str(foreign) in caught.value.message
        assert store.get_run(RUN).run.state is RunState.OPEN
        assert Seen.of(store).counts == COUNTS
    assert (foreign / "precious").read_text() == "rows of another store"
    # At the next opening it is out of the way, and still there.
    with opened(tmp_path) as store:
        assert store.seal_run(SealRunRequest(run=RUN)).state is RunState.SEALED
    [aside] = [path for path in (tmp_path / "sealed").iterdir() if path.name.startswith("_aside-")]
    assert (aside / "precious").read_text() == "rows of another store"


def test_a_new_store_beside_the_files_of_an_old_one_leaves_them_alone(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        filled(store).seal_run(SealRunRequest(run=RUN))
    files = {path: path.read_bytes() for path in (tmp_path / "sealed" / f"run_id={RUN}").iterdir()}
    (tmp_path / "linkbound.duckdb").unlink()
    with opened(tmp_path) as store:
        with_run(store, "other")
    assert {path: path.read_bytes() for path in files} == files


def test_two_seals_at_once_are_one(tmp_path: Path) -> None:
    steps: list[LifeStep] = []
    with opened_with(tmp_path, steps.append) as store:
        filled(store)
        with ThreadPoolExecutor(4) as threads:
            runs = list(threads.map(lambda _: store.seal_run(SealRunRequest(run=RUN)), range(4)))
        assert runs == [runs[0]] * 4
        assert steps.count(LifeStep.SEALED) == 1
        assert Seen.of(store).counts == COUNTS


def test_runs_are_sealed_one_after_the_other_whoever_asks(tmp_path: Path) -> None:
    names = [f"run-{index}" for index in range(4)]
    with opened(tmp_path) as store:
        for name in names:
            filled(store, name)
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(lambda name: store.seal_run(SealRunRequest(run=name)), names))
        for name in names:
            assert Seen.of(store, name).counts == COUNTS
    assert hot_row_count(tmp_path) == 0


def test_a_seal_and_a_deletion_at_once_take_turns(tmp_path: Path) -> None:
    for _ in range(3):
        with opened(tmp_path) as store:
            filled(store)
            with ThreadPoolExecutor(2) as threads:
                sealing = threads.submit(store.seal_run, SealRunRequest(run=RUN))
                deletion = threads.submit(store.delete_run, RUN)
                assert deletion.result(PATIENCE_SECONDS) == COUNTS
                error = sealing.exception(PATIENCE_SECONDS)
                assert error is None or (isinstance(error, Error) and error.reason == "RUN_NOT_FOUND")
            assert sealed_names(tmp_path) == set()
        assert hot_row_count(tmp_path) == 0


def test_appends_of_other_runs_go_on_while_one_is_sealed(tmp_path: Path) -> None:
    reached, goes_on = threading.Event(), threading.Event()

    def on_step(step: LifeStep) -> None:
        if step is LifeStep.FILE_WRITTEN:
            reached.set()
            assert goes_on.wait(PATIENCE_SECONDS)

    with opened_with(tmp_path, on_step) as store, ThreadPoolExecutor(1) as threads:
        with_run(filled(store), "other")
        sealing = threads.submit(store.seal_run, SealRunRequest(run=RUN))
        assert reached.wait(PATIENCE_SECONDS)
        try:
            assert append(store, "other", "bench", 1, RECORDS["bench"][:1]) == 1
            assert store.get_run(RUN).run.state is RunState.OPEN
            assert Seen.of(store).counts == COUNTS
            with pytest.raises(FailedPreconditionError) as caught:
                append(store, RUN, "late", 1, RECORDS["bench"][:1])
            assert caught.value.reason == "RUN_SEALED"
            with pytest.raises(FailedPreconditionError) as caught:
                store.open_stream(stream(writer="late-sampler"))
            assert caught.value.reason == "RUN_SEALED"
        finally:
            goes_on.set()
        assert sealing.result(PATIENCE_SECONDS).state is RunState.SEALED
        assert Seen.of(store).counts == COUNTS


def test_what_writers_were_told_is_stored_is_in_the_sealed_run(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        with_run(store)
        acknowledged: list[BatchOutcome] = []
        begun = threading.Event()

        def write(writer: str) -> str:
            session = store.open_stream(stream(writer=writer))
            number = 0
            try:
                while True:
                    number += 1
                    acknowledged.append(session.submit(sample_batch(number)).result())
                    if number == 3:
                        begun.set()
            except FailedPreconditionError as error:
                return error.reason
            finally:
                session.close()

        with ThreadPoolExecutor(2) as threads:
            ends = [threads.submit(write, writer) for writer in ("sampler-a", "sampler-b")]
            assert begun.wait(PATIENCE_SECONDS)
            store.seal_run(SealRunRequest(run=RUN))
            assert [end.result(PATIENCE_SECONDS) for end in ends] == ["RUN_SEALED"] * 2
        samples_per_batch = sample_batch(1).sample_count
        assert store.get_run(RUN).row_counts.sample_count == samples_per_batch * len(acknowledged)


@pytest.mark.parametrize("closed_at", [LifeStep.CLOSED, LifeStep.FILE_WRITTEN, LifeStep.PUBLISHED, LifeStep.SEALED])
def test_closing_the_store_ends_a_sealing_one_way_or_the_other(tmp_path: Path, closed_at: LifeStep) -> None:
    reached, goes_on = threading.Event(), threading.Event()

    def on_step(step: LifeStep) -> None:
        if step is closed_at and not reached.is_set():
            reached.set()
            assert goes_on.wait(PATIENCE_SECONDS)

    store = opened_with(tmp_path, on_step)
    seen = Seen.of(filled(store))
    with ThreadPoolExecutor(2) as threads:
        sealing = threads.submit(store.seal_run, SealRunRequest(run=RUN))
        assert reached.wait(PATIENCE_SECONDS)
        closing = threads.submit(store.close)
        # It waits for the sealing, which goes on once the writer is closed.
        while store.healthy:
            pass
        goes_on.set()
        closing.result(PATIENCE_SECONDS)
        error = sealing.exception(PATIENCE_SECONDS)
    if closed_at is LifeStep.SEALED:
        assert error is None
    else:
        assert isinstance(error, UnavailableError)
        assert error.reason == "STORE_CLOSED"
    with opened(tmp_path) as again:
        assert again.get_run(RUN).run.state is (RunState.OPEN if error else RunState.SEALED)
        assert Seen.of(again) == seen
        assert again.seal_run(SealRunRequest(run=RUN)).state is RunState.SEALED
    assert hot_row_count(tmp_path) == 0
    assert sealed_names(tmp_path) == {f"run_id={RUN}"}


def test_a_file_that_does_not_say_what_is_stored_seals_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def swap(path: Path) -> None:
        """Puts a file of another table there, as a disk that mixes up its blocks would."""
        if path.name == "requests.parquet":
            other = path.with_name("requests-of-another.parquet")
            duckdb.sql(f"COPY (SELECT * REPLACE (7 AS prompt_tokens) FROM '{path}') TO '{other}'")
            other.replace(path)
        sync_file(path)

    monkeypatch.setattr("ingest_service.store.seal_export.sync_file", swap)
    with opened(tmp_path) as store:
        seen = Seen.of(filled(store))
        with pytest.raises(FailedPreconditionError) as caught:
            store.seal_run(SealRunRequest(run=RUN))
        assert caught.value.reason == "SEAL_FAILED"
        assert sealed_names(tmp_path) == set()
        check_open_and_whole(store, seen)
