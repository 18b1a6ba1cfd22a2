"""Values of options: rates, token counts, durations, numbers. A refusal names the value and what is allowed."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

import click

from linkbound.domain.errors import InvalidArgumentError
from linkbound.domain.link import LARGEST_RATE_BITS_PER_SECOND
from linkbound.domain.quantities import parse_rate_bits_per_second, parse_seconds, parse_tokens
from linkbound.domain.rules import shown

T = TypeVar("T")

_WHOLE = re.compile(r"[+-]?\d{1,30}", re.ASCII)
_REAL = re.compile(r"[+-]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})(?:[eE][+-]?\d{1,3})?", re.ASCII)


class RefusedError(Exception):
    """A text that is no such value; the message says what is allowed."""


Parse = Callable[[object], T]
"""Reads a value from what was typed, or from a default; click takes it as the type of an option."""


def _value(name: str, parse: Callable[[str], T]) -> Parse[T]:
    """Reads a value with `parse`, which raises `RefusedError` or `InvalidArgumentError`; `name` is shown in help."""

    def read(typed: object) -> T:
        try:
            return parse(str(typed))
        except InvalidArgumentError as error:
            message = "; ".join(violation.description for violation in error.field_violations)
        except RefusedError as error:
            message = str(error)
        raise click.BadParameter(message)

    read.__name__ = name
    return read


def parse_whole(text: str) -> int:
    """A whole number in ASCII digits; ranges are the domain's."""
    stripped = text.strip()
    if not _WHOLE.fullmatch(stripped):
        raise RefusedError(f"{shown(text)} is not a whole number")
    return int(stripped)


def parse_real(text: str) -> float:
    """A finite number in ASCII digits."""
    stripped = text.strip()
    if not _REAL.fullmatch(stripped):
        raise RefusedError(f"{shown(text)} is not a number such as 1.9")
    return float(stripped)


def parse_rate(text: str) -> int:
    """A rate in bits per second."""
    rate = parse_rate_bits_per_second(text)
    if not 1 <= rate <= LARGEST_RATE_BITS_PER_SECOND:
        raise RefusedError(f"{shown(text)} is not a rate above 0 and at most 1000t (10^15 bit/s)")
    return rate


def list_of(parse: Callable[[str], T]) -> Callable[[str], tuple[T, ...]]:
    """Reads values with commas between them."""

    def parse_list(text: str) -> tuple[T, ...]:
        return tuple(parse(part) for part in text.split(","))

    return parse_list


WHOLE = _value("number", parse_whole)
REAL = _value("number", parse_real)
RATE = _value("rate", parse_rate)
SECONDS = _value("duration", parse_seconds)
TOKENS = _value("tokens", parse_tokens)
WHOLE_LIST = _value("number,...", list_of(parse_whole))
TOKENS_LIST = _value("tokens,...", list_of(parse_tokens))
