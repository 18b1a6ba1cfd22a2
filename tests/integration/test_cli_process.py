"""The console script as a process: streams, exit codes, a reader that goes away, and what it loads."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.command_line import COMMAND, LIMIT_SECONDS, environment, linkbound, start

PREFILL = ["estimate", "prefill", "--model", "glm-5.3", "--tp", "8", "--prompt-tokens", "8192", "--link", "200g"]
MANY_POINTS = [
    *("estimate", "sweep", "--model", "glm-5.3", "--tp", "8", "--prompt-tokens", "1..1000000+1"),
    *("--link-rates", "1g..1000g+1g"),
]
MANY_PASSES = ["estimate", "schedule", "--prompts", ",".join(["8192"] * 1000), "--outputs", "1024", "--json"]
NEVER_FOR_AN_ESTIMATE = {"duckdb", "numpy", "pyarrow", "grpc", "structlog", "ingest_service", "serving"}


def loaded_by(*arguments: str) -> set[str]:
    """Top-level packages that the command loads."""
    result = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "linkbound.cli.main", *arguments],
        capture_output=True,
        text=True,
        check=True,
        env=environment(),
    )
    return set(re.findall(r"^import time:[^|]*\|[^|]*\|\s*([\w]+)", result.stderr, re.MULTILINE))


@pytest.mark.parametrize(
    "arguments",
    [
        PREFILL,
        ["estimate", "decode", "--model", "glm-5.3", "--tp", "8", "--link", "200g"],
        ["models", "list"],
        ["--help"],
    ],
)
def test_a_local_answer_loads_neither_transport_nor_storage(arguments: list[str]) -> None:
    loaded = loaded_by(*arguments)
    assert "linkbound" in loaded
    assert loaded.isdisjoint(NEVER_FOR_AN_ESTIMATE | {"google"})


def test_json_adds_protobuf_and_nothing_else_heavy() -> None:
    loaded = loaded_by(*PREFILL, "--json")
    assert "google" in loaded
    assert loaded.isdisjoint(NEVER_FOR_AN_ESTIMATE)


def test_an_answer_goes_to_stdout_alone() -> None:
    outcome = linkbound(*PREFILL, "--json")
    assert (outcome.exit_code, outcome.err) == (0, "")
    assert outcome.answer["all_reduce_count"] == 157
    assert outcome.out.isascii()


def test_a_refusal_goes_to_stderr_alone() -> None:
    outcome = linkbound(*PREFILL, "--roce-mtu", "1500", "--json")
    assert (outcome.exit_code, outcome.out) == (2, "")
    assert outcome.err == "linkbound: --roce-mtu: 1500 is not one of 256, 512, 1024, 2048, 4096\n"


@pytest.mark.parametrize(
    "arguments", [["models", "list"], ["models", "list", "--json"], [*MANY_POINTS, "--csv"], MANY_PASSES]
)
def test_a_reader_that_goes_away_is_met_in_silence(arguments: list[str]) -> None:
    reader = subprocess.Popen(["true"], stdin=subprocess.PIPE)
    assert reader.wait() == 0
    result = subprocess.run(
        [COMMAND, *arguments], stdout=reader.stdin, stderr=subprocess.PIPE, text=True, check=False, env=environment()
    )
    assert reader.stdin is not None
    reader.stdin.close()
    # As a shell tells of every tool that a closed pipe ends: 128 and SIGPIPE.
    assert (result.returncode, result.stderr) == (141, "")


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "large",
    [[*MANY_POINTS[:-3], "1..1000+1", "--link-rates", "1g..10g+1g", "--json"], MANY_PASSES],
    ids=["sweep", "schedule"],
)
def test_a_reader_that_goes_away_amid_a_large_document_is_met_in_silence(large: list[str], unbuffered: str) -> None:
    process = subprocess.Popen(
        [COMMAND, *large],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**environment(), "PYTHONUNBUFFERED": unbuffered},
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        # More is to come than a pipe holds.
        assert os.read(process.stdout.fileno(), 1) == b"{"
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(LIMIT_SECONDS) == 141
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


@pytest.mark.parametrize("arguments", [PREFILL, [*PREFILL, "--json"], ["models", "list"]])
def test_an_output_that_is_full_or_closed_is_named(arguments: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        result = subprocess.run(
            [COMMAND, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, check=False, env=environment()
        )
    assert (result.returncode, result.stderr) == (1, "linkbound: standard output: No space left on device\n")
    closed = subprocess.run(
        ["/bin/sh", "-c", '"$@" >&-', "sh", COMMAND, *arguments],
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        env=environment(),
    )
    assert (closed.returncode, closed.stderr) == (1, "linkbound: standard output is closed\n")


def test_an_interrupt_ends_a_sweep_after_a_whole_line() -> None:
    process = start(*MANY_POINTS, "--csv")
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        lines = [process.stdout.readline()]
        process.send_signal(signal.SIGINT)
        lines += process.stdout.readlines()
        assert process.stderr.read().strip() == "linkbound: interrupted"
        assert process.wait(LIMIT_SECONDS) == 130
    finally:
        process.kill()
        process.communicate()
    assert {line.count(",") for line in lines} == {lines[0].count(",")}
    assert all(line.endswith(",true\n") for line in lines[1:])


def test_an_interrupt_ends_a_schedule_between_two_passes() -> None:
    process = start(*MANY_PASSES)
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        opening = [process.stdout.readline() for _ in range(4)]
        process.send_signal(signal.SIGINT)
        passes = [opening[-1], *process.stdout.readlines()]
        assert process.stderr.read().strip() == "linkbound: interrupted"
        assert process.wait(LIMIT_SECONDS) == 130
    finally:
        process.kill()
        process.communicate()
    assert opening[:2] == ["{\n", '  "passes": [\n']
    assert json.loads(f"[{''.join(passes).rstrip().rstrip(',')}]")


def test_a_terminal_without_the_letters_gets_stand_ins() -> None:
    result = subprocess.run(
        [COMMAND, "models", "show", "glm-5.3"],
        capture_output=True,
        check=False,
        env={**environment(), "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
    )
    assert (result.returncode, result.stderr) == (0, b"")
