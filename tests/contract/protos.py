"""The contract as the tests read it: descriptors for the structure, the proto files for the comments.

Descriptors of generated code carry no comments, so these are read from the files, which `buf format` keeps regular:
one element a line, its comment right above. What the reading misses, the tests notice, since every element needs one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor, FileDescriptor, MethodDescriptor

from linkbound.estimator.v1 import (
    calibration_pb2,
    catalog_service_pb2,
    engine_pb2,
    estimator_service_pb2,
    layout_pb2,
    memory_pb2,
    planning_pb2,
    schedule_pb2,
    sizing_pb2,
    sweep_pb2,
    workload_pb2,
)
from linkbound.ingest.v1 import (
    ingest_service_pb2,
    query_service_pb2,
    records_pb2,
    run_pb2,
    run_service_pb2,
    samples_pb2,
)
from linkbound.types.v1 import collective_pb2, estimate_pb2, link_pb2, metric_pb2, prediction_pb2

PROTO_FOLDER = Path(__file__).parents[2] / "protos"

FILES: tuple[FileDescriptor, ...] = tuple(
    module.DESCRIPTOR
    for module in (
        calibration_pb2,
        catalog_service_pb2,
        collective_pb2,
        engine_pb2,
        estimate_pb2,
        estimator_service_pb2,
        ingest_service_pb2,
        layout_pb2,
        link_pb2,
        memory_pb2,
        metric_pb2,
        planning_pb2,
        prediction_pb2,
        query_service_pb2,
        records_pb2,
        run_pb2,
        run_service_pb2,
        samples_pb2,
        schedule_pb2,
        sizing_pb2,
        sweep_pb2,
        workload_pb2,
    )
)

_PACKAGE = re.compile(r"package (?P<name>[\w.]+);")
_BLOCK = re.compile(r"(?P<kind>message|enum|service|oneof) (?P<name>\w+) \{")
_EMPTY = re.compile(r"message (?P<name>\w+) \{\}")
_METHOD = re.compile(r"rpc (?P<name>\w+)\(")
_MEMBER = re.compile(r"(?:(?:optional|repeated) )?(?:[\w.]+ |map<\w+, \w+> )?(?P<name>\w+) = \d+;")


def messages() -> list[Descriptor]:
    return [message for file in FILES for message in file.message_types_by_name.values()]


def enums() -> list[EnumDescriptor]:
    return [enum for file in FILES for enum in file.enum_types_by_name.values()]


def methods() -> list[MethodDescriptor]:
    return [method for file in FILES for service in file.services_by_name.values() for method in service.methods]


def fields() -> list[FieldDescriptor]:
    return [field for message in messages() for field in message.fields]


def request_fields() -> list[FieldDescriptor]:
    """Fields of every request and of what is nested in one."""
    seen: dict[str, Descriptor] = {}
    waiting = [method.input_type for method in methods()]
    while waiting:
        message = waiting.pop()
        if message.full_name in seen or not message.full_name.startswith("linkbound."):
            continue
        seen[message.full_name] = message
        waiting.extend(field.message_type for field in message.fields if field.message_type is not None)
    return [field for _, message in sorted(seen.items()) for field in message.fields]


def comments() -> dict[str, str]:
    """Comments by full name: packages aside, of every message, enum, service, method, field, oneof and enum value."""
    found: dict[str, str] = {}
    for file in FILES:
        found.update(_comments_of((PROTO_FOLDER / str(file.name)).read_text(encoding="utf-8")))
    return found


def _comments_of(text: str) -> Iterator[tuple[str, str]]:
    scope: list[tuple[str, str]] = []
    pending: list[str] = []
    for raw in text.splitlines():
        line = raw.strip()
        if line.startswith("//"):
            pending.append(line.removeprefix("//").strip())
            continue
        if package := _PACKAGE.fullmatch(line):
            scope = [("package", package["name"])]
        elif block := _BLOCK.fullmatch(line):
            yield _full_name(scope, block["kind"], block["name"]), " ".join(pending)
            scope.append((block["kind"], block["name"]))
        elif empty := _EMPTY.fullmatch(line):
            yield _full_name(scope, "message", empty["name"]), " ".join(pending)
        elif method := _METHOD.match(line):
            yield _full_name(scope, "rpc", method["name"]), " ".join(pending)
        elif member := _MEMBER.fullmatch(line):
            yield _full_name(scope, "member", member["name"]), " ".join(pending)
        elif line == "}":
            scope.pop()
        pending = []


def _full_name(scope: list[tuple[str, str]], kind: str, name: str) -> str:
    """As a descriptor has it: a field of a oneof, and a value of an enum, are members of what is around them."""
    names = [outer for outer_kind, outer in scope if outer_kind != "oneof"]
    if kind == "member" and scope[-1][0] == "enum":
        names = names[:-1]
    return ".".join([*names, name])
