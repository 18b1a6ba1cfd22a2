"""Whether anybody still waits for an answer: long work looks after every pass, and ends where nobody does.

What is answered never depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")


class UnwantedError(Exception):
    """Nobody waits for the answer any more, so nobody meets this either."""


def _never() -> bool:
    return False


# Carried with the call and not as an argument: any depth of the work may look, and none has to hand it on.
_IS_UNWANTED: ContextVar[Callable[[], bool]] = ContextVar("linkbound_is_unwanted", default=_never)


@contextmanager
def wanted_until(is_unwanted: Callable[[], bool]) -> Iterator[None]:
    """Long work in the block ends with UnwantedError once `is_unwanted` (`docs/formulas.md`, Schedule)."""
    token = _IS_UNWANTED.set(is_unwanted)
    try:
        yield
    finally:
        _IS_UNWANTED.reset(token)


def check_wanted() -> None:
    """Raise UnwantedError where nobody waits for the answer any more (`docs/formulas.md`, Schedule)."""
    if _IS_UNWANTED.get()():
        raise UnwantedError


def while_wanted(items: Iterable[T]) -> Iterator[T]:
    """Every item, for as long as somebody waits; else UnwantedError (`docs/formulas.md`, Schedule)."""
    for item in items:
        check_wanted()
        yield item
