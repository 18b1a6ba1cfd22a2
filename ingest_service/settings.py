"""Settings of the ingest service's store."""

from __future__ import annotations

from pathlib import Path

from attrs import field, frozen

from linkbound.domain.rules import Checked, instance, optional, whole

MEBIBYTE_BYTES = 2**20


@frozen(kw_only=True)
class StoreSettings(Checked):
    """Where the store is and what it may use. Raises InvalidArgumentError on construction.

    The queue limits hold what was taken in and is not committed yet, all writers together. `max_in_flight_batches` and
    `max_batch_bytes` are what each sample stream is told.
    """

    path: Path = field(metadata=instance(Path))
    memory_limit_bytes: int = field(default=1024 * MEBIBYTE_BYTES, metadata=whole(64 * MEBIBYTE_BYTES, 2**50))
    thread_count: int | None = field(default=None, metadata=optional(whole(1, 1024)))
    """Threads of DuckDB; None: one per core."""
    queue_row_limit: int = field(default=200_000, metadata=whole(1, 10**8))
    queue_byte_limit: int = field(default=64 * MEBIBYTE_BYTES, metadata=whole(1, 2**40))
    max_in_flight_batches: int = field(default=16, metadata=whole(1, 10_000))
    max_batch_bytes: int = field(default=MEBIBYTE_BYTES, metadata=whole(1024, 16 * MEBIBYTE_BYTES))
