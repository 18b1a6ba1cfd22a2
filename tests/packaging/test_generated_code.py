"""The generated code asks for no newer runtime than pyproject.toml promises."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.version import Version

from tests.packaging.project import ROOT, requirements

CLIENTS = ROOT / "clients"
MESSAGE_MODULES = sorted(CLIENTS.rglob("*_pb2.py"))
SERVICE_MODULES = sorted(CLIENTS.rglob("*_pb2_grpc.py"))


def floor(name: str) -> Version:
    """The lowest version of a base requirement that pyproject.toml admits."""
    (requirement,) = [found for found in requirements() if found.name == name]
    (lowest,) = [part.version for part in requirement.specifier if part.operator == ">="]
    return Version(lowest)


def protobuf_stamp(path: Path) -> Version:
    """The protobuf runtime that a generated message module asks for."""
    stamp = re.search(r"ValidateProtobufRuntimeVersion\(\s*\S+,\s*(\d+),\s*(\d+),\s*(\d+),", path.read_text())
    assert stamp is not None, path
    return Version(".".join(stamp.groups()))


def grpc_stamp(path: Path) -> Version:
    """The grpcio runtime that a generated service module asks for."""
    stamp = re.search(r"^GRPC_GENERATED_VERSION = '([\d.]+)'$", path.read_text(), re.MULTILINE)
    assert stamp is not None, path
    return Version(stamp.group(1))


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(CLIENTS).with_suffix("").parts)


def test_there_is_generated_code() -> None:
    assert MESSAGE_MODULES
    assert SERVICE_MODULES


@pytest.mark.parametrize("path", MESSAGE_MODULES, ids=module_name)
def test_messages_run_on_the_promised_protobuf(path: Path) -> None:
    assert protobuf_stamp(path) <= floor("protobuf")


@pytest.mark.parametrize("path", SERVICE_MODULES, ids=module_name)
def test_services_run_on_the_promised_grpcio(path: Path) -> None:
    assert grpc_stamp(path) <= floor("grpcio")


def test_the_protobuf_ceiling_is_one_major_version_above_the_generator() -> None:
    (requirement,) = [found for found in requirements() if found.name == "protobuf"]
    (ceiling,) = [part.version for part in requirement.specifier if part.operator == "<"]
    generator_major = max(protobuf_stamp(path).major for path in MESSAGE_MODULES)
    assert Version(ceiling) == Version(str(generator_major + 2))


def test_every_message_module_has_a_stub() -> None:
    for path in [*MESSAGE_MODULES, *SERVICE_MODULES]:
        assert path.with_suffix(".pyi").exists(), path


def test_generated_modules_import_without_a_warning() -> None:
    names = [module_name(path) for path in [*MESSAGE_MODULES, *SERVICE_MODULES]]
    code = f"import importlib\nfor name in {names!r}: importlib.import_module(name)"
    result = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
