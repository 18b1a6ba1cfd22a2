"""Generates the Python client code from the protos, or checks that what is committed is up to date.

Runs in the generator's own environment (`requirements-protos.lock`):

    gen_protos.py write               regenerate into clients/, remove what is stale
    gen_protos.py check               regenerate into a temporary folder and compare
    gen_protos.py descriptors FILE    write one descriptor set of all protos, imports and comments
    gen_protos.py release             write protos/released.binpb, the contract others rely on

The path of a proto is its Python import path, so nothing is rewritten after generation.
Protos of `google.rpc` are read from the installed googleapis-common-protos.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from google.protobuf import descriptor_pb2

ROOT = Path(__file__).resolve().parent.parent
PROTO_DIR = ROOT / "protos"
OUTPUT_DIR = ROOT / "clients"
RELEASED = PROTO_DIR / "released.binpb"
PACKAGE = "linkbound"
GENERATED_SUFFIXES = ("_pb2.py", "_pb2.pyi", "_pb2_grpc.py", "_pb2_grpc.pyi")


class GenerationError(Exception):
    """The protos could not be compiled; the compiler has already said why on stderr."""


def proto_files() -> list[str]:
    """Returns the project's protos, relative to the proto folder, in a fixed order."""
    found = PROTO_DIR.joinpath(PACKAGE).rglob("*.proto")
    return sorted(path.relative_to(PROTO_DIR).as_posix() for path in found)


def run_protoc(arguments: Sequence[str], files: Sequence[str]) -> None:
    """Runs the protocol compiler over `files`.

    Raises:
        GenerationError: the compiler refused the protos.
    """
    command = [
        sys.executable,
        "-m",
        "grpc_tools.protoc",
        f"-I{PROTO_DIR}",
        f"-I{sysconfig.get_path('purelib')}",
        *arguments,
        *files,
    ]
    # The compiler finds its mypy plugin on PATH, beside this interpreter.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    if subprocess.run(command, check=False, env={**os.environ, "PATH": path}).returncode != 0:
        raise GenerationError("protoc failed")


def write_descriptors(output: Path, files: Sequence[str]) -> None:
    """Writes the descriptor set of `files` with imports and comments to `output`."""
    arguments = ["--include_imports", "--include_source_info", f"--descriptor_set_out={output}"]
    run_protoc(arguments, files)


def write_released(files: Sequence[str]) -> None:
    """Writes the released contract: the descriptor set with imports and without comments."""
    run_protoc(["--include_imports", f"--descriptor_set_out={RELEASED}"], files)
    print(f"wrote {RELEASED.relative_to(ROOT)}")


def files_with_services(files: Sequence[str], scratch: Path) -> list[str]:
    """Returns those of `files` that define a service: only they get gRPC stubs."""
    descriptors = scratch / "descriptors.binpb"
    write_descriptors(descriptors, files)
    parsed = descriptor_pb2.FileDescriptorSet.FromString(descriptors.read_bytes())
    with_services = {file.name for file in parsed.file if file.service}
    return [name for name in files if name in with_services]


def package_dirs(files: Iterable[str]) -> list[Path]:
    """Returns every folder below the root package that holds generated code, parents included."""
    found: set[Path] = set()
    for name in files:
        folder = Path(name).parent
        while folder != Path(PACKAGE):
            found.add(folder)
            folder = folder.parent
    return sorted(found)


def generate(output: Path) -> set[Path]:
    """Generates all code below `output`.

    Returns:
        The files written, relative to `output`.
    """
    files = proto_files()
    if not files:
        raise GenerationError(f"no .proto below {PROTO_DIR.relative_to(ROOT)}/{PACKAGE}")
    with tempfile.TemporaryDirectory() as scratch:
        services = files_with_services(files, Path(scratch))
    run_protoc([f"--python_out={output}", f"--mypy_out=quiet:{output}"], files)
    if services:
        run_protoc([f"--grpc_python_out={output}", f"--mypy_grpc_out=quiet:{output}"], services)
    for folder in package_dirs(files):
        (output / folder / "__init__.py").write_bytes(b"")
    return generated_files(output)


def generated_files(output: Path) -> set[Path]:
    """Returns the generated files present below `output`, relative to it.

    Besides the compiler's own these are the empty `__init__.py` of their folders and of the
    folders between those and the root package.
    """
    found = {
        path.relative_to(output)
        for path in output.joinpath(PACKAGE).rglob("*_pb2*.py*")
        if path.name.endswith(GENERATED_SUFFIXES)
    }
    inits = {folder / "__init__.py" for folder in package_dirs(path.as_posix() for path in found)}
    return found | {path for path in inits if (output / path).exists()}


def replace_generated(source: Path, expected: set[Path]) -> None:
    """Makes the committed code equal to `expected` from `source`; files already equal stay."""
    for stale in sorted(generated_files(OUTPUT_DIR) - expected):
        (OUTPUT_DIR / stale).unlink()
        print(f"removed {stale}")
    for path in sorted(expected):
        target = OUTPUT_DIR / path
        content = (source / path).read_bytes()
        if target.exists() and target.read_bytes() == content:
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        print(f"wrote {path}")


def differences(source: Path, expected: set[Path]) -> list[str]:
    """Returns one line for every file in which the committed code differs from `source`."""
    present = generated_files(OUTPUT_DIR)
    lines = [f"stale: clients/{path}" for path in sorted(present - expected)]
    for path in sorted(expected):
        if path not in present:
            lines.append(f"missing: clients/{path}")
        elif (OUTPUT_DIR / path).read_bytes() != (source / path).read_bytes():
            lines.append(f"differs: clients/{path}")
    return lines


def write() -> int:
    """Regenerates the committed code; returns the process exit code."""
    with tempfile.TemporaryDirectory() as scratch:
        replace_generated(Path(scratch), generate(Path(scratch)))
    return 0


def check() -> int:
    """Compares the committed code with what the protos generate; returns the exit code."""
    with tempfile.TemporaryDirectory() as scratch:
        found = differences(Path(scratch), generate(Path(scratch)))
    if found:
        print(*found, "error: run `make protos` and commit the result", sep="\n", file=sys.stderr)
        return 1
    print("generated code is up to date")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns the process exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("write", help="regenerate into clients/")
    commands.add_parser("check", help="fail if clients/ is not what the protos generate")
    descriptors = commands.add_parser("descriptors", help="write one descriptor set")
    descriptors.add_argument("output", type=Path)
    commands.add_parser("release", help="write the released contract")
    options = parser.parse_args(arguments)

    try:
        match options.command:
            case "write":
                return write()
            case "check":
                return check()
            case "release":
                write_released(proto_files())
            case _:
                write_descriptors(options.output, proto_files())
    except GenerationError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
