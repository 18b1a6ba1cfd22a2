"""The asyncio clients are the blocking ones with `await`: same names, same keywords, same words."""

import inspect
import re
from typing import Any

import pytest

from linkbound import AsyncEstimatorClient, AsyncIngestClient, EstimatorClient, IngestClient
from linkbound.client import operations
from linkbound.client.aio_sample_writer import AsyncSampleWriter
from linkbound.client.operations import Operation
from linkbound.client.sample_writer import SampleWriter

PAIRS = [
    (EstimatorClient, AsyncEstimatorClient),
    (IngestClient, AsyncIngestClient),
    (SampleWriter, AsyncSampleWriter),
]
NOT_AWAITED = {"list_models", "list_calibrations", "list_hardware", "list_runs", "sample_writer", "stream_sweep"}
DIFFERENT_SENTENCES = {
    "sample_writer": [
        (
            "With a `channel` that was given there is no writer: it needs a connection of its own.",
            "With a `channel` that was given, its streams go over that one.",
        ),
        ("Raises InvalidArgumentError, FailedPreconditionError with a given channel.", "Raises InvalidArgumentError."),
    ]
}
"""What the two do not have in common: a blocking sentence, and the one in its place."""
SPECIAL = {"__enter__": "__aenter__", "__exit__": "__aexit__", "__init__": "__init__"}


def public_members(kind: type) -> dict[str, Any]:
    return {
        name: member
        for base in reversed(kind.__mro__)
        for name, member in vars(base).items()
        if not name.startswith("_") or (name in {*SPECIAL, *SPECIAL.values()} and base is not object)
    }


def blocking_words(text: str) -> str:
    """Annotations and docstrings of an asyncio client in the words of the blocking one."""
    text = re.sub(r"\bAsync(?=Estimator|Ingest|Sample|Iterator)", "", text)
    return text.replace("grpc.aio.", "grpc.")


def shape(member: Any) -> list[tuple[str, Any, Any, str]]:
    signature = inspect.signature(member.fget if isinstance(member, property) and member.fget else member)
    parameters = [(p.name, p.kind, p.default, str(p.annotation)) for p in signature.parameters.values()]
    return [*parameters, ("return", None, None, str(signature.return_annotation))]


def in_blocking_words(described: list[tuple[str, Any, Any, str]]) -> list[tuple[str, Any, Any, str]]:
    return [(name, kind, default, blocking_words(annotation)) for name, kind, default, annotation in described]


@pytest.mark.parametrize(("blocking", "asynchronous"), PAIRS)
def test_the_members_are_the_same(blocking: type, asynchronous: type) -> None:
    names = {SPECIAL.get(name, name) for name in public_members(blocking)}
    assert names == set(public_members(asynchronous))


@pytest.mark.parametrize(("blocking", "asynchronous"), PAIRS)
def test_signatures_and_docstrings_are_the_same(blocking: type, asynchronous: type) -> None:
    others = public_members(asynchronous)
    for name, member in public_members(blocking).items():
        other = others[SPECIAL.get(name, name)]
        assert isinstance(member, property) == isinstance(other, property), name
        assert in_blocking_words(shape(other)) == shape(member), name
        expected = inspect.getdoc(member) or ""
        for blocking_sentence, asynchronous_sentence in DIFFERENT_SENTENCES.get(name, ()):
            assert blocking_sentence in expected, name
            expected = expected.replace(blocking_sentence, asynchronous_sentence)
        assert blocking_words(inspect.getdoc(other) or "") == expected, name


@pytest.mark.parametrize(("blocking", "asynchronous"), PAIRS)
def test_what_waits_is_awaited(blocking: type, asynchronous: type) -> None:
    for name, member in public_members(asynchronous).items():
        if name == "__init__" or isinstance(member, property):
            continue
        assert inspect.iscoroutinefunction(member) == (name not in NOT_AWAITED), name
    assert not any(inspect.iscoroutinefunction(member) for member in public_members(blocking).values())


@pytest.mark.parametrize(("blocking", "asynchronous"), PAIRS)
def test_the_classes_are_described_alike(blocking: type, asynchronous: type) -> None:
    assert blocking_words(inspect.getdoc(asynchronous) or "") == inspect.getdoc(blocking)


@pytest.mark.parametrize(("blocking", "asynchronous"), PAIRS)
def test_everything_public_is_described(blocking: type, asynchronous: type) -> None:
    for kind in (blocking, asynchronous):
        for name, member in public_members(kind).items():
            assert name.startswith("_") or inspect.getdoc(member), name


def test_every_operation_is_a_method_of_one_client() -> None:
    names = {value.name for value in vars(operations).values() if isinstance(value, Operation)}
    methods = set(public_members(EstimatorClient)) | set(public_members(IngestClient))
    assert names <= methods
