import pytest

from tests.unit.cli.command import SETTINGS, Command


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests may have settings of their own."""
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def linkbound(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)
