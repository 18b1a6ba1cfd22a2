"""Whatever the shipped packages import is the standard library, their own, or declared in pyproject.toml."""

import ast
import importlib.metadata
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from linkbound.cli.serve import SERVICES_EXTRA
from tests.packaging.project import ROOT, requirements

FIRST_PARTY = {"linkbound", "estimator_service", "ingest_service", "serving"}
CLIENT, SERVICES = ROOT / "clients" / "linkbound", [ROOT / name for name in sorted(FIRST_PARTY - {"linkbound"})]
# Packages of one namespace are told apart by their second name.
NAMESPACES = {"google"}


def imported_modules(source: str) -> Iterator[str]:
    """Yields the modules that a file imports, also those within functions."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module


def third_party(folders: list[Path]) -> set[str]:
    """Returns the packages of others that the files of `folders` import."""
    modules = {
        module
        for folder in folders
        for path in folder.rglob("*.py")
        for module in imported_modules(path.read_text(encoding="utf-8"))
    }
    names = {".".join(module.split(".")[: 2 if module.split(".")[0] in NAMESPACES else 1]) for module in modules}
    return {name for name in names if name not in FIRST_PARTY and name not in sys.stdlib_module_names}


def distributions(module: str) -> set[str]:
    """Returns the installed distributions that a module comes from."""
    if module.split(".", maxsplit=1)[0] not in NAMESPACES:
        return {canonicalize_name(name) for name in importlib.metadata.packages_distributions()[module]}
    prefix = module.replace(".", "/") + "/"
    return {
        canonicalize_name(distribution.name)
        for distribution in importlib.metadata.distributions()
        if any(str(file).startswith(prefix) for file in distribution.files or [])
    }


def declared(*extras: str | None) -> set[str]:
    return {canonicalize_name(requirement.name) for extra in extras for requirement in requirements(extra)}


def test_the_walk_finds_imports_wherever_they_are() -> None:
    source = "import a.b\nfrom c.d import e\ndef f():\n    import g\n    from h import i\n"
    assert list(imported_modules(source)) == ["a.b", "c.d", "g", "h"]


@pytest.mark.parametrize("module", sorted(third_party([CLIENT])))
def test_what_the_client_imports_is_a_base_requirement(module: str) -> None:
    # The demo runs both services, and rows of a query are Arrow; each says so where the extra is missing.
    allowed = declared(None, "services") if module in ("duckdb", "pyarrow") else declared(None)
    assert distributions(module) & allowed, module


@pytest.mark.parametrize("module", sorted(third_party(SERVICES)))
def test_what_the_services_import_is_declared(module: str) -> None:
    assert distributions(module) & declared(None, "services"), module


def test_serving_asks_for_every_package_of_the_services_extra() -> None:
    modules = third_party(SERVICES)
    extra = {module for module in modules if not distributions(module) & declared(None)}
    assert extra == set(SERVICES_EXTRA)
    assert all(find_spec(module) is not None for module in SERVICES_EXTRA)
