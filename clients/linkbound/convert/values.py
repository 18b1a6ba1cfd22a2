"""What every converter needs: enums by name, instants, absent values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from google.protobuf.timestamp_pb2 import Timestamp

from linkbound.domain.errors import InternalError

if TYPE_CHECKING:
    from google.protobuf.internal.enum_type_wrapper import _EnumTypeWrapper

A = TypeVar("A")
B = TypeVar("B")
E = TypeVar("E", bound=Enum)
V = TypeVar("V", bound=int)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NS_PER_MICROSECOND = 1000


class EnumConverter(Generic[E, V]):
    """Both directions of one enum. The values of the domain's enum are the names in the proto.

    `UNKNOWN` is written as the unspecified value: the number it was read from is not kept.
    """

    def __init__(self, kind: type[E], proto: _EnumTypeWrapper[V]) -> None:
        numbers: Mapping[str, V] = dict(proto.items())
        unspecified = next(number for number in numbers.values() if number == 0)
        self._unknown = kind["UNKNOWN"]
        # Looked up without a function around it: an answer has dozens of members.
        self.to_proto: Callable[[E], V] = {
            member: numbers.get(member.value, unspecified) for member in kind
        }.__getitem__
        """The number of a member."""
        self._members = {int(number): kind(name) for name, number in numbers.items()}

    def from_proto(self, number: int) -> E:
        """The member of `number`, `UNKNOWN` where this version has none."""
        return self._members.get(number, self._unknown)


def maybe(convert: Callable[[A], B], value: A | None) -> B | None:
    """`convert(value)`, or None for None."""
    return None if value is None else convert(value)


def each(convert: Callable[[A], B], values: Iterable[A]) -> tuple[B, ...]:
    """`convert` of each of the `values`."""
    return tuple(map(convert, values))


def each_up_to(largest_count: int, convert: Callable[[A], B], values: Collection[A]) -> tuple[B, ...]:
    """`convert` of each of the `values` of a request, whose rule allows `largest_count` of them.

    Of more than that none is read: as many entries go to the rule, which refuses them by their number.
    """
    if len(values) > largest_count:
        unread: Any = (None,) * len(values)
        return cast("tuple[B, ...]", unread)
    return tuple(map(convert, values))


def timestamp_to_proto(value: datetime) -> Timestamp:
    """The instant of an aware datetime."""
    since_epoch = value - _EPOCH
    seconds = since_epoch.days * 86_400 + since_epoch.seconds
    return Timestamp(seconds=seconds, nanos=since_epoch.microseconds * _NS_PER_MICROSECOND)


def timestamp_from_proto(message: Timestamp) -> datetime:
    """The instant as an aware datetime in UTC, cut to microseconds.

    Raises InternalError (MALFORMED_ANSWER) for one outside the years 1 to 9999: only answers hold instants.
    """
    try:
        return _EPOCH + timedelta(seconds=message.seconds, microseconds=message.nanos // _NS_PER_MICROSECOND)
    except OverflowError as error:
        raise InternalError(
            f"{message.seconds} seconds since 1970 are outside the years 1 to 9999",
            reason="MALFORMED_ANSWER",
            metadata={"seconds": str(message.seconds)},
        ) from error
