"""Values of options: rates, token counts, durations, numbers. A refusal names the value and what is allowed."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

import click

from linkbound.domain.errors import InvalidArgumentError
from linkbound.domain.link import LARGEST_RATE_BITS_PER_SECOND, Link, LinkTransport
from linkbound.domain.link_presets import parse_link
from linkbound.domain.quantities import parse_bytes, parse_rate_bits_per_second, parse_seconds, parse_tokens
from linkbound.domain.rules import shown

T = TypeVar("T")

TRANSPORTS = {
    transport.name.lower(): transport
    for transport in LinkTransport
    if transport not in (LinkTransport.UNSPECIFIED, LinkTransport.UNKNOWN)
}
"""Transports by the name that a person types."""

_WHOLE = re.compile(r"[+-]?\d{1,30}", re.ASCII)
_REAL = re.compile(r"[+-]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})(?:[eE][+-]?\d{1,3})?", re.ASCII)


class RefusedError(Exception):
    """A text that is no such value; the message says what is allowed."""


Parse = Callable[[object], T]
"""Reads a value from what was typed, or from a default; click takes it as the type of an option."""


def value(name: str, parse: Parse[T]) -> Parse[T]:
    """Reads a value with `parse`, which raises `RefusedError` or `InvalidArgumentError`; `name` is shown in help."""

    def read(typed: object) -> T:
        try:
            return parse(typed)
        except InvalidArgumentError as error:
            message = "; ".join(violation.description for violation in error.field_violations)
        except RefusedError as error:
            message = str(error)
        raise click.BadParameter(message)

    read.__name__ = name
    return read


def _value(name: str, parse: Callable[[str], T]) -> Parse[T]:
    """As `value`, of the text that was typed."""
    return value(name, lambda typed: parse(str(typed)))


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
    return _within_limits(text, parse_rate_bits_per_second(text))


def parse_named_link(text: str) -> Link:
    """A link: the name of one, or a rate."""
    link = parse_link(text)
    if link.line_rate_bits_per_second is not None:
        _within_limits(text, link.line_rate_bits_per_second)
    return link


def parse_transport(text: str) -> LinkTransport:
    """How bytes travel, by name."""
    transport = TRANSPORTS.get(text.strip().casefold())
    if transport is None:
        raise RefusedError(f"{shown(text)} is not one of {', '.join(TRANSPORTS)}")
    return transport


def _within_limits(text: str, bits_per_second: int) -> int:
    if not 1 <= bits_per_second <= LARGEST_RATE_BITS_PER_SECOND:
        raise RefusedError(f"{shown(text)} is not a rate above 0 and at most 1000t (10^15 bit/s)")
    return bits_per_second


def list_of(parse: Callable[[str], T]) -> Callable[[str], tuple[T, ...]]:
    """Reads values with commas between them."""

    def parse_list(text: str) -> tuple[T, ...]:
        return tuple(parse(part) for part in text.split(","))

    return parse_list


WHOLE = _value("number", parse_whole)
REAL = _value("number", parse_real)
RATE = _value("rate", parse_rate)
LINK = _value("link", parse_named_link)
LINK_LIST = _value("link,...", list_of(parse_named_link))
TRANSPORT = _value("transport", parse_transport)
SECONDS = _value("duration", parse_seconds)
TOKENS = _value("tokens", parse_tokens)
BYTES = _value("bytes", parse_bytes)
WHOLE_LIST = _value("number,...", list_of(parse_whole))
TOKENS_LIST = _value("tokens,...", list_of(parse_tokens))
SECONDS_LIST = _value("duration,...", list_of(parse_seconds))
