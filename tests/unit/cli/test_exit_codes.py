"""Failures that are not about input."""

import click
import pytest

from linkbound.cli import main
from linkbound.cli.lazy import LazyCommand
from tests.unit.cli.command import PREFILL, Command


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> list[BaseException]:
    """What the command `fail` raises."""
    raised: list[BaseException] = []

    @click.command()
    def fail() -> None:
        raise raised[0]

    class Failing(LazyCommand):
        def load(self) -> click.Command:
            return fail

    monkeypatch.setitem(main.linkbound.lazy, "fail", Failing("", ""))
    return raised


def test_an_interrupt_is_130(failing: list[BaseException], linkbound: Command) -> None:
    failing.append(KeyboardInterrupt())
    outcome = linkbound("fail")
    assert outcome.exit_code == 130
    assert outcome.err.strip() == "linkbound: interrupted"


@pytest.mark.parametrize(
    ("code", "expected", "told"),
    [(None, 0, ""), (0, 0, ""), (7, 7, ""), ("no such plugin", 1, "linkbound: no such plugin\n")],
)
def test_what_ends_the_process_keeps_its_code(
    failing: list[BaseException], linkbound: Command, code: object, expected: int, told: str
) -> None:
    failing.append(SystemExit(code))
    outcome = linkbound("fail")
    assert (outcome.exit_code, outcome.err) == (expected, told)
    # What comes next still has an output.
    assert linkbound("links").out


def test_a_fault_is_1_and_no_traceback(failing: list[BaseException], linkbound: Command) -> None:
    failing.append(RuntimeError("boom"))
    outcome = linkbound("fail")
    assert outcome.exit_code == 1
    assert outcome.err == "linkbound: internal error: RuntimeError: boom (LINKBOUND_DEBUG=1 shows where)\n"


def test_a_fault_shows_where_if_asked(
    failing: list[BaseException], linkbound: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing.append(RuntimeError("boom"))
    monkeypatch.setenv("LINKBOUND_DEBUG", "1")
    with pytest.raises(RuntimeError, match="boom"):
        linkbound("fail")


@pytest.mark.parametrize("group", [[], ["estimate"], ["models"], ["calibrations"], ["plan"], ["runs"]])
def test_a_group_without_a_command_shows_its_help(group: list[str], linkbound: Command) -> None:
    outcome = linkbound(*group)
    assert (outcome.exit_code, outcome.out) == (2, "")
    assert outcome.err == linkbound(*group, "--help").out


def test_nobody_listens_is_3(linkbound: Command) -> None:
    outcome = linkbound(*PREFILL, "--target", "127.0.0.1:1")
    assert (outcome.exit_code, outcome.out) == (3, "")
    assert outcome.err.startswith("linkbound: 127.0.0.1:1: ")


def test_a_target_of_the_environment_is_used(linkbound: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINKBOUND_ESTIMATOR", "127.0.0.1:1")
    assert linkbound(*PREFILL).exit_code == 3
    assert linkbound(*PREFILL, "--target", "local:").exit_code == 0


def test_health_of_nothing_is_3(linkbound: Command) -> None:
    outcome = linkbound("health", "--target", "127.0.0.1:1", "--timeout", "100ms")
    assert (outcome.exit_code, outcome.out) == (3, "")
    assert outcome.err.startswith("linkbound: server does not serve: 127.0.0.1:1 ")
