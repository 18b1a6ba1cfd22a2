"""The schema as numbered migrations: `migrations/0001_name.sql`, `0002_...`, each applied once, in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from importlib import resources

import duckdb
from attrs import frozen

from ingest_service.store.queries import select
from ingest_service.store.timestamps import to_utc_column
from linkbound.domain.errors import FailedPreconditionError


@frozen
class Migration:
    """One step of the schema."""

    version: int
    name: str
    sql: str


def shipped_migrations() -> tuple[Migration, ...]:
    """The migrations of this release, in order."""
    folder = resources.files("ingest_service.store") / "migrations"
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name)
    return tuple(
        Migration(int(file.name[:4]), file.name[5:].removesuffix(".sql"), file.read_text(encoding="utf-8"))
        for file in files
    )


def applied_versions(connection: duckdb.DuckDBPyConnection) -> tuple[int, ...]:
    """Versions that the database has, ascending; none where it is new."""
    tables = select(
        connection,
        "SELECT table_name FROM duckdb_tables() WHERE schema_name = 'hot' AND table_name = 'schema_versions'",
    )
    if not tables:
        return ()
    rows = select(connection, "SELECT version FROM hot.schema_versions ORDER BY version")
    return tuple(version for (version,) in rows)


def migrate(
    connection: duckdb.DuckDBPyConnection, migrations: Sequence[Migration], clock: Callable[[], datetime]
) -> None:
    """Applies what is missing, each migration in one transaction with its version.

    A checkpoint follows each, so that no later damage of the log can take a schema change with it.

    Raises FailedPreconditionError (SCHEMA_NEWER) where a newer release made the file.
    """
    applied = applied_versions(connection)
    _check_not_newer(applied, migrations)
    for migration in migrations:
        if migration.version not in applied:
            _apply(connection, migration, clock())


def check_versions(connection: duckdb.DuckDBPyConnection, migrations: Sequence[Migration]) -> None:
    """Raises FailedPreconditionError (SCHEMA_NEWER, SCHEMA_OLDER) where the database has not just these migrations."""
    applied = applied_versions(connection)
    _check_not_newer(applied, migrations)
    missing = [migration.version for migration in migrations if migration.version not in applied]
    if missing:
        raise FailedPreconditionError(
            f"the file lacks schema version {missing[0]} and cannot be changed; the service that writes it is older",
            reason="SCHEMA_OLDER",
            metadata={"missingSchemaVersion": str(missing[0])},
        )


def _check_not_newer(applied: Sequence[int], migrations: Sequence[Migration]) -> None:
    known = [migration.version for migration in migrations]
    newer = [version for version in applied if version not in known]
    if newer:
        raise FailedPreconditionError(
            f"the store has schema version {newer[-1]}, this release knows up to {known[-1]}; use a newer release",
            reason="SCHEMA_NEWER",
            metadata={"schemaVersion": str(newer[-1]), "knownSchemaVersion": str(known[-1])},
        )


def _apply(connection: duckdb.DuckDBPyConnection, migration: Migration, now: datetime) -> None:
    connection.begin()
    try:
        connection.execute(migration.sql)
        connection.execute(
            "INSERT INTO hot.schema_versions VALUES (?, ?, ?)", [migration.version, migration.name, to_utc_column(now)]
        )
    except BaseException:
        connection.rollback()
        raise
    connection.commit()
    connection.execute("CHECKPOINT")
