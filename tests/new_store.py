"""New stores without the time it takes to make one, which is more than most tests spend on anything else."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from ingest_service.service import Ingest, StoreSettings
from ingest_service.store.schema import shipped_migrations
from linkbound.client.local.blocking import STORE_FILE_NAME

START = datetime(2026, 1, 1, tzinfo=UTC)
MIGRATION_COUNT = len(shipped_migrations())
"""As often does making a store look at the clock."""


def laid(path: Path) -> Path:
    """`path`, with a store at it that is as opening one there would make it, unless something is there."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_new_store())
    return path


@functools.cache
def _new_store() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / STORE_FILE_NAME
        Ingest.open(StoreSettings(path=path), _seconds_from_the_start()).close()
        return path.read_bytes()


def _seconds_from_the_start() -> Callable[[], datetime]:
    moments = iter([START + timedelta(seconds=second) for second in range(1, 60)])
    return lambda: next(moments)
