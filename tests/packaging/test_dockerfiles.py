"""What the Dockerfiles name exists, and what they run runs: outside an image, on free ports.

Images cannot be built where the tests run, so their parts are held one by one: every COPY source,
the console script of entry point and health check, and the two commands together.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from estimator_service.settings import server_settings_from_environment
from linkbound.domain.errors import InvalidArgumentError
from tests.packaging.project import ROOT, project_table

DOCKERFILES = sorted(ROOT.joinpath("docker").glob("*.Dockerfile"))
COMPOSE = ROOT / "docker" / "compose.yaml"
START_LIMIT_SECONDS = 60.0
POLL_SECONDS = 0.2


def instructions(path: Path) -> list[tuple[str, str]]:
    """Returns (instruction, arguments) of a Dockerfile, continuation lines joined."""
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    pairs = [line.split(maxsplit=1) for line in joined.splitlines() if line.strip()]
    return [(name, arguments) for name, arguments in pairs]


def exec_form(path: Path, instruction: str) -> list[str]:
    """Returns the one command that `instruction` gives as a JSON array."""
    (arguments,) = [text for name, text in instructions(path) if name == instruction]
    command = json.loads(arguments[arguments.index("[") :])
    assert isinstance(command, list)
    return command


def copied_sources(path: Path) -> Iterator[str]:
    """Yields what the Dockerfile copies out of the repository."""
    for name, arguments in instructions(path):
        if name == "COPY" and "--from=" not in arguments:
            yield from arguments.split()[:-1]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    assert isinstance(port, int)
    return port


def outside_image(command: list[str], image_port: int, port: int) -> list[str]:
    """Returns a command of an image as it runs here: this environment, loopback, a free port."""
    script, *arguments = command
    here = {"0.0.0.0": "127.0.0.1", str(image_port): str(port)}
    replaced = [here.get(argument, argument) for argument in arguments]
    moved = [argument.replace(f":{image_port}", f":{port}") for argument in replaced]
    return [str(Path(sys.executable).parent / script), *moved]


def dockerfile_id(path: Path) -> str:
    return path.stem


def test_each_service_has_a_dockerfile() -> None:
    assert [path.stem for path in DOCKERFILES] == ["estimator", "ingest"]


@pytest.mark.parametrize("path", DOCKERFILES, ids=dockerfile_id)
def test_every_copied_file_exists(path: Path) -> None:
    sources = list(copied_sources(path))
    assert sources
    for source in sources:
        assert ROOT.joinpath(source).exists(), source


@pytest.mark.parametrize("path", DOCKERFILES, ids=dockerfile_id)
def test_every_copied_file_is_in_the_build_context(path: Path) -> None:
    ignore = ROOT.joinpath(".dockerignore").read_text().splitlines()
    allowed = {line[1:] for line in ignore if line.startswith("!")}
    assert "*" in ignore
    assert {source.rstrip("/") for source in copied_sources(path)} == allowed


@pytest.mark.parametrize("path", DOCKERFILES, ids=dockerfile_id)
def test_the_image_has_every_package_of_the_wheel(path: Path) -> None:
    copied = [ROOT / source for source in copied_sources(path)]
    for package in ["estimator_service", "ingest_service", "serving", "clients"]:
        assert ROOT / package in copied


@pytest.mark.parametrize("path", DOCKERFILES, ids=dockerfile_id)
def test_the_image_does_not_run_as_root(path: Path) -> None:
    (user,) = [arguments for name, arguments in instructions(path) if name == "USER"]
    assert int(user) > 0


@pytest.mark.parametrize("path", DOCKERFILES, ids=dockerfile_id)
def test_the_commands_are_the_console_script(path: Path) -> None:
    scripts = project_table()["scripts"]
    assert isinstance(scripts, dict)
    assert exec_form(path, "ENTRYPOINT")[0] in scripts
    assert exec_form(path, "HEALTHCHECK")[0] in scripts


def test_compose_builds_the_dockerfiles() -> None:
    named = re.findall(r"^\s*dockerfile: (\S+)$", COMPOSE.read_text(), re.MULTILINE)
    assert sorted(named) == [path.relative_to(ROOT).as_posix() for path in DOCKERFILES]


@pytest.mark.parametrize("path", DOCKERFILES, ids=dockerfile_id)
def test_compose_publishes_the_exposed_port(path: Path) -> None:
    (exposed,) = [arguments for name, arguments in instructions(path) if name == "EXPOSE"]
    assert f'"127.0.0.1:{exposed}:{exposed}"' in COMPOSE.read_text()


def compose_environment(service: str) -> dict[str, str]:
    """Returns the variables that compose gives a service."""
    block = re.search(rf"^  {service}:$(.*?)(?=^  \S|^\S|\Z)", COMPOSE.read_text(), re.MULTILINE | re.DOTALL)
    assert block is not None
    return dict(re.findall(r'^      (LINKBOUND_[A-Z_]+): "(.*)"$', block[1], re.MULTILINE))


@pytest.mark.parametrize("path", DOCKERFILES, ids=dockerfile_id)
def test_the_address_of_the_image_needs_what_compose_sets_and_no_more(path: Path) -> None:
    command = exec_form(path, "ENTRYPOINT")
    address = {"LINKBOUND_SERVER_HOST": command[command.index("--host") + 1]}
    with pytest.raises(InvalidArgumentError, match="LINKBOUND_SERVER_HOST"):
        server_settings_from_environment(address)
    settings = server_settings_from_environment({**address, **compose_environment(path.stem)})
    assert settings.host == "0.0.0.0"


@pytest.mark.parametrize("path", DOCKERFILES, ids=dockerfile_id)
def test_the_entry_point_serves_and_the_health_check_sees_it(path: Path, tmp_path: Path) -> None:
    (exposed,) = [int(arguments) for name, arguments in instructions(path) if name == "EXPOSE"]
    port = free_port()
    health = outside_image(exec_form(path, "HEALTHCHECK"), exposed, port)
    environment = {**os.environ, **compose_environment(path.stem), "LINKBOUND_DATA": str(tmp_path / "data")}

    def health_exit_code() -> int:
        return subprocess.run(health, env=environment, capture_output=True, check=False).returncode

    assert health_exit_code() == 3
    log = tmp_path / "log"
    with log.open("wb") as output:
        server = subprocess.Popen(
            outside_image(exec_form(path, "ENTRYPOINT"), exposed, port),
            env=environment,
            stdout=output,
            stderr=output,
        )
    try:
        give_up = time.monotonic() + START_LIMIT_SECONDS
        while health_exit_code() != 0:
            assert server.poll() is None, log.read_text()
            assert time.monotonic() < give_up, log.read_text()
            time.sleep(POLL_SECONDS)
        server.send_signal(signal.SIGTERM)
        assert server.wait(START_LIMIT_SECONDS) == 0, log.read_text()
    finally:
        server.kill()
        server.wait()
    assert health_exit_code() == 3
