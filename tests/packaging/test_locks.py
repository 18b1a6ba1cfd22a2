"""The locks are complete, hashed, free of addresses, and agree with pyproject.toml."""

from pathlib import Path

import pytest

from tests.packaging.project import ROOT, base_closure, read_lock, requirements

DEVELOPMENT = ROOT / "requirements.lock"
LAKE = ROOT / "requirements-lake.lock"
PROTOS = ROOT / "requirements-protos.lock"
IMAGES = ROOT / "docker" / "requirements.lock"
LOCKS = [DEVELOPMENT, LAKE, PROTOS, IMAGES]


def versions(path: Path) -> dict[str, str]:
    return {entry.name: entry.version for entry in read_lock(path) if entry.applies_here()}


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_entry_is_pinned_and_hashed(path: Path) -> None:
    entries = read_lock(path)
    assert entries
    for entry in entries:
        assert [specifier.operator for specifier in entry.requirement.specifier] == ["=="]
        assert entry.hash_count > 0, entry.name


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_lock_names_no_address_and_not_the_project(path: Path) -> None:
    for line in path.read_text(encoding="utf-8").splitlines():
        assert "://" not in line
        assert not line.startswith(("-", "#"))
        assert "@" not in line
    assert "linkbound" not in versions(path)


@pytest.mark.parametrize(
    ("path", "extras"),
    [
        (DEVELOPMENT, [None, "services", "all", "dev"]),
        (LAKE, [None, "services", "lake", "dev"]),
        (IMAGES, [None, "services"]),
    ],
    ids=["development", "lake", "images"],
)
def test_the_pins_satisfy_pyproject(path: Path, extras: list[str | None]) -> None:
    pins = versions(path)
    for extra in extras:
        for requirement in requirements(extra):
            assert requirement.specifier.contains(pins[requirement.name]), str(requirement)


def test_the_two_environments_differ_in_duckdb_only() -> None:
    development, lake = versions(DEVELOPMENT), versions(LAKE)
    differing = {name for name in development | lake if development.get(name) != lake.get(name)}
    assert differing == {"duckdb"}


def test_the_images_hold_a_part_of_the_development_lock() -> None:
    development = {entry.text for entry in read_lock(DEVELOPMENT)}
    assert {entry.text for entry in read_lock(IMAGES)} < development


def test_the_images_hold_no_development_tool() -> None:
    runtime = base_closure() | {requirement.name for requirement in requirements("services")}
    tools = {requirement.name for requirement in requirements("dev")} - runtime
    assert tools.isdisjoint(versions(IMAGES))
