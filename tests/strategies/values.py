"""Texts, numbers, instants and members, and how full a value is; what every other strategy is made of."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import Enum
from typing import Any

from hypothesis import strategies as st

Strategy = st.SearchStrategy[Any]


class Fill(Enum):
    """How much of a value is there."""

    ANY = "ANY"
    FULL = "FULL"


INT32 = (-(2**31), 2**31 - 1)
INT64 = (-(2**63), 2**63 - 1)
LARGEST_SECONDS = 1e9
LARGEST_RATE = 10**15

_ID_STARTS = "abcdefghijklmnopqrstuvwxyz0123456789"
IDS = st.builds(str.__add__, st.sampled_from(_ID_STARTS), st.text(_ID_STARTS + "._-", max_size=63))
WRITER_IDS = st.text(_ID_STARTS + _ID_STARTS.upper() + "._:-", min_size=1, max_size=128)
# Any script, but nothing that a terminal would act on.
PRINTABLE = st.characters(exclude_categories=("C", "Z"))


def texts(fill: Fill, maximum_length: int = 64, minimum_length: int = 0) -> Strategy:
    return st.text(PRINTABLE, min_size=1 if fill is Fill.FULL else minimum_length, max_size=maximum_length)


def reals(fill: Fill, low: float, high: float) -> Strategy:
    numbers = st.floats(low, high, allow_nan=False)
    return numbers.filter(bool) if fill is Fill.FULL else numbers


def wholes(fill: Fill, low: int, high: int) -> Strategy:
    numbers = st.integers(low, high)
    return numbers.filter(bool) if fill is Fill.FULL and low <= 0 <= high else numbers


def maybe(fill: Fill, strategy: Strategy) -> Strategy:
    return strategy if fill is Fill.FULL else st.none() | strategy


def tuples_of(fill: Fill, item: Strategy, maximum_count: int = 3, minimum_count: int = 0) -> Strategy:
    minimum = max(minimum_count, 1 if fill is Fill.FULL else 0)
    return st.lists(item, min_size=minimum, max_size=maximum_count).map(tuple)


def members(fill: Fill, kind: type[Enum], *refused: str) -> Strategy:
    """Members that a message can hold: UNKNOWN is what was read, never what is written."""
    left_out = {"UNKNOWN", *refused, *(("UNSPECIFIED",) if fill is Fill.FULL else ())}
    return st.sampled_from([member for member in kind if member.name not in left_out])


def instants(fill: Fill) -> Strategy:
    # Without bounds: every instant that a datetime can hold.
    drawn = st.datetimes(timezones=st.just(UTC))
    # A zero is how a field is left out, and second 0 of 1970 is the instant whose whole seconds are that.
    return (
        drawn.filter(lambda instant: bool(instant.microsecond) and not _is_second_zero(instant))
        if fill is Fill.FULL
        else drawn
    )


def _is_second_zero(instant: datetime) -> bool:
    return instant.replace(microsecond=0) == datetime(1970, 1, 1, tzinfo=UTC)


def seconds(fill: Fill) -> Strategy:
    return maybe(fill, st.floats(1e-9, LARGEST_SECONDS))


def of_plain_type(fill: Fill, hint: Any) -> Strategy:
    if isinstance(hint, type) and issubclass(hint, Enum):
        return members(fill, hint)
    by_type: dict[Any, Strategy] = {
        int: wholes(fill, *INT32),
        float: reals(fill, -1.7e308, 1.7e308),
        str: texts(fill),
        bool: st.just(True) if fill is Fill.FULL else st.booleans(),
        datetime: instants(fill),
    }
    return by_type[hint]
