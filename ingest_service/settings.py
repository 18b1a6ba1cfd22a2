"""Settings of the ingest service, its server and its store, and the environment variables that set them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeVar

from attrs import field, frozen

from linkbound.domain.errors import InvalidArgumentError, Violation
from linkbound.domain.rules import Checked, CrossChecked, finite, instance, optional, whole
from serving.settings import (
    VARIABLES,
    ServerSettings,
    Variable,
    boolean,
    describe_settings,
    port_variable,
    read_settings,
    seconds,
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
    free_space_floor_bytes: int = field(default=512 * MEBIBYTE_BYTES, metadata=whole(0, 2**50))
    """What appends leave free on the disk; 0: nothing."""
    checkpoint_idle_seconds: float = field(default=1.0, metadata=finite(0.001, 86_400))
    """Time without any change after which what is committed moves from the log into the file."""
    checkpoint_age_seconds: float = field(default=15.0, metadata=finite(0.001, 86_400))
    """Time after which it does so at the first moment without any."""
    retention_age_seconds: float | None = field(default=None, metadata=optional(finite(1, 3.2e9)))
    """Age, counted from its sealing, at which a sealed run is deleted; None: never."""
    retention_size_bytes: int | None = field(default=None, metadata=optional(whole(0, 2**60)))
    """Size of the files of all sealed runs above which the oldest are deleted; None: never."""
    retention_interval_seconds: float = field(default=300.0, metadata=finite(0.01, 86_400))
    """How often both are looked at."""
    max_in_flight_batches: int = field(default=16, metadata=whole(1, 10_000))
    max_batch_bytes: int = field(default=MEBIBYTE_BYTES, metadata=whole(1024, 16 * MEBIBYTE_BYTES))


@frozen(kw_only=True)
class AdmissionSettings(Checked):
    """How many calls run at once; further ones are told to come again. Raises InvalidArgumentError on construction."""

    max_streams: int = field(default=256, metadata=whole(1, 10**6))
    max_appends: int = field(default=64, metadata=whole(1, 10**6))
    max_sql_queries: int = field(default=4, metadata=whole(1, 10**4))
    max_watches: int = field(default=64, metadata=whole(1, 10**6))


@frozen(kw_only=True)
class ReadingSettings(Checked):
    """How others read while the service writes. Raises InvalidArgumentError on construction.

    `sql_token_file` names, of the tokens that are accepted, those that may ask SQL, one a line; None: all.
    """

    is_sql_on: bool = field(default=True, metadata=instance(bool))
    sql_time_limit_seconds: float = field(default=300.0, metadata=finite(0.1, 86_400))
    """What a query may take to its last row, slow readers included."""
    sql_token_file: Path | None = field(default=None, metadata=optional(instance(Path)))
    snapshot_interval_seconds: float = field(default=60.0, metadata=finite(0, 86_400 * 365))
    """How often a snapshot is published, where anything changed; 0: only when it is asked for."""


@frozen(kw_only=True)
class IngestSettings(Checked, CrossChecked):
    """Everything that the ingest service takes from its surroundings. Raises InvalidArgumentError on construction."""

    server: ServerSettings = field(metadata=instance(ServerSettings))
    store: StoreSettings = field(metadata=instance(StoreSettings))
    admission: AdmissionSettings = field(factory=AdmissionSettings, metadata=instance(AdmissionSettings))
    reading: ReadingSettings = field(factory=ReadingSettings, metadata=instance(ReadingSettings))

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
        "LINKBOUND_STORE_FREE_SPACE_FLOOR_BYTES",
        "free_space_floor_bytes",
        whole_number,
        "Free space below which appends are refused; 0: never.",
    ),
    Variable(
        "LINKBOUND_STORE_CHECKPOINT_IDLE_SECONDS",
        "checkpoint_idle_seconds",
        seconds,
        "Quiet time after which the log moves into the file.",
    ),
    Variable(
        "LINKBOUND_STORE_CHECKPOINT_AGE_SECONDS",
        "checkpoint_age_seconds",
        seconds,
        "Age of the log at which it does so without waiting for such a time.",
    ),
    Variable(
        "LINKBOUND_STORE_RETENTION_AGE_SECONDS",
        "retention_age_seconds",
        seconds,
        "Age at which sealed runs are deleted; unset: never.",
    ),
    Variable(
        "LINKBOUND_STORE_RETENTION_SIZE_BYTES",
        "retention_size_bytes",
        whole_number,
        "Size of all sealed runs above which the oldest are deleted; unset: never.",
    ),
    Variable(
        "LINKBOUND_STORE_RETENTION_INTERVAL_SECONDS",
        "retention_interval_seconds",
        seconds,
        "How often both are looked at.",
    ),
    Variable(
        "LINKBOUND_STORE_MAX_IN_FLIGHT_BATCHES",
        "max_in_flight_batches",
        whole_number,
        "Batches that one sample stream may have under way.",
    ),
    Variable("LINKBOUND_STORE_MAX_BATCH_BYTES", "max_batch_bytes", whole_number, "Largest batch of a sample stream."),
)
"""What the store reads from the environment; its path comes from the data directory."""

ADMISSION_VARIABLES: tuple[Variable, ...] = (
    Variable("LINKBOUND_INGEST_MAX_STREAMS", "max_streams", whole_number, "Sample streams that may be open at once."),
    Variable("LINKBOUND_INGEST_MAX_APPENDS", "max_appends", whole_number, "Appends of records under way at once."),
    Variable("LINKBOUND_INGEST_MAX_SQL_QUERIES", "max_sql_queries", whole_number, "SQL queries that run at once."),
    Variable("LINKBOUND_INGEST_MAX_WATCHES", "max_watches", whole_number, "Watches of runs that may be open at once."),
)
"""How many calls the ingest service takes at once, as the environment says."""

READING_VARIABLES: tuple[Variable, ...] = (
    Variable("LINKBOUND_INGEST_SQL", "is_sql_on", boolean, "Whether SQL queries are answered: on or off."),
    Variable(
        "LINKBOUND_INGEST_SQL_TIME_LIMIT_SECONDS",
        "sql_time_limit_seconds",
        seconds,
        "What an SQL query may take to its last row.",
    ),
    Variable(
        "LINKBOUND_INGEST_SQL_TOKEN_FILE",
        "sql_token_file",
        Path,
        "Tokens, of the accepted ones, that may ask SQL, one a line; unset: all.",
    ),
    Variable(
        "LINKBOUND_INGEST_SNAPSHOT_INTERVAL_SECONDS",
        "snapshot_interval_seconds",
        seconds,
        "How often the snapshot that other processes open is refreshed, where anything changed; 0: on request only.",
    ),
)
"""How others read while the service writes, as the environment says."""

_MAX_MESSAGE_BYTES_VARIABLE = next(v.name for v in SERVER_VARIABLES if v.field == "max_message_bytes")


def settings_from_environment(environment: Mapping[str, str], store_path: Path) -> IngestSettings:
    """Settings of the ingest service with its store at `store_path`.

    Raises InvalidArgumentError with every violation, named by variable.
    """
    violations: list[Violation] = []
    server = _read(lambda: read_settings(SERVER_VARIABLES, environment, DEFAULT_SERVER_SETTINGS), violations)
    store = _read(lambda: read_settings(STORE_VARIABLES, environment, StoreSettings(path=store_path)), violations)
    admission = _read(lambda: read_settings(ADMISSION_VARIABLES, environment, AdmissionSettings()), violations)
    reading = _read(lambda: read_settings(READING_VARIABLES, environment, ReadingSettings()), violations)
    if server is None or store is None or admission is None or reading is None:
        raise InvalidArgumentError(violations)
    try:
        return IngestSettings(server=server, store=store, admission=admission, reading=reading)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(
            [Violation(_MAX_MESSAGE_BYTES_VARIABLE, v.description, v.reason) for v in error.field_violations]
        ) from error


def describe_server_settings() -> str:
    """The variables of the server with their defaults, one a line."""
    return "\n".join(
        (
            describe_settings(SERVER_VARIABLES, DEFAULT_SERVER_SETTINGS),
            describe_settings(ADMISSION_VARIABLES, AdmissionSettings()),
            describe_settings(READING_VARIABLES, ReadingSettings()),
        )
    )


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
