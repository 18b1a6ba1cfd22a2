"""Sealed runs are read as open ones are, and one whose files are damaged is the trouble of that run alone."""

import os
import threading
from collections.abc import Callable
from pathlib import Path

import attrs
import duckdb
import pytest
from structlog.testing import capture_logs

from ingest_service.service import Ingest
from linkbound.domain.errors import AbortedError, FailedPreconditionError, NotFoundError
from linkbound.domain.paging import PageRequest
from linkbound.domain.records import ListRequestRecordsRequest
from linkbound.domain.run import CreateRunRequest, RunState, SealRunRequest
from tests.integration.sealing.content import (
    COUNTS,
    RECORDS,
    REQUESTS,
    Seen,
    append,
    filled,
    hot_row_count,
    listed,
    run_ids,
    sample_batch,
    sealed_names,
)
from tests.integration.sql.asking import rows_of
from tests.integration.store_content import RUN, opened, rows, stream, with_run

pytestmark = pytest.mark.storage


def sealed(ingest: Ingest, run_id: str = RUN) -> Ingest:
    filled(ingest, run_id).seal_run(SealRunRequest(run=run_id))
    return ingest


def test_every_read_says_the_same_before_and_after_and_after_a_restart(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        filled(filled(store), "open-one")
        before = Seen.of(store)
        store.seal_run(SealRunRequest(run=RUN))
        assert Seen.of(store) == before
        assert Seen.of(store, "open-one").counts == COUNTS
    with opened(tmp_path) as store:
        assert Seen.of(store) == before
        page = store.list_runs(PageRequest())
        assert [(run.run_id, run.state) for run in page.entries] == [
            ("open-one", RunState.OPEN),
            (RUN, RunState.SEALED),
        ]
        assert [bool(run.sealed_path) for run in page.entries] == [False, True]
        assert page.entries[1].sealed_size_bytes == store.get_run(RUN).run.sealed_size_bytes > 0
        assert page.entries[0].sealed_size_bytes == 0


def test_records_of_a_sealed_run_are_paged_and_filtered(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        filled(store)
        expected = listed(store)
        store.seal_run(SealRunRequest(run=RUN))
        for page_size in (1, 3, 1000):
            assert listed(store, page_size=page_size) == expected
        page = store.list_request_records(ListRequestRecordsRequest(run=RUN, subject="P1"))
        assert page.entries == tuple(record for record in expected if record.subject == "P1")


def test_an_append_that_is_sent_again_is_acknowledged_again_and_another_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        sealed(store)
    with opened(tmp_path) as store:
        assert append(store, RUN, "bench", 1, RECORDS["bench"][:1]) == 1
        assert append(store, RUN, "bench", 2, RECORDS["bench"][1:]) == 2
        with pytest.raises(AbortedError) as conflict:
            append(store, RUN, "bench", 1, RECORDS["bench"][1:2])
        assert conflict.value.reason == "WRITER_CONFLICT"
        for writer, number in (("bench", 3), ("bench", 9), ("someone", 1)):
            with pytest.raises(FailedPreconditionError) as refused:
                append(store, RUN, writer, number, RECORDS["bench"][:1])
            assert refused.value.reason == "RUN_SEALED"
        with pytest.raises(FailedPreconditionError) as mismatch:
            append(store, RUN, "sampler-a", 1, RECORDS["bench"][:1])
        assert mismatch.value.reason == "WRITER_KIND_MISMATCH"
        with pytest.raises(FailedPreconditionError) as refused:
            store.open_stream(stream(writer="sampler-a"))
        assert refused.value.reason == "RUN_SEALED"
        assert Seen.of(store).counts == COUNTS


def test_what_is_sent_again_is_acknowledged_though_the_ledger_cannot_be_read(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        sealed(store)
        (tmp_path / "sealed" / f"run_id={RUN}" / "ledger.parquet").unlink()
        assert append(store, RUN, "bench", 1, RECORDS["bench"][:1]) == 1
        assert append(with_run(store, "other"), "other", "bench", 1, RECORDS["bench"][:1]) == 1
        assert store.healthy


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-10])


def flip(path: Path) -> None:
    """Another value in the middle, and every figure of the file as it was."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))


def replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGES: list[Callable[[Path], None]] = [Path.unlink, cut, flip, replace_by_folder]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("moment", ["meanwhile", "before opening"])
def test_a_damaged_file_makes_reads_of_its_run_fail_and_no_others(
    tmp_path: Path, damage: Callable[[Path], None], moment: str
) -> None:
    path = tmp_path / "sealed" / f"run_id={RUN}" / "requests.parquet"
    with opened(tmp_path) as store:
        sealed(sealed(store), "a-run-before")
        others = Seen.of(store, "a-run-before")
        if moment == "meanwhile":
            # A file that was found whole before is looked at again once it changed.
            listed(store)
            os.utime(path, (0, 0))
            damage(path)
            check_damage(store, path, others)
    if moment == "before opening":
        damage(path)
        with capture_logs() as logs, opened(tmp_path) as store:
            check_damage(store, path, others)
        named = [entry["path"] for entry in logs if entry["event"] == "sealed_file_damaged"]
        assert named == ([] if damage is flip else [str(path)])


def check_damage(store: Ingest, path: Path, others: Seen) -> None:
    for read in (lambda: listed(store), lambda: store.compare_run(RUN)):
        with pytest.raises(FailedPreconditionError) as caught:
            read()
        assert caught.value.reason == "RUN_UNREADABLE"
        assert caught.value.metadata == {"run": RUN, "path": str(path)}
        assert str(path) in caught.value.message
    assert store.healthy
    assert store.get_run(RUN).row_counts == COUNTS
    assert sorted(run_ids(store)) == sorted(["a-run-before", RUN])
    assert Seen.of(store, "a-run-before") == others
    assert Seen.of(filled(store, "a-new-one"), "a-new-one").counts == COUNTS
    assert store.seal_run(SealRunRequest(run="a-new-one")).state is RunState.SEALED
    store.delete_run(RUN)
    with pytest.raises(NotFoundError):
        store.get_run(RUN)


@pytest.mark.parametrize("damage", [cut, replace_by_folder], ids=lambda damage: damage.__name__)
def test_a_damaged_file_leaves_the_views_of_the_other_runs(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    with opened(tmp_path) as store:
        sealed(sealed(store, "a-damaged-one"), "another")
    damage(tmp_path / "sealed" / "run_id=a-damaged-one" / "counter_samples.parquet")
    with duckdb.connect(str(tmp_path / "linkbound.duckdb"), read_only=True) as connection:
        count = "SELECT count(*), sum(value) > 0 FROM counter_samples WHERE run_id = ?"
        assert connection.execute(count, ["another"]).fetchall() == [(COUNTS.sample_count, True)]
        with pytest.raises(duckdb.Error, match="a-damaged-one/counter_samples"):
            connection.execute(count, ["a-damaged-one"]).fetchall()
    with opened(tmp_path) as store:
        assert Seen.of(store, "another").counts == COUNTS


def test_deleting_a_sealed_run_takes_its_files_and_leaves_the_others(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        sealed(sealed(store), "kept")
        others = Seen.of(store, "kept")
        assert store.delete_run(RUN) == COUNTS
        with pytest.raises(NotFoundError):
            store.get_run(RUN)
        assert Seen.of(store, "kept") == others
        assert sealed_names(tmp_path) == {"run_id=kept"}
        filled(store)
        assert Seen.of(store).counts == COUNTS
        store.seal_run(SealRunRequest(run=RUN))
        assert Seen.of(store).counts == COUNTS
    assert hot_row_count(tmp_path) == 0
    assert rows(tmp_path, "SELECT count(*) FROM requests WHERE run_id = 'kept'") == [(COUNTS.request_record_count,)]


def test_a_read_that_meets_a_deletion_says_that_the_run_is_gone(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        sealed(store)
        stop = threading.Event()
        wrong: list[BaseException] = []

        def read() -> None:
            while not stop.is_set():
                try:
                    listed(store)
                except NotFoundError:
                    return
                except BaseException as error:
                    wrong.append(error)
                    return

        readers = [threading.Thread(target=read) for _ in range(4)]
        for reader in readers:
            reader.start()
        store.delete_run(RUN)
        for reader in readers:
            reader.join(30)
        stop.set()
        assert wrong == []


def test_run_ids_that_look_like_other_things_stay_what_they_are(tmp_path: Path) -> None:
    names = ["2026", "2026-01-01", "1e5", "null", "true", "0.5", "a.b_c-d"]
    with opened(tmp_path) as store:
        for name in names:
            store.create_run(CreateRunRequest(run_id=name))
            append(store, name, "bench", 1, RECORDS["bench"][:1])
            store.seal_run(SealRunRequest(run=name, expected_row_count=1))
        for name in names:
            assert [record.send_ns for record in listed(store, name)] == [REQUESTS[0].send_ns]
    found = rows(tmp_path, "SELECT run_id FROM requests ORDER BY run_id")
    assert found == [(name,) for name in sorted(names)]


def test_a_stream_that_is_open_when_its_run_is_sealed_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        session = with_run(store).open_stream(stream())
        session.submit(sample_batch(1)).result()
        store.seal_run(SealRunRequest(run=RUN))
        with pytest.raises(FailedPreconditionError) as caught:
            session.submit(sample_batch(2)).result()
        assert caught.value.reason == "RUN_SEALED"
        session.close()


def test_a_folder_with_letters_that_mean_something_in_patterns(tmp_path: Path) -> None:
    folder = tmp_path / "a [b] * it's {c} ü"
    with opened(folder) as store:
        sealed(store)
        assert Seen.of(store).counts == COUNTS
    with opened(folder) as store:
        assert Seen.of(store).counts == COUNTS
    assert rows(folder, f"SELECT count(*) FROM requests WHERE run_id = '{RUN}'") == [(COUNTS.request_record_count,)]


def test_a_store_that_moved_finds_its_files(tmp_path: Path) -> None:
    with opened(tmp_path / "before") as store:
        sealed(store)
        before = Seen.of(store)
    (tmp_path / "before").rename(tmp_path / "after")
    with opened(tmp_path / "after") as store:
        assert attrs.evolve(Seen.of(store)) == before
    assert rows(tmp_path / "after", "SELECT count(*) FROM requests") == [(COUNTS.request_record_count,)]


def test_sql_reads_sealed_runs_as_open_ones_and_says_which_run_it_cannot_read(tmp_path: Path) -> None:
    count = "SELECT count(*) AS n, sum(value)::BIGINT AS s FROM counter_samples WHERE run_id = '{}'"
    joined = "SELECT writer_id, count(*) AS n FROM counter_samples JOIN series USING (run_id, series_id) GROUP BY ALL"
    with opened(tmp_path) as store:
        filled(filled(store), "kept")
        before = [rows_of(store, count.format(RUN)), sorted(rows_of(store, joined), key=str)]
        store.seal_run(SealRunRequest(run=RUN))
        assert [rows_of(store, count.format(RUN)), sorted(rows_of(store, joined), key=str)] == before
        assert before[0][0]["n"] == COUNTS.sample_count
        cut(tmp_path / "sealed" / f"run_id={RUN}" / "counter_samples.parquet")
        assert rows_of(store, count.format("kept"))[0]["n"] == COUNTS.sample_count
        with pytest.raises(FailedPreconditionError) as caught:
            rows_of(store, count.format(RUN))
        assert caught.value.reason == "RUN_UNREADABLE"
        assert caught.value.metadata["run"] == RUN
        assert store.healthy
