"""Instants in the columns `*_utc`: TIMESTAMP without zone, always UTC, in microseconds.

DuckDB's TIMESTAMP WITH TIME ZONE needs an extension or a further package to be read.
"""

from __future__ import annotations

from datetime import UTC, datetime


def utc_now() -> datetime:
    """The wall clock."""
    return datetime.now(UTC)


def to_utc_column(instant: datetime) -> datetime:
    """The value that a `*_utc` column takes."""
    return instant.astimezone(UTC).replace(tzinfo=None)


def from_utc_column(value: datetime) -> datetime:
    """The instant in a `*_utc` column."""
    return value.replace(tzinfo=UTC)
