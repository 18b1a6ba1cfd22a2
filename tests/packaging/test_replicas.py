"""The compose file of several estimators: what it names exists, and what it tells clients to use is a target."""

import re

from estimator_service.settings import SERVER_VARIABLES, server_settings_from_environment
from linkbound.client.target import TargetKind, parse_target
from tests.packaging.project import ROOT
from tests.packaging.test_dockerfiles import exec_form

COMPOSE = ROOT / "docker" / "compose.replicas.yaml"
TEXT = COMPOSE.read_text()
PAGE = (ROOT / "docs" / "scale-out.md").read_text()
DOCKERFILE = ROOT / "docker" / "estimator.Dockerfile"
SERVICE = "estimator"


def replica_count() -> int:
    (count,) = re.findall(r"^      replicas: (\d+)$", TEXT, re.MULTILINE)
    return int(count)


def published_ports() -> list[int]:
    """The ports of this machine, one for each replica."""
    (first, last) = re.findall(r'^      - "127\.0\.0\.1:(\d+)-(\d+):50051"$', TEXT, re.MULTILINE)[0]
    return list(range(int(first), int(last) + 1))


def environment() -> dict[str, str]:
    return dict(re.findall(r'^      (LINKBOUND_[A-Z_]+): "(.*)"$', TEXT, re.MULTILINE))


def test_it_builds_the_estimator() -> None:
    assert re.findall(r"^      dockerfile: (\S+)$", TEXT, re.MULTILINE) == [DOCKERFILE.relative_to(ROOT).as_posix()]
    assert re.findall(r"^  (\w+):$", TEXT, re.MULTILINE) == [SERVICE]


def test_every_replica_has_a_port_of_this_machine() -> None:
    assert replica_count() > 1
    assert len(published_ports()) == replica_count()


def test_its_variables_are_settings_of_the_server() -> None:
    assert set(environment()) <= {variable.name for variable in SERVER_VARIABLES}
    command = exec_form(DOCKERFILE, "ENTRYPOINT")
    host = {"LINKBOUND_SERVER_HOST": command[command.index("--host") + 1]}
    settings = server_settings_from_environment({**host, **environment()})
    assert settings.connection_age_seconds == 300
    assert settings.host == "0.0.0.0"


def test_the_targets_that_it_and_the_page_speak_of_are_targets() -> None:
    (name, addresses) = re.findall(r"LINKBOUND_ESTIMATOR=(\S+)", TEXT)
    assert parse_target(name).kind is TargetKind.REMOTE
    assert name == f"dns:///{SERVICE}:50051"
    assert addresses == "ipv4:" + ",".join(f"127.0.0.1:{port}" for port in published_ports())
    for target in [addresses, *re.findall(r"`((?:dns:///|ipv[46]:)?[\w.\[\]:,]+:50051)`", PAGE)]:
        assert parse_target(target).kind is TargetKind.REMOTE
    assert f"LINKBOUND_ESTIMATOR={addresses} " in PAGE


def test_the_page_runs_the_file_that_is_there() -> None:
    named = re.findall(r"docker compose -f (\S+)", PAGE) + re.findall(r"docker compose -f (\S+)", TEXT)
    assert set(named) == {COMPOSE.relative_to(ROOT).as_posix()}


def test_the_variables_of_the_page_exist() -> None:
    known = {variable.name for variable in SERVER_VARIABLES}
    named = set(re.findall(r"LINKBOUND_SERVER_[A-Z_]+", PAGE))
    assert named
    assert named <= known
