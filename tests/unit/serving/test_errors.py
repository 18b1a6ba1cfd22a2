"""The error table against the domain, the code and `docs/errors.md`."""

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest
from google.rpc import error_details_pb2

from linkbound.domain import errors
from linkbound.domain.errors import Error, InvalidArgumentError, ResourceExhaustedError, Violation
from linkbound.ingest.v1.ingest_service_pb2 import BatchError
from scripts import error_docs
from serving.errors import ERROR_TABLE, OMITTED_VIOLATIONS_KEY, row_of, rpc_status, status_proto

ROOT = Path(__file__).parents[3]
RAISING_FOLDERS = ("estimator_service", "ingest_service", "serving", "clients/linkbound/domain")
# Receivers allow 8 KiB of headers; binary ones travel in base64, which is a third longer.
HEADER_LIMIT_BYTES = 8192


def domain_classes() -> set[type[Error]]:
    """Classes that are raised: public ones below the base."""
    found = {kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, Error)}
    return {kind for kind in found if kind is not Error and not kind.__name__.startswith("_")}


def test_every_class_has_exactly_one_row() -> None:
    rows = [row.error for row in ERROR_TABLE]
    assert len(rows) == len(set(rows))
    assert set(rows) == domain_classes()


@pytest.mark.parametrize("row", ERROR_TABLE, ids=lambda row: row.error.__name__)
def test_the_code_is_the_one_that_the_class_names(row: error_docs.ErrorRow) -> None:
    assert row.code.name == row.error.code


def test_no_two_classes_share_a_code() -> None:
    assert len({row.code for row in ERROR_TABLE}) == len(ERROR_TABLE)


def test_a_class_below_another_has_its_row() -> None:
    class SealedError(errors.FailedPreconditionError):
        pass

    assert row_of(SealedError("x")).error is errors.FailedPreconditionError


def test_a_class_without_a_row_is_internal() -> None:
    assert row_of(Error("x")).error is errors.InternalError


def reasons_in_code() -> Iterator[tuple[str, str]]:
    """Every `reason="..."` of a call, with the file it is in."""
    for folder in RAISING_FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.keyword) and node.arg == "reason" and isinstance(node.value, ast.Constant):
                    yield str(node.value.value), str(path.relative_to(ROOT))


def test_every_reason_that_is_raised_is_in_the_table() -> None:
    known = {situation.reason for row in ERROR_TABLE for situation in row.situations}
    raised = [(reason, path) for reason, path in reasons_in_code() if reason.isupper()]
    assert len(raised) > 10
    assert [entry for entry in raised if entry[0] not in known] == []


def test_every_default_reason_of_a_raised_class_is_in_the_table() -> None:
    for row in ERROR_TABLE:
        reasons = {situation.reason for situation in row.situations}
        # These are always raised with a reason of their own.
        with_own_reasons = {
            "NOT_FOUND",
            "ALREADY_EXISTS",
            "FAILED_PRECONDITION",
            "OUT_OF_RANGE",
            "ABORTED",
            "RESOURCE_EXHAUSTED",
        }
        assert row.error.default_reason in reasons | with_own_reasons


def test_the_document_is_the_table() -> None:
    document = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    assert error_docs.rendered(document) == document, "run: python scripts/error_docs.py write"


def test_the_document_shows_every_reason() -> None:
    document = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    for row in ERROR_TABLE:
        assert f"`{row.code.name}`" in document
        for situation in row.situations:
            assert f"`{situation.reason}`" in document


def header_bytes(error: Error) -> int:
    status = rpc_status(error, "ingest.linkbound", ("x-request-id", "x" * 32))
    sizes = [len(value) * 4 / 3 if isinstance(value, bytes) else len(value) for _, value in status.trailing_metadata]
    # Each UTF-8 byte of the message may take three characters in its header.
    return round(sum(sizes)) + 3 * len(status.details.encode())


@pytest.mark.parametrize("text", ["x" * 10**4, "ü" * 10**4, "模" * 10**4])
def test_the_longest_errors_fit_into_headers(text: str) -> None:
    metadata = {"run": text, "writer": text}
    violations = [Violation(text, text, text)] * 1000
    for error in (
        InvalidArgumentError(violations, metadata=metadata),
        errors.NotFoundError.of(errors.Resource("run", text), [text]),
        errors.FailedPreconditionError(text, metadata=metadata),
        errors.InternalError(text),
    ):
        assert header_bytes(error) < HEADER_LIMIT_BYTES


def test_violations_that_are_left_out_are_counted() -> None:
    status = status_proto(InvalidArgumentError([Violation("f" * 100, "d" * 100)] * 1000), "ingest.linkbound")
    info, request = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
    assert status.details[0].Unpack(info)
    assert status.details[1].Unpack(request)
    assert len(request.field_violations) >= 10
    assert int(info.metadata[OMITTED_VIOLATIONS_KEY]) == 1000 - len(request.field_violations)


def test_nothing_is_counted_where_all_fit() -> None:
    status = status_proto(InvalidArgumentError([Violation("a", "b")]), "ingest.linkbound")
    info = error_details_pb2.ErrorInfo()
    assert status.details[0].Unpack(info)
    assert dict(info.metadata) == {}


def test_a_batch_error_carries_the_same_status() -> None:
    error = ResourceExhaustedError("full", reason="QUEUE_FULL", retry_delay_seconds=1.5)
    message = BatchError(sequence_number=7, status=status_proto(error, "ingest.linkbound"))
    status = BatchError.FromString(message.SerializeToString()).status
    retry = error_details_pb2.RetryInfo()
    assert status.details[1].Unpack(retry)
    assert (retry.retry_delay.seconds, retry.retry_delay.nanos) == (1, 500_000_000)
