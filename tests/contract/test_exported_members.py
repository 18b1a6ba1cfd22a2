"""What users import: every public name exists, is listed once, and covers what the clients take and return."""

import ast
import importlib
import inspect
import re
from pathlib import Path
from types import ModuleType

import pytest

import linkbound
import linkbound.client
from linkbound import AsyncEstimatorClient, AsyncIngestClient, Error, EstimatorClient, IngestClient
from linkbound.domain import errors

LAZY = [linkbound, linkbound.client]
NOT_OURS = {
    "AsyncIterator",
    "Channel",
    "Iterator",
    "Mapping",
    "None",
    "Path",
    "RecordBatchReader",
    "Sequence",
    "aio",
    "bool",
    "float",
    "grpc",
    "int",
    "str",
    "tuple",
}
SPELT_OUT = {
    # Aliases that read better in a signature than what they stand for.
    "ChannelOptions": "linkbound.client.backend",
    "LinkOrRate": "linkbound.client.link_reader",
}


@pytest.mark.parametrize("module", LAZY)
def test_every_listed_name_can_be_imported(module: ModuleType) -> None:
    for name in module.__all__:
        assert getattr(module, name) is not None
    assert len(module.__all__) == len(set(module.__all__))
    assert set(module.__all__) <= set(dir(module))


@pytest.mark.parametrize("module", LAZY)
def test_the_type_checker_sees_the_same_names_from_the_same_places(module: ModuleType) -> None:
    tree = ast.parse(Path(module.__file__ or "").read_text())
    (for_type_checkers,) = (node for node in tree.body if isinstance(node, ast.If))
    imports = [node for node in for_type_checkers.body if isinstance(node, ast.ImportFrom)]
    seen = {
        alias.name: getattr(importlib.import_module(str(node.module)), alias.name)
        for node in imports
        for alias in node.names
    }
    assert set(seen) == set(module.__all__) - {"__version__"}
    for name, value in seen.items():
        assert getattr(module, name) is value


@pytest.mark.parametrize("module", LAZY)
def test_an_unknown_name_is_an_attribute_error(module: ModuleType) -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = module.no_such_name


def test_every_error_is_exported() -> None:
    public = {
        name
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, Error) and not name.startswith("_")
    }
    assert public <= set(linkbound.__all__)


@pytest.mark.parametrize("client", [EstimatorClient, AsyncEstimatorClient, IngestClient, AsyncIngestClient])
def test_what_the_clients_take_and_return_is_exported(client: type) -> None:
    for name, member in inspect.getmembers(client, inspect.isfunction):
        if name.startswith("_") and name != "__init__":
            continue
        signature = inspect.signature(member)
        annotations = [str(p.annotation) for p in signature.parameters.values() if p.name != "self"]
        annotations.append(str(signature.return_annotation))
        used = {word for text in annotations for word in re.findall(r"[A-Za-z]\w+", text)}
        assert used - NOT_OURS - set(SPELT_OUT) <= set(linkbound.__all__), name
    for alias, module in SPELT_OUT.items():
        assert hasattr(importlib.import_module(module), alias)
