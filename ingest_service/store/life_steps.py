"""The steps of a sealing and of a deletion; after each one a process may be killed."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum


class LifeStep(Enum):
    """What has just been done for a run."""

    CLOSED = "CLOSED"
    FILE_WRITTEN = "FILE_WRITTEN"
    FILE_VERIFIED = "FILE_VERIFIED"
    MANIFEST_WRITTEN = "MANIFEST_WRITTEN"
    PUBLISHED = "PUBLISHED"
    SEALED = "SEALED"
    DELETED = "DELETED"
    FOLDER_REMOVED = "FOLDER_REMOVED"
    SLICE_DROPPED = "SLICE_DROPPED"
    DROPPED = "DROPPED"


OnStep = Callable[[LifeStep], None]
"""Told of each step, on the thread that takes it."""


def pass_on(_step: LifeStep) -> None:
    """Tells nobody."""
