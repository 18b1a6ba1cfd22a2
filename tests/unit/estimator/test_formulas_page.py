"""docs/formulas.md and the code name each other: no formula without its function, no function without its formula."""

import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import estimator_service.architecture
import estimator_service.core

PAGE = (Path(__file__).parents[3] / "docs" / "formulas.md").read_text("utf-8")
NAMES = sorted(set(re.findall(r"`((?:estimator_service|ingest_service|linkbound)(?:\.\w+)+)`", PAGE)))
SECTIONS = dict(re.findall(r"^## (.+)\n((?:(?!^## ).*\n?)*)", PAGE, flags=re.MULTILINE))


# Modules that derive figures from an architecture; the others read configs, and count nothing.
DERIVING = ("weights", "mixer_weights", "storage", "formats", "parameters", "caches", "passes")


def modules() -> Iterator[str]:
    for module_info in pkgutil.walk_packages(estimator_service.core.__path__, "estimator_service.core."):
        yield module_info.name
    yield from (f"{estimator_service.architecture.__name__}.{name}" for name in DERIVING)


def public_functions() -> Iterator[Callable[..., object]]:
    for module_name in modules():
        module = importlib.import_module(module_name)
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if function.__module__ == module.__name__ and not name.startswith("_"):
                yield function


FUNCTIONS = [pytest.param(f, id=f"{f.__module__}.{f.__name__}") for f in public_functions()]


def named(function: Callable[..., object]) -> str:
    return f"`{function.__module__}.{function.__name__}`"


@pytest.mark.parametrize("name", [name for name in NAMES if name != "estimator_service.core"])
def test_a_function_that_the_page_names_exists(name: str) -> None:
    module_name, _, function_name = name.rpartition(".")
    assert inspect.isfunction(getattr(importlib.import_module(module_name), function_name))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_docstring_points_to_the_section_that_names_the_function(function: Callable[..., object]) -> None:
    docstring = " ".join((function.__doc__ or "").split())
    pointed_to = re.findall(r"\(`docs/formulas\.md`, ([^)]+)\)", docstring)
    assert len(pointed_to) == 1
    assert named(function) in SECTIONS[pointed_to[0]]


def test_the_page_and_the_core_were_found() -> None:
    """Guards the tests above against empty lists."""
    assert len(FUNCTIONS) > 50
    assert len(NAMES) > len(FUNCTIONS)
    assert {"Collectives", "Prefill", "Implied bandwidth"} <= set(SECTIONS)
