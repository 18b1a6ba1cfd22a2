"""The retry policy that gRPC reads, held against the operations and the protocol."""

import json
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pool
from google.protobuf.message import Message

from linkbound.client import operations
from linkbound.client.operations import Operation
from linkbound.client.remote import channel
from linkbound.client.remote.estimator_streams import ESTIMATE_SCHEDULE, STREAM_SWEEP
from linkbound.client.remote.ingest_streams import QUERY_SQL, WATCH_RUNS
from linkbound.client.remote.services import ESTIMATOR_SERVICES, INGEST_SERVICES
from linkbound.client.remote.wire import APPEND_METHODS, METHODS

CONFIG: dict[str, Any] = json.loads(Path(channel.__file__).with_name("service_config.json").read_text())
POOL = descriptor_pool.Default()
RESUMED_STREAMS = (STREAM_SWEEP, ESTIMATE_SCHEDULE, WATCH_RUNS)
"""Whoever reads them opens them again."""
STREAM_METHODS = (*RESUMED_STREAMS, QUERY_SQL)
WIRE_METHODS = [*METHODS.items(), *((operations.APPEND, method) for method in APPEND_METHODS.values())]


def is_retried(path: str) -> bool:
    """As gRPC reads it: an entry of the method itself goes before one of its service."""
    _, service, method = path.split("/")
    for name in ({"service": service, "method": method}, {"service": service}):
        for entry in CONFIG["methodConfig"]:
            if name in entry["name"]:
                return "retryPolicy" in entry
    return False


def keys_of(node: Any) -> set[str]:
    if isinstance(node, dict):
        return set(node) | {key for value in node.values() for key in keys_of(value)}
    return {key for value in node for key in keys_of(value)} if isinstance(node, list) else set()


def test_exactly_the_retried_operations_are_in_the_policy() -> None:
    paths = [(operation, method.path) for operation, method in WIRE_METHODS]
    for operation, path in paths:
        assert (path, is_retried(path)) == (path, operation.call_class.is_retried)


@pytest.mark.parametrize(
    "path", ["/linkbound.ingest.v1.IngestService/StreamSamples", *(method.path for method in RESUMED_STREAMS)]
)
def test_a_stream_is_not_retried_by_grpc(path: str) -> None:
    assert not is_retried(path)


def test_calls_go_round_the_addresses_of_a_target() -> None:
    assert CONFIG["loadBalancingConfig"] == [{"round_robin": {}}]


def test_only_unavailable_is_retried_five_times_at_most() -> None:
    (policy,) = [entry["retryPolicy"] for entry in CONFIG["methodConfig"] if "retryPolicy" in entry]
    assert policy == {
        "maxAttempts": 5,
        "initialBackoff": "0.1s",
        "maxBackoff": "2s",
        "backoffMultiplier": 2,
        "retryableStatusCodes": ["UNAVAILABLE"],
    }
    assert set(CONFIG["retryThrottling"]) == {"maxTokens", "tokenRatio"}


def test_no_deadline_stands_in_the_policy() -> None:
    assert "timeout" not in keys_of(CONFIG)


def test_every_name_in_the_policy_exists() -> None:
    for name in (name for entry in CONFIG["methodConfig"] for name in entry["name"]):
        service = POOL.FindServiceByName(name["service"])
        assert "method" not in name or name["method"] in service.methods_by_name


def test_every_operation_travels_by_a_method_of_the_protocol() -> None:
    for operation, method in WIRE_METHODS:
        _, service, name = method.path.split("/")
        described = POOL.FindServiceByName(service).methods_by_name[name]
        assert not described.client_streaming
        assert not described.server_streaming
        assert described.output_type.full_name == method.response_type.DESCRIPTOR.full_name, operation.name
        assert issubclass(method.response_type, Message)


def test_what_is_answered_by_a_stream_travels_by_such_a_method() -> None:
    for method in STREAM_METHODS:
        _, service, name = method.path.split("/")
        described = POOL.FindServiceByName(service).methods_by_name[name]
        assert (described.client_streaming, described.server_streaming) == (False, True)
        assert described.output_type.full_name == method.response_type.DESCRIPTOR.full_name


def test_every_unary_method_of_the_protocol_is_an_operation() -> None:
    services = {*ESTIMATOR_SERVICES, *INGEST_SERVICES, "linkbound.ingest.v1.QueryService"}
    unary = {
        f"/{service}/{method.name}"
        for service in services
        for method in POOL.FindServiceByName(service).methods
        if not (method.client_streaming or method.server_streaming)
    }
    assert {method.path for _, method in WIRE_METHODS} == unary


def test_every_operation_is_known_to_the_wire() -> None:
    declared = {value for value in vars(operations).values() if isinstance(value, Operation)}
    assert {operation for operation, _ in WIRE_METHODS} == declared
    assert len({operation.name for operation in declared}) == len(declared)
