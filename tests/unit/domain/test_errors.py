"""The error tree: what programs read from it."""

from __future__ import annotations

import pytest

from linkbound.domain import errors
from linkbound.domain.errors import Error, InvalidArgumentError, NotFoundError, Resource, Violation


def test_a_missing_thing_names_itself_and_its_neighbours() -> None:
    error = NotFoundError.of(Resource("model", "glm-5.4"), ("glm-5.3", "glm-5.2"))
    assert str(error) == "model 'glm-5.4' does not exist; did you mean glm-5.3, glm-5.2?"
    assert error.reason == "MODEL_NOT_FOUND"
    assert error.metadata == {"model": "glm-5.4", "nearNames": "glm-5.3,glm-5.2"}
    assert error.near_names == ("glm-5.3", "glm-5.2")


def test_a_missing_thing_without_neighbours_does_not_guess() -> None:
    error = NotFoundError.of(Resource("run", "x"))
    assert "did you mean" not in str(error)
    assert error.metadata == {"run": "x"}


def test_the_message_of_a_bad_request_holds_every_violation() -> None:
    error = InvalidArgumentError([Violation("a", "is wrong"), Violation("b[0].c", "is worse")])
    assert str(error) == "a: is wrong; b[0].c: is worse"


def concrete_errors() -> list[type[Error]]:
    found = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, Error)]
    return [kind for kind in found if kind is not Error and not kind.__name__.startswith("_")]


@pytest.mark.parametrize("kind", concrete_errors())
def test_each_class_has_a_code_of_its_own_and_a_line_in_the_tree(kind: type[Error]) -> None:
    assert kind.code != Error.code
    assert [other for other in concrete_errors() if other.code == kind.code] == [kind]
    assert kind.__name__ in str(errors.__doc__)
