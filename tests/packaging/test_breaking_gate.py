"""The gate against breaking changes closes on one: the settings in protos/buf.yaml, on descriptors of the contract."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

from tests.contract.protos import FILES
from tests.packaging.project import ROOT

BUF = Path(sys.executable).parent / "buf"


def contract() -> FileDescriptorSet:
    """The contract with everything it imports, imports first."""
    found: dict[str, FileDescriptorProto] = {}

    def add(file: FileDescriptor) -> None:
        for dependency in file.dependencies:
            add(dependency)
        if file.name not in found:
            found[file.name] = FileDescriptorProto.FromString(file.serialized_pb)

    for file in FILES:
        add(file)
    return FileDescriptorSet(file=found.values())


def file_of(descriptors: FileDescriptorSet, name: str) -> FileDescriptorProto:
    (file,) = (file for file in descriptors.file if file.name.endswith(f"/{name}"))
    return file


def unchanged(descriptors: FileDescriptorSet) -> None:
    assert descriptors.file


def without_a_field(descriptors: FileDescriptorSet) -> None:
    (link,) = (m for m in file_of(descriptors, "link.proto").message_type if m.name == "ResolvedLink")
    del link.field[-1]


def with_another_type(descriptors: FileDescriptorSet) -> None:
    (spread,) = (m for m in file_of(descriptors, "metric.proto").message_type if m.name == "Spread")
    spread.field[0].type = spread.field[0].TYPE_FLOAT


def without_a_method(descriptors: FileDescriptorSet) -> None:
    del file_of(descriptors, "query_service.proto").service[0].method[0]


def with_a_new_field(descriptors: FileDescriptorSet) -> None:
    (run,) = (m for m in file_of(descriptors, "run.proto").message_type if m.name == "Run")
    run.field.add(name="note", number=100, type=run.field[0].TYPE_STRING, label=run.field[0].LABEL_OPTIONAL)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (unchanged, ""),
        (with_a_new_field, ""),
        (without_a_field, "ethernet_mtu_bytes"),
        (with_another_type, "mean"),
        (without_a_method, "CompareRun"),
    ],
)
def test_the_gate_closes_on_what_breaks_and_on_nothing_else(
    tmp_path: Path, change: Callable[[FileDescriptorSet], None], named: str
) -> None:
    released, changed = tmp_path / "released.binpb", tmp_path / "changed.binpb"
    descriptors = contract()
    released.write_bytes(descriptors.SerializeToString())
    change(descriptors)
    changed.write_bytes(descriptors.SerializeToString())
    config = ROOT / "protos" / "buf.yaml"
    command = [str(part) for part in (BUF, "breaking", changed, "--against", released, "--config", config)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.returncode == 0) == (named == ""), result.stdout + result.stderr
    assert named in result.stdout
