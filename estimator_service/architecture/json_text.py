"""The text of a config as plain values, within bounds of size, depth and number, whatever the text is."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Mapping
from typing import Any

from linkbound.domain.catalog import LARGEST_CONFIG_BYTES
from linkbound.domain.errors import InvalidArgumentError, Violation
from linkbound.domain.rules import shown

LARGEST_DEPTH = 64
LARGEST_CONTAINER_COUNT = 200_000
"""Objects and arrays together; they bound the memory that the values take."""
LARGEST_DIGIT_COUNT = 18
"""Whole numbers of more digits count as infinite: nothing in a model is that large."""
_SHOWN_DIGIT_COUNT = 40

_STRUCTURE = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)
_FIRST_CHARACTERS = 64
_OTHER_FORMATS = (
    ("GGUF", "is a GGUF file, not a config.json; a GGUF is made from a model whose config.json can be imported"),
    ("PK\x03\x04", "is a zip archive or a PyTorch checkpoint, not a config.json"),
    ("<", "is HTML or XML, not a config.json; on a model page, take the raw file"),
)
_SAFETENSORS = "is a safetensors file, not a config.json; the config.json lies beside it"
_INDEX = "is the index of a checkpoint's weights, not its config.json"
_SEARCHED_ENTRY_COUNT = 4


class _BeyondRange(float):
    """A number that is too large to be held, infinite in sums and shown as it was written."""

    __slots__ = ("_text",)
    _text: str

    def __new__(cls, text: str) -> _BeyondRange:
        number = super().__new__(cls, "-inf" if text.startswith("-") else "inf")
        number._text = text
        return number

    def __repr__(self) -> str:
        if len(self._text) <= _SHOWN_DIGIT_COUNT:
            return self._text
        return f"{self._text[:_SHOWN_DIGIT_COUNT]}... ({len(self._text)} characters)"


def parse_config(text: str, field: str) -> Mapping[str, Any]:
    """The object in `text`. Raises InvalidArgumentError with one violation of `field` where it is none."""
    problem = _problem_of_text(text)
    if problem is None:
        try:
            # A byte order mark says nothing that UTF-8 needs.
            values = json.loads(text.removeprefix("\ufeff"), parse_int=_whole, parse_float=_fraction)
        except (ValueError, RecursionError) as error:
            problem = f"is not JSON: {_in_short(error)}"
        else:
            problem = _problem_of_values(values)
            if problem is None:
                return dict(values)
    raise InvalidArgumentError([Violation(field, problem)])


def _problem_of_text(text: str) -> str | None:
    size_bytes = len(text) if text.isascii() else len(text.encode("utf-8", errors="surrogatepass"))
    if size_bytes > LARGEST_CONFIG_BYTES:
        return f"{size_bytes} bytes are above {LARGEST_CONFIG_BYTES}"
    start = text[:_FIRST_CHARACTERS].lstrip("\ufeff \t\r\n")
    if not start:
        return "is empty" if not text.strip() else "is not JSON: it starts with blanks alone"
    for mark, problem in _OTHER_FORMATS:
        if start.startswith(mark):
            return problem
    if "\x00" in start:
        return _SAFETENSORS if '{"' in start else "is not text: it has NUL bytes"
    container_count = text.count("{") + text.count("[")
    if container_count > LARGEST_CONTAINER_COUNT:
        return f"holds {container_count} objects and arrays, above {LARGEST_CONTAINER_COUNT}"
    depth = _depth(text)
    return f"is nested {depth} deep, above {LARGEST_DEPTH}" if depth > LARGEST_DEPTH else None


def _depth(text: str) -> int:
    """How deep objects and arrays are nested; counting ends past the limit."""
    depth = deepest = 0
    for match in _STRUCTURE.finditer(text):
        character = match.group()[0]
        if character in "{[":
            depth += 1
            deepest = max(deepest, depth)
            if deepest > LARGEST_DEPTH:
                break
        elif character in "}]":
            depth -= 1
    return deepest


def _problem_of_values(values: object) -> str | None:
    if not isinstance(values, dict):
        return f"is not a JSON object but {_kind(values)}"
    if not values:
        return "is an empty object"
    if isinstance(values.get("weight_map"), dict):
        return _INDEX
    first = itertools.islice(values.values(), _SEARCHED_ENTRY_COUNT)
    if any(isinstance(entry, dict) and "data_offsets" in entry for entry in first):
        return _SAFETENSORS
    return None


def _whole(digits: str) -> int | float:
    return int(digits) if len(digits.lstrip("-")) <= LARGEST_DIGIT_COUNT else _BeyondRange(digits)


def _fraction(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _BeyondRange(text)


def _kind(value: object) -> str:
    kinds = {list: "an array", str: "text", bool: "true or false", type(None): "null"}
    return kinds.get(type(value), "a number")


def _in_short(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg}, line {error.lineno} column {error.colno}"
    return shown(str(error)) if str(error) else type(error).__name__
