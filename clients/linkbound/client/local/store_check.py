"""Checks and mends the files of a store on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from linkbound.client.local.blocking import STORE_FILE_NAME, default_data_directory, services_extra_missing

if TYPE_CHECKING:
    from linkbound.domain.store_check import StoreCheck
    from linkbound.domain.store_recovery import LogRecovery


def verify_local_store(data_directory: Path | str | None) -> StoreCheck:
    """Holds every file of the sealed runs in `data_directory` against what was sealed; None is the user's directory.

    The store may be in use meanwhile. Raises FailedPreconditionError (SERVICES_EXTRA_MISSING) and OSError.
    """
    try:
        from ingest_service.store.verification import verify_store
    except ModuleNotFoundError as error:
        raise services_extra_missing(error) from error
    directory = default_data_directory() if data_directory is None else Path(data_directory)
    return verify_store(directory / STORE_FILE_NAME)


def recover_local_store(data_directory: Path | str | None) -> LogRecovery:
    """Keeps what stands before the damage in the log of the store in `data_directory`; None is the user's directory.

    The log as it was stays beside it. Raises FailedPreconditionError (SERVICES_EXTRA_MISSING; STORE_UNREADABLE,
    SCHEMA_NEWER), UnavailableError (STORE_LOCKED), ResourceExhaustedError (DISK_FULL) and OSError.
    """
    try:
        from ingest_service.settings import StoreSettings
        from ingest_service.store.log_recovery import recover_log
    except ModuleNotFoundError as error:
        raise services_extra_missing(error) from error
    directory = default_data_directory() if data_directory is None else Path(data_directory)
    return recover_log(StoreSettings(path=directory / STORE_FILE_NAME))
