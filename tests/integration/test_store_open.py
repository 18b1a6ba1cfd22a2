"""Opening a store: locks, foreign files, migrations, and what SQL can no longer reach."""

import errno
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from ingest_service.service import Ingest, StoreSettings
from ingest_service.store.database import open_database
from ingest_service.store.schema import Migration, applied_versions, migrate, shipped_migrations
from linkbound.domain.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    ResourceExhaustedError,
    UnavailableError,
)
from tests.integration.store_content import TickingClock, appended, made_or_opened, rows, with_run

HOLD_FILE = """
import sys, duckdb
connection = duckdb.connect(sys.argv[1])
print("held", flush=True)
sys.stdin.read()
"""


def test_a_missing_folder_is_made(tmp_path: Path) -> None:
    with made_or_opened(tmp_path / "a" / "b") as store:
        assert store.healthy
    assert (tmp_path / "a" / "b" / "linkbound.duckdb").is_file()


def test_a_file_that_another_process_holds_is_named_with_its_holder(tmp_path: Path) -> None:
    made_or_opened(tmp_path).close()
    path = tmp_path / "linkbound.duckdb"
    with subprocess.Popen(
        [sys.executable, "-c", HOLD_FILE, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(UnavailableError) as caught:
            made_or_opened(tmp_path)
        holder.communicate()
    assert caught.value.reason == "STORE_LOCKED"
    assert caught.value.metadata["pid"] == str(holder.pid)
    assert caught.value.metadata["path"] == str(path)
    assert str(holder.pid) in caught.value.message
    made_or_opened(tmp_path).close()


@pytest.mark.parametrize("name", ["linkbound.duckdb", "other-name.duckdb"])
def test_one_process_opens_a_file_once(tmp_path: Path, name: str) -> None:
    with made_or_opened(tmp_path) as store:
        if name != "linkbound.duckdb":
            (tmp_path / name).symlink_to(tmp_path / "linkbound.duckdb")
        with pytest.raises(UnavailableError) as caught:
            Ingest.open(StoreSettings(path=tmp_path / name))
        assert caught.value.reason == "STORE_LOCKED"
        assert caught.value.metadata["pid"] == str(os.getpid())
        assert with_run(store).append(appended(1)).result().committed_sequence_number == 1


@pytest.mark.parametrize("content", [b"not a database", b"x" * 100_000])
def test_a_file_that_is_no_store_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "linkbound.duckdb"
    path.write_bytes(content)
    with pytest.raises(FailedPreconditionError) as caught:
        made_or_opened(tmp_path)
    assert caught.value.reason == "STORE_UNREADABLE"
    assert caught.value.metadata["path"] == str(path)
    assert path.read_bytes() == content


def test_a_folder_where_none_can_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FailedPreconditionError) as caught:
        made_or_opened(tmp_path / "file")
    assert caught.value.reason == "STORE_UNREADABLE"


def test_a_store_of_a_newer_release_is_refused(tmp_path: Path) -> None:
    made_or_opened(tmp_path).close()
    newest = shipped_migrations()[-1].version
    with duckdb.connect(str(tmp_path / "linkbound.duckdb")) as connection:
        connection.execute("INSERT INTO hot.schema_versions VALUES (?, 'later', now()::TIMESTAMP)", [newest + 1])
    with pytest.raises(FailedPreconditionError) as caught:
        made_or_opened(tmp_path)
    assert caught.value.reason == "SCHEMA_NEWER"
    assert caught.value.metadata == {"schemaVersion": str(newest + 1), "knownSchemaVersion": str(newest)}
    assert len(rows(tmp_path, "SELECT version FROM hot.schema_versions")) == newest + 1


def test_every_migration_is_applied_once_in_order(tmp_path: Path) -> None:
    made_or_opened(tmp_path).close()
    first = rows(tmp_path, "SELECT * FROM hot.schema_versions ORDER BY apply_time_utc")
    assert [version for version, _, _ in first] == [m.version for m in shipped_migrations()]
    assert [version for version, _, _ in first] == list(range(1, len(first) + 1))
    made_or_opened(tmp_path).close()
    assert rows(tmp_path, "SELECT * FROM hot.schema_versions ORDER BY apply_time_utc") == first


def test_a_migration_that_fails_leaves_nothing_and_the_ones_before(tmp_path: Path) -> None:
    good = (
        Migration(1, "versions", shipped_migrations()[0].sql),
        Migration(2, "good", "CREATE TABLE good (a INTEGER);"),
    )
    bad = Migration(3, "bad", "CREATE TABLE bad (a INTEGER); CREATE TABLE good (a INTEGER);")
    path = str(tmp_path / "x.duckdb")
    with duckdb.connect(path) as connection:
        with pytest.raises(duckdb.CatalogException):
            migrate(connection, (*good, bad), TickingClock())
        assert applied_versions(connection) == (1, 2)
    with duckdb.connect(path) as connection:
        tables = connection.execute("SELECT table_name FROM duckdb_tables() ORDER BY 1").fetchall()
        assert tables == [("good",), ("schema_versions",)]
        migrate(connection, (*good, Migration(3, "bad", "CREATE TABLE bad (a INTEGER);")), TickingClock())
        assert applied_versions(connection) == (1, 2, 3)


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with open_database(StoreSettings(path=tmp_path / "linkbound.duckdb"), TickingClock()) as opened_connection:
        yield opened_connection


@pytest.mark.parametrize(
    "sql",
    [
        "COPY (SELECT 1) TO 'out.csv'",
        "SELECT * FROM read_csv('/etc/passwd')",
        "ATTACH 'other.duckdb'",
        "SET enable_external_access = true",
        "SET threads = 1",
        "RESET memory_limit",
    ],
)
def test_sql_reaches_neither_files_nor_settings(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    with pytest.raises((duckdb.PermissionException, duckdb.InvalidInputException)):
        connection.cursor().execute(sql)


def test_no_extension_is_loaded_or_installed_from_anywhere(connection: duckdb.DuckDBPyConnection) -> None:
    settings = ("autoload_known_extensions", "autoinstall_known_extensions", "allow_community_extensions")
    for setting in settings:
        assert connection.execute(f"SELECT current_setting('{setting}')").fetchall() == [(False,)]


NO_SPACE = "Could not write file: No space left on device"


@pytest.mark.parametrize("error", [duckdb.IOException(NO_SPACE), OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))])
def test_a_disk_that_is_full_at_the_opening_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def connect(*arguments: object, **options: object) -> None:
        raise error

    monkeypatch.setattr(duckdb, "connect", connect)
    with pytest.raises(ResourceExhaustedError) as caught:
        made_or_opened(tmp_path)
    assert (caught.value.reason, caught.value.retry_delay_seconds) == ("DISK_FULL", None)


@pytest.mark.parametrize("content", [b"", b"something"], ids=["empty", "partly written"])
def test_a_full_disk_leaves_no_empty_file_behind_and_touches_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    file = tmp_path / "linkbound.duckdb"

    def connect(*arguments: object, **options: object) -> None:
        file.write_bytes(content)
        raise duckdb.IOException(NO_SPACE)

    with monkeypatch.context() as patched:
        patched.setattr(duckdb, "connect", connect)
        with pytest.raises(ResourceExhaustedError):
            made_or_opened(tmp_path)
        assert file.exists() == bool(content)
        file.touch()
        with pytest.raises(ResourceExhaustedError):
            made_or_opened(tmp_path)
        assert file.exists()


def test_the_file_has_the_storage_version_that_every_supported_release_reads(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    row = connection.execute(
        "SELECT tags['storage_version'] FROM duckdb_databases() WHERE database_name = 'linkbound'"
    ).fetchone()
    assert row is not None
    assert re.match(r"v1\.5\.", row[0])


def test_every_table_and_column_says_what_it_is(connection: duckdb.DuckDBPyConnection) -> None:
    silent = connection.execute(
        "SELECT table_name FROM duckdb_tables() WHERE comment IS NULL AND NOT internal"
        " UNION ALL SELECT table_name || '.' || column_name FROM duckdb_columns()"
        " WHERE comment IS NULL AND NOT internal"
    ).fetchall()
    assert silent == []


def test_data_tables_have_no_keys_and_no_table_has_a_further_index(connection: duckdb.DuckDBPyConnection) -> None:
    keyed = connection.execute(
        "SELECT table_name, constraint_type FROM duckdb_constraints() WHERE constraint_type != 'NOT NULL' ORDER BY 1"
    ).fetchall()
    assert keyed == [
        ("ledger", "PRIMARY KEY"),
        ("predicted_values", "PRIMARY KEY"),
        ("predictions", "PRIMARY KEY"),
        ("run_changes", "PRIMARY KEY"),
        ("runs", "PRIMARY KEY"),
        ("schema_versions", "PRIMARY KEY"),
        ("sealed_writers", "PRIMARY KEY"),
        ("series", "PRIMARY KEY"),
        ("settings", "PRIMARY KEY"),
    ]
    assert connection.execute("SELECT * FROM duckdb_indexes()").fetchall() == []


UNITS = (
    "_ns", "_seconds", "_bytes", "_bytes_per_rank", "_per_second", "_count", "_bits", "_tokens", "_utc", "_index",
    "_number", "_id", "version", "revision", "port", "_fraction", "_ratio", "_bytes_per_prompt_token",
)  # fmt: skip
IN_THE_UNIT_OF_THEIR_METRIC = (
    "lower", "expected", "upper", "mean", "minimum", "maximum", "baseline_mean", "baseline_minimum",
    "baseline_maximum", "measured_mean", "measured_minimum", "measured_maximum",
)  # fmt: skip
IN_THE_UNIT_OF_THEIR_SERIES = ("value",)
IN_SECONDS_BY_NAME = ("seconds",)


def test_the_unit_stands_in_the_name_of_every_number(connection: duckdb.DuckDBPyConnection) -> None:
    columns = connection.execute(
        "SELECT column_name FROM duckdb_columns()"
        " WHERE NOT internal AND data_type IN ('INTEGER', 'BIGINT', 'DOUBLE', 'TIMESTAMP')"
    ).fetchall()
    known = (*IN_THE_UNIT_OF_THEIR_METRIC, *IN_THE_UNIT_OF_THEIR_SERIES, *IN_SECONDS_BY_NAME)
    assert {name for (name,) in columns if name not in known and not name.endswith(UNITS)} == set()


def test_settings_that_make_no_sense_are_all_named() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        StoreSettings(path=Path("x"), memory_limit_bytes=0, thread_count=0, queue_row_limit=-1, max_batch_bytes=2**30)
    assert [v.field for v in caught.value.field_violations] == [
        "memory_limit_bytes",
        "thread_count",
        "queue_row_limit",
        "max_batch_bytes",
    ]
