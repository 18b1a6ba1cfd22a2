"""Collects what came out of each fault, and prints it as one table at the end."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.faults.figures import FaultFigures, figures_table

_FOUND = pytest.StashKey[list[FaultFigures]]()

Report = Callable[[FaultFigures], None]


@pytest.fixture
def report(request: pytest.FixtureRequest) -> Report:
    """Adds a line to the table at the end."""
    return request.config.stash.setdefault(_FOUND, []).append


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the table."""
    found = config.stash.get(_FOUND, [])
    if found:
        terminalreporter.section("faults")
        terminalreporter.write_line(figures_table(found))
