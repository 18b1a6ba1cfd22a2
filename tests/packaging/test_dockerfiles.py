"""What the Dockerfiles name exists, and what they run runs: outside an image, on free ports.

Images cannot be built where the tests run, so their parts are held one by one: every COPY source,
the console script of entry point and health check, and the two commands together.
"""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from estimator_service.settings import SERVER_VARIABLES, server_settings_from_environment
from linkbound.cli import connect
from linkbound.domain.errors import InvalidArgumentError
from tests.packaging.project import ROOT, project_table

DOCKERFILES = sorted(ROOT.joinpath("docker").glob("*.Dockerfile"))
COMPOSE = ROOT / "docker" / "compose.yaml"
LIMIT_SECONDS = 60.0


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
    environment = {**os.environ, **compose_environment(path.stem), "LINKBOUND_DATA": str(tmp_path / "data")}
    log = tmp_path / "log"
    with log.open("wb") as output:
        server = subprocess.Popen(
            outside_image(exec_form(path, "ENTRYPOINT"), exposed, 0),
            env=environment,
            stdout=subprocess.PIPE,
            stderr=output,
            text=True,
        )
    try:
        # Any free port, which the server says once it serves.
        assert server.stdout is not None
        announced = server.stdout.readline()
        match = re.fullmatch(rf"{path.stem} serving on 127\.0\.0\.1:(\d+)\n", announced)
        assert match is not None, (announced, log.read_text())
        health = [*outside_image(exec_form(path, "HEALTHCHECK"), exposed, int(match[1])), "--timeout"]
        assert health_exit_code([*health, f"{LIMIT_SECONDS:g}s"], environment) == 0
        server.send_signal(signal.SIGTERM)
        assert server.wait(LIMIT_SECONDS) == 0, log.read_text()
    finally:
        server.kill()
        server.communicate()
    assert health_exit_code([*health, "200ms"], environment) == 3


def health_exit_code(command: list[str], environment: dict[str, str]) -> int:
    return subprocess.run(command, env=environment, capture_output=True, check=False).returncode


@pytest.mark.parametrize("path", DOCKERFILES, ids=dockerfile_id)
def test_the_variables_that_the_file_speaks_of_exist(path: Path) -> None:
    comments = "\n".join(line for line in path.read_text().splitlines() if line.startswith("#"))
    named = set(re.findall(r"\bLINKBOUND_[A-Z_]+[A-Z]\b(?!_\*)", comments))
    known = {variable.name for variable in SERVER_VARIABLES} | {
        connect.TLS_CA_FILE,
        connect.TLS_SERVER_NAME,
        connect.TLS_CLIENT_CERTIFICATE_FILE,
        connect.TLS_CLIENT_KEY_FILE,
    }
    assert {connect.TLS_CA_FILE, connect.TLS_SERVER_NAME} <= named
    assert named <= known
