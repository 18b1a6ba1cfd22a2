import logging
from collections.abc import Iterator

import pytest
import structlog

from tests.unit.cli.command import SETTINGS, Command


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests may have settings of their own."""
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def logs_as_before() -> Iterator[None]:
    """`serve` sends the logs of the process to its stderr, which is a captured one here and closed after the test."""
    structured, handlers, level = structlog.get_config(), logging.root.handlers[:], logging.root.level
    yield
    structlog.configure(**structured)
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)


@pytest.fixture
def linkbound(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)
