"""Which exit code each error of the domain ends with, and how it is told."""

import pytest

from linkbound.cli.failures import exit_code_of, failure_of
from linkbound.domain import errors
from linkbound.domain.errors import Error, InvalidArgumentError, NotFoundError, Resource, Violation


def make(kind: type[Error]) -> Error:
    if kind is InvalidArgumentError:
        return InvalidArgumentError([Violation("link", "is missing")])
    if kind in (NotFoundError, errors.AlreadyExistsError):
        return kind("m", resource=Resource("run", "r"))
    return kind("m")


EXIT_CODES = {
    errors.InvalidArgumentError: 2,
    errors.NotFoundError: 2,
    errors.AlreadyExistsError: 2,
    errors.FailedPreconditionError: 2,
    errors.OutOfRangeError: 2,
    errors.UnavailableError: 3,
    errors.DeadlineExceededError: 3,
    errors.AbortedError: 1,
    errors.ResourceExhaustedError: 1,
    errors.UnauthenticatedError: 1,
    errors.PermissionDeniedError: 1,
    errors.CancelledError: 1,
    errors.UnimplementedError: 1,
    errors.InternalError: 1,
}


def test_every_error_is_listed() -> None:
    public = {kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Error)}
    named = {kind for kind in public if not kind.__name__.startswith("_") and kind is not Error}
    assert named == set(EXIT_CODES)


@pytest.mark.parametrize(("kind", "exit_code"), EXIT_CODES.items())
def test_exit_code(kind: type[Error], exit_code: int) -> None:
    error = make(kind)
    assert exit_code_of(error) == exit_code
    assert failure_of(error).exit_code == exit_code


def test_violations_are_named_by_option_where_there_is_one() -> None:
    error = InvalidArgumentError([Violation("workload.model", "is odd"), Violation("run_id", "is odd too")])
    failure = failure_of(error, {"workload.model": "--model"})
    assert failure.message == "--model: is odd\nrun_id: is odd too"


def test_a_place_in_a_file_is_named_with_the_file() -> None:
    problems = ("table", "table.points[3].label", "table.model", "tables.points", "link")
    error = InvalidArgumentError([Violation(field, "is odd") for field in problems])
    names = {"table": "FILE", "table.": "FILE: ", "table.model": "--model", "link": "--link"}
    assert failure_of(error, names).message.splitlines() == [
        "FILE: is odd",
        "FILE: points[3].label: is odd",
        "--model: is odd",
        "tables.points: is odd",
        "--link: is odd",
    ]


def test_the_request_id_finds_the_call_in_the_log() -> None:
    assert failure_of(errors.InternalError("it broke", request_id="7f3a")).message == "it broke (request 7f3a)"
