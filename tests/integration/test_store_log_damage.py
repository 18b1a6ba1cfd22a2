"""A log that is not what was written: it is read up to there or refused in words, and nobody is told a wrong number."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ingest_service.service import Ingest, StoreSettings
from ingest_service.store.log_recovery import recover_log
from linkbound.domain.errors import FailedPreconditionError, UnavailableError
from tests.faults.log_damage import bit_flipped, cut, zero_filled
from tests.integration.command_line import linkbound
from tests.integration.store_content import RUN, batch, opened, rows, stream, with_run

pytestmark = pytest.mark.storage

STORE, LOG = "linkbound.duckdb", "linkbound.duckdb.wal"
CHECKPOINTED, LAST = 3, 23
SAMPLES = 400


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of a process that was killed: batches up to `CHECKPOINTED` in the file, the others in the log."""
    folder, killed = tmp_path_factory.mktemp("store"), tmp_path_factory.mktemp("killed")
    with opened(folder) as store:
        session = with_run(store).open_stream(stream())
        for number in range(1, CHECKPOINTED + 1):
            session.submit(batch(number, sample_count=SAMPLES)).result()
    with opened(folder, checkpoint_idle_seconds=600.0, checkpoint_age_seconds=600.0) as store:
        session = store.open_stream(stream())
        for number in range(CHECKPOINTED + 1, LAST + 1):
            session.submit(batch(number, sample_count=SAMPLES)).result()
        for name in (STORE, LOG):
            shutil.copy(folder / name, killed / name)
    return killed


@pytest.fixture
def folder(template: Path, tmp_path: Path) -> Path:
    for name in (STORE, LOG):
        shutil.copy(template / name, tmp_path / name)
    return tmp_path


def settings(folder: Path) -> StoreSettings:
    return StoreSettings(path=folder / STORE)


def stored_up_to(folder: Path) -> int:
    """The last number that is stored, after the writer found every batch before it and nothing else."""
    with opened(folder) as store:
        start = store.open_stream(stream(last_acked=LAST, first_kept=CHECKPOINTED + 1)).start
    number = start.committed_sequence_number
    expected = [(n * 1000 + i, n * 1000 + i) for n in range(1, number + 1) for i in range(SAMPLES)]
    assert rows(folder, "SELECT time_ns, value FROM counter_samples ORDER BY ALL") == expected
    return number


def damage(folder: Path, change: Callable[[bytes], bytes]) -> bytes:
    log = folder / LOG
    damaged = change(log.read_bytes())
    log.write_bytes(damaged)
    return damaged


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", [cut, zero_filled, bit_flipped], ids=lambda kind: kind.__name__)
def test_a_damaged_log_is_read_up_to_the_damage_or_refused_until_it_is_recovered(
    folder: Path, kind: Callable[[bytes, random.Random], bytes], seed: int
) -> None:
    before = (folder / STORE).read_bytes()
    damaged = damage(folder, lambda content: kind(content, random.Random(seed)))
    try:
        Ingest.open(settings(folder)).close()
    except FailedPreconditionError as error:
        assert error.reason == "STORE_LOG_DAMAGED"
        assert "linkbound store recover" in error.message
        assert ((folder / STORE).read_bytes(), (folder / LOG).read_bytes()) == (before, damaged)
        found = recover_log(settings(folder))
        assert Path(found.set_aside_path).read_bytes() == damaged
        assert 0 <= found.kept_size_bytes < found.log_size_bytes == len(damaged)
    assert CHECKPOINTED <= stored_up_to(folder) < LAST


def test_what_stands_before_the_damage_is_kept(folder: Path) -> None:
    damage(folder, lambda content: content[:-100] + bytes([content[-100] ^ 1]) + content[-99:])
    found = recover_log(settings(folder))
    assert found.kept_size_bytes > found.log_size_bytes * 0.9
    assert stored_up_to(folder) == LAST - 1


@pytest.mark.parametrize("appended_bytes", [9, 4096])
def test_zeros_behind_the_log_cost_nothing(folder: Path, appended_bytes: int) -> None:
    damage(folder, lambda content: content + bytes(appended_bytes))
    recover_log(settings(folder))
    assert stored_up_to(folder) == LAST


def test_a_log_of_another_store_is_set_aside_whole(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    with opened(other, checkpoint_idle_seconds=600.0) as store:
        with_run(store)
        shutil.copy(other / LOG, folder / LOG)
    with pytest.raises(FailedPreconditionError) as caught:
        Ingest.open(settings(folder))
    assert caught.value.reason == "STORE_LOG_DAMAGED"
    found = recover_log(settings(folder))
    assert found.kept_size_bytes == 0
    assert stored_up_to(folder) == CHECKPOINTED


def test_a_whole_log_is_left_as_it_is_and_none_is_fine(folder: Path) -> None:
    size_bytes = (folder / LOG).stat().st_size
    found = recover_log(settings(folder))
    assert (found.log_size_bytes, found.kept_size_bytes, found.set_aside_path) == (size_bytes, size_bytes, "")
    again = recover_log(settings(folder))
    assert (again.log_size_bytes, again.kept_size_bytes, again.set_aside_path) == (0, 0, "")
    assert stored_up_to(folder) == LAST
    assert sorted(path.name for path in folder.iterdir()) == [STORE]


def test_logs_that_were_set_aside_before_stay(folder: Path) -> None:
    (folder / f"{LOG}.damaged-1").write_bytes(b"of an earlier time")
    damage(folder, lambda content: content[:500] + bytes(len(content) - 500))
    assert recover_log(settings(folder)).set_aside_path == str(folder / f"{LOG}.damaged-2")
    assert (folder / f"{LOG}.damaged-1").read_bytes() == b"of an earlier time"


def test_a_store_in_use_and_one_that_is_not_there_are_not_touched(folder: Path, tmp_path: Path) -> None:
    with opened(folder) as store:
        store.get_run(RUN)
        with pytest.raises(UnavailableError) as locked:
            recover_log(settings(folder))
    assert locked.value.reason == "STORE_LOCKED"
    with pytest.raises(FailedPreconditionError) as missing:
        recover_log(settings(tmp_path / "nowhere"))
    assert missing.value.reason == "STORE_UNREADABLE"
    assert not (tmp_path / "nowhere").exists()


def test_the_command_tells_what_it_kept_and_what_may_be_missing(folder: Path) -> None:
    damage(folder, lambda content: content[:-100] + bytes([content[-100] ^ 1]) + content[-99:])
    recovered = linkbound("store", "recover", "--data", str(folder))
    assert recovered.exit_code == 0, recovered.err
    assert "kept " in recovered.out
    assert str(folder / f"{LOG}.damaged-1") in recovered.out
    assert "send again" in recovered.out
    again = linkbound("store", "recover", "--data", str(folder))
    assert again.out == f"{folder / STORE}: nothing is damaged\n"
    answer = linkbound("store", "recover", "--data", str(folder), "--json").answer
    assert answer == {"path": str(folder / STORE), "log_size_bytes": 0, "kept_size_bytes": 0, "set_aside_path": ""}
    assert linkbound("store", "recover", "--data", str(folder / "nothing")).exit_code == 2


def test_a_service_over_a_damaged_log_does_not_start_and_says_what_to_do(folder: Path) -> None:
    damage(folder, lambda content: content[:-100] + bytes([content[-100] ^ 1]) + content[-99:])
    outcome = linkbound("serve", "--only", "ingest", "--ingest-port", "0", "--data", str(folder))
    assert outcome.exit_code == 2
    assert outcome.out == ""
    assert "linkbound store recover" in outcome.err
