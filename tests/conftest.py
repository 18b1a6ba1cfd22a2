"""What every test runs under.

Log lines as a server writes them, so that a traceback never renders local variables. A profile of Hypothesis: machines
differ, so nothing is timed.
"""

from __future__ import annotations

import gc
import os

import pytest
from hypothesis import HealthCheck, settings

from serving.logging import configure_logging
from serving.settings import LogFormat, LogLevel

settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# CI tries the same examples each time, so that a change is judged by itself; other runs search on.
settings.register_profile("repeatable", parent=settings.get_profile("untimed"), derandomize=True)
settings.load_profile("repeatable" if os.environ.get("CI") else "untimed")


def pytest_collection_finish() -> None:
    """What was collected stays to the end: the garbage collector need not look at it time and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def _no_data_of_the_user(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What a developer imported into their own catalogue is not there for tests."""
    os.environ["XDG_DATA_HOME"] = str(tmp_path_factory.mktemp("user-data"))
    os.environ.pop("LINKBOUND_DATA", None)


@pytest.fixture(autouse=True, scope="session")
def _logging() -> None:
    configure_logging(LogFormat.CONSOLE, LogLevel.DEBUG)
