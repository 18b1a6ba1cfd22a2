"""Reads the project's own files for the packaging tests."""

import importlib.metadata
import re
import tomllib
from pathlib import Path

import attrs
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]


@attrs.frozen
class LockedPackage:
    """One entry of a lock: a pinned requirement, and the lock's text for it with its hashes."""

    requirement: Requirement
    text: str

    @property
    def name(self) -> str:
        return canonicalize_name(self.requirement.name)

    @property
    def version(self) -> str:
        (specifier,) = self.requirement.specifier
        return specifier.version

    @property
    def hash_count(self) -> int:
        return len(re.findall(r"--hash=sha256:[0-9a-f]{64}\b", self.text))

    def applies_here(self) -> bool:
        """Whether the entry's marker holds for the interpreter that runs the tests."""
        return self.requirement.marker is None or self.requirement.marker.evaluate()


def read_lock(path: Path) -> list[LockedPackage]:
    """Returns the entries of a lock in its order."""
    entries = re.findall(r"^\S.*(?:\n[ \t]+.*)*", path.read_text(encoding="utf-8"), re.MULTILINE)
    return [LockedPackage(Requirement(entry.split("\\\n")[0].strip()), entry + "\n") for entry in entries]


def project_table() -> dict[str, object]:
    """Returns the [project] table of pyproject.toml."""
    with ROOT.joinpath("pyproject.toml").open("rb") as file:
        table = tomllib.load(file)["project"]
    assert isinstance(table, dict)
    return table


def requirements(extra: str | None = None) -> list[Requirement]:
    """Returns the base requirements, or those of one extra, without the project itself."""
    table = project_table()
    if extra is None:
        lines = table["dependencies"]
    else:
        extras = table["optional-dependencies"]
        assert isinstance(extras, dict)
        lines = extras[extra]
    assert isinstance(lines, list)
    parsed = [Requirement(line) for line in lines]
    return [requirement for requirement in parsed if requirement.name != table["name"]]


def base_closure() -> set[str]:
    """Returns the names of all packages that a plain `pip install linkbound` brings here."""
    found: set[str] = set()
    pending = requirements()
    while pending:
        requirement = pending.pop()
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        name = canonicalize_name(requirement.name)
        if name not in found:
            found.add(name)
            pending += [Requirement(line) for line in importlib.metadata.requires(name) or []]
    return found
