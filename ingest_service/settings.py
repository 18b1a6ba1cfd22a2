"""Settings of the ingest service, its server and its store, and the environment variables that set them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeVar

from attrs import field, frozen

from linkbound.domain.errors import InvalidArgumentError, Violation
from linkbound.domain.rules import Checked, CrossChecked, instance, optional, whole
from serving.settings import (
    VARIABLES,
    ServerSettings,
    Variable,
    describe_settings,
    port_variable,
    read_settings,
    whole_number,
)

MEBIBYTE_BYTES = 2**20

BATCH_ENVELOPE_BYTES = 6
"""What a batch takes within its message besides itself: one byte for the field, up to five for the length."""

T = TypeVar("T")


@frozen(kw_only=True)
class StoreSettings(Checked):
    """Where the store is and what it may use. Raises InvalidArgumentError on construction.

    The queue limits hold what was taken in and waits to be committed, all writers together. `max_in_flight_batches` and
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


@frozen(kw_only=True)
class IngestSettings(Checked, CrossChecked):
    """Everything that the ingest service takes from its surroundings. Raises InvalidArgumentError on construction."""

    server: ServerSettings = field(metadata=instance(ServerSettings))
    store: StoreSettings = field(metadata=instance(StoreSettings))

    def cross_violations(self) -> Iterable[Violation]:
        """A batch that a stream may send fits into a message that the server takes."""
        needed_bytes = self.store.max_batch_bytes + BATCH_ENVELOPE_BYTES
        if self.server.max_message_bytes < needed_bytes:
            yield Violation(
                "server.max_message_bytes",
                f"{self.server.max_message_bytes} is less than the {needed_bytes} that a message with a batch of"
                f" {self.store.max_batch_bytes} bytes takes",
            )


DEFAULT_SERVER_SETTINGS = ServerSettings(port=50_052)
SERVER_VARIABLES: tuple[Variable, ...] = (port_variable("LINKBOUND_INGEST_PORT"), *VARIABLES)
"""What the ingest service's server reads from the environment."""

STORE_VARIABLES: tuple[Variable, ...] = (
    Variable("LINKBOUND_STORE_MEMORY_LIMIT_BYTES", "memory_limit_bytes", whole_number, "Memory that DuckDB may use."),
    Variable(
        "LINKBOUND_STORE_THREAD_COUNT", "thread_count", whole_number, "Threads of DuckDB; unset: one for each core."
    ),
    Variable(
        "LINKBOUND_STORE_QUEUE_ROW_LIMIT",
        "queue_row_limit",
        whole_number,
        "Rows that may wait to be stored before writers are told to wait.",
    ),
    Variable("LINKBOUND_STORE_QUEUE_BYTE_LIMIT", "queue_byte_limit", whole_number, "Bytes that may wait likewise."),
    Variable(
        "LINKBOUND_STORE_MAX_IN_FLIGHT_BATCHES",
        "max_in_flight_batches",
        whole_number,
        "Batches that one sample stream may have under way.",
    ),
    Variable("LINKBOUND_STORE_MAX_BATCH_BYTES", "max_batch_bytes", whole_number, "Largest batch of a sample stream."),
)
"""What the store reads from the environment; its path comes from the data directory."""

_MAX_MESSAGE_BYTES_VARIABLE = next(v.name for v in SERVER_VARIABLES if v.field == "max_message_bytes")


def settings_from_environment(environment: Mapping[str, str], store_path: Path) -> IngestSettings:
    """Settings of the ingest service with its store at `store_path`.

    Raises InvalidArgumentError with every violation, named by variable.
    """
    violations: list[Violation] = []
    server = _read(lambda: read_settings(SERVER_VARIABLES, environment, DEFAULT_SERVER_SETTINGS), violations)
    store = _read(lambda: read_settings(STORE_VARIABLES, environment, StoreSettings(path=store_path)), violations)
    if server is None or store is None:
        raise InvalidArgumentError(violations)
    try:
        return IngestSettings(server=server, store=store)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(
            [Violation(_MAX_MESSAGE_BYTES_VARIABLE, v.description, v.reason) for v in error.field_violations]
        ) from error


def describe_server_settings() -> str:
    """The variables of the server with their defaults, one a line."""
    return describe_settings(SERVER_VARIABLES, DEFAULT_SERVER_SETTINGS)


def describe_store_settings() -> str:
    """The variables of the store with their defaults, one a line."""
    return describe_settings(STORE_VARIABLES, StoreSettings(path=Path()))


def _read(read: Callable[[], T], violations: list[Violation]) -> T | None:
    """What `read` returns; None where it has violations, which are added."""
    try:
        return read()
    except InvalidArgumentError as error:
        violations.extend(error.field_violations)
        return None
