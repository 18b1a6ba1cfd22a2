"""The asyncio clients are the blocking ones with `await`: same names, same keywords, same words."""

import importlib
import inspect
import pkgutil
import pydoc
import re
from collections.abc import Iterator
from typing import Any

import pytest

from linkbound import AsyncEstimatorClient, AsyncIngestClient, EstimatorClient, IngestClient
from linkbound.client import estimator_questions, ingest_questions, operations
from linkbound.client.aio_record_writer import AsyncRecordWriter
from linkbound.client.aio_sample_writer import AsyncSampleWriter
from linkbound.client.operations import Operation
from linkbound.client.record_writer import RecordWriter
from linkbound.client.sample_writer import SampleWriter

PAIRS = [
    (EstimatorClient, AsyncEstimatorClient),
    (IngestClient, AsyncIngestClient),
    (SampleWriter, AsyncSampleWriter),
    (RecordWriter, AsyncRecordWriter),
]
NOT_AWAITED = {
    "list_models",
    "list_calibrations",
    "list_engine_calibrations",
    "list_hardware",
    "list_phase_traffic",
    "list_request_records",
    "list_runs",
    "record_writer",
    "stream_schedule",
    "stream_sweep",
    "watch_runs",
    "writer",
}
DIFFERENT_SENTENCES = {
    "writer": [
        (
            "With a `channel` that was given there is no writer: it needs a connection of its own.",
            "With a `channel` that was given, its streams go over that one.",
        ),
        ("Raises InvalidArgumentError, FailedPreconditionError with a given channel.", "Raises InvalidArgumentError."),
    ]
}
"""What the two do not have in common: a blocking sentence, and the one in its place."""
KINDS_OF_QUESTIONS = ("Question[", "Listing[", "Sweep", "ScheduleQuestion", "SqlQuery", "Watch")
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
    text = re.sub(r"\bAsync(?=Estimator|Ingest|Record|Sample|Iterator)", "", text)
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


def questions() -> Iterator[tuple[type, type, Any]]:
    """Every question, with the two clients that ask it."""
    modules = [
        importlib.import_module(f"{estimator_questions.__name__}.{module.name}")
        for module in pkgutil.iter_modules(estimator_questions.__path__)
    ]
    for (blocking, asynchronous), asked_in in ((PAIRS[0], modules), (PAIRS[1], [ingest_questions])):
        for module in asked_in:
            for asked in vars(module).values():
                returned = str(getattr(asked, "__annotations__", {}).get("return"))
                if (
                    inspect.isfunction(asked)
                    and asked.__module__ == module.__name__
                    and returned.startswith(KINDS_OF_QUESTIONS)
                ):
                    yield blocking, asynchronous, asked


def test_every_question_is_a_method_of_both_clients_and_its_keywords_and_words_are_the_methods() -> None:
    asked = list(questions())
    assert len(asked) >= len({value.name for value in vars(operations).values() if isinstance(value, Operation)})
    for blocking, asynchronous, question in asked:
        for client in (blocking, asynchronous):
            method = vars(client)[question.__name__]
            assert method.__wrapped__ is question
            assert shape(method)[1:-1] == shape(question)[:-1]
            assert inspect.getdoc(method) == inspect.getdoc(question)


@pytest.mark.parametrize("kind", [kind for pair in PAIRS for kind in pair])
def test_help_shows_every_keyword_with_its_type_and_what_is_returned(kind: type) -> None:
    for name, member in public_members(kind).items():
        if isinstance(member, property):
            continue
        text = pydoc.plain(pydoc.render_doc(member))
        assert "**" not in text.split("\n\n")[1], name
        for parameter, _, _, annotation in shape(member)[1:-1]:
            assert f"{parameter}: {annotation!r}" in text, name
        assert f"-> {shape(member)[-1][3]!r}" in text, name
        assert not shape(member)[-1][3].startswith(KINDS_OF_QUESTIONS), name


def test_help_shows_defaults() -> None:
    text = pydoc.plain(pydoc.render_doc(EstimatorClient.estimate_prefill))
    assert "estimate_prefill(self, *, model: 'str' = '', tensor_parallel_size: 'int', " in text
    assert "request_count: 'int' = 1, " in text
    assert text.rstrip().endswith("connection.")


def test_a_method_of_a_client_has_the_signature_without_the_client() -> None:
    with EstimatorClient() as client:
        bound = inspect.signature(client.estimate_prefill)
    assert list(bound.parameters) == list(inspect.signature(EstimatorClient.estimate_prefill).parameters)[1:]


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"rank_cuont": 2}, "estimate_training_step() got an unexpected keyword argument 'rank_cuont'"),
    (
        {"link": "200g", "rank_count": 2},
        "estimate_training_step() missing 1 required keyword-only argument: 'compute_step_seconds'",
    ),
]


@pytest.mark.parametrize(("keywords", "message"), MISTAKES)
async def test_a_wrong_keyword_is_named_with_the_method(keywords: dict[str, Any], message: str) -> None:
    with EstimatorClient() as client, pytest.raises(TypeError, match=re.escape(message)):
        client.estimate_training_step(**keywords)
    async with AsyncEstimatorClient() as other:
        with pytest.raises(TypeError, match=re.escape(message)):
            await other.estimate_training_step(**keywords)
