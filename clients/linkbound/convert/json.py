"""Messages as JSON objects: what `--json` prints.

Differs from protobuf's own mapping where a script is better served: names in snake_case, 64-bit integers as numbers,
every field without presence printed, and no NaN or Infinity. An absent optional or message is left out.
"""

from __future__ import annotations

import base64
import functools
import math
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from linkbound.domain.errors import InternalError

if TYPE_CHECKING:
    from google._upb import _message

    AnyDescriptor: TypeAlias = Descriptor | _message.Descriptor
    AnyFieldDescriptor: TypeAlias = FieldDescriptor | _message.FieldDescriptor

JsonValue: TypeAlias = Any
"""A value that the standard `json` module writes."""

_Writer: TypeAlias = Callable[[Any], JsonValue]

_FLOATS = (FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_FLOAT)


def message_to_json(message: Message) -> dict[str, JsonValue]:
    """`message` as a JSON object; fields in the order of the proto, map entries by key, enums by their proto names.

    Raises InternalError (NOT_A_JSON_NUMBER) for NaN and infinities, for which JSON has no number.
    """
    written: dict[str, JsonValue] = _message_writer(message.DESCRIPTOR)(message)
    return written


_AS_TEXT: dict[str, _Writer] = {
    Timestamp.DESCRIPTOR.full_name: Timestamp.ToJsonString,
    Duration.DESCRIPTOR.full_name: Duration.ToJsonString,
}
"""Messages that are one text."""


# An answer may have millions of messages of a few kinds: what a kind needs is found out once, when there is one of it,
# since a kind may hold itself.
@functools.cache
def _message_writer(kind: AnyDescriptor) -> _Writer:
    """What makes an object of a message of that kind."""
    as_text = _AS_TEXT.get(kind.full_name)
    if as_text is not None:
        return as_text
    fields = [(field.name, field.has_presence, _field_writer(field)) for field in kind.fields]

    def write_message(message: Message) -> dict[str, JsonValue]:
        written = {}
        for name, has_presence, write in fields:
            if not has_presence or message.HasField(name):
                content = getattr(message, name)
                written[name] = content if write is None else write(content)
        return written

    return write_message


@functools.cache
def _list_writer(kind: AnyDescriptor) -> _Writer:
    """What makes objects of messages of that kind, by the shortest way where their fields are written as they are."""
    names = tuple(field.name for field in kind.fields)
    is_plain = all(not field.has_presence and _field_writer(field) is None for field in kind.fields)
    if is_plain and len(names) > 1 and kind.full_name not in _AS_TEXT:
        values_of = attrgetter(*names)
        return lambda content: [dict(zip(names, values, strict=False)) for values in map(values_of, content)]
    write = _message_writer(kind)
    return lambda content: list(map(write, content))


def _field_writer(field: AnyFieldDescriptor) -> _Writer | None:
    """What writes the content of a field; None where it is written as it is."""
    kind = field.message_type
    if kind is None:
        write = _scalar_writer(field)
        if not field.is_repeated:
            return write
        return list if write is None else lambda content: [write(value) for value in content]
    if kind.GetOptions().map_entry:
        write_value = _field_writer(kind.fields_by_name["value"]) or _as_it_is
        return lambda content: {_map_key(key): write_value(content[key]) for key in sorted(content)}

    writer_of = _list_writer if field.is_repeated else _message_writer

    def write_messages(content: Message | Iterable[Message]) -> JsonValue:
        return writer_of(kind)(content)

    return write_messages


def _scalar_writer(field: AnyFieldDescriptor) -> _Writer | None:
    """What writes one number or text of a field; None where it is written as it is."""
    choices = field.enum_type
    if choices is not None:
        names = {number: known.name for number, known in choices.values_by_number.items()}
        return lambda number: names.get(number, number)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return lambda content: base64.b64encode(content).decode("ascii")
    if field.type in _FLOATS:
        return functools.partial(_finite, field.full_name)
    return None


def _finite(name: str, number: float) -> float:
    if math.isfinite(number):
        return number
    raise InternalError(
        f"{name} is {number}, which JSON cannot hold", reason="NOT_A_JSON_NUMBER", metadata={"field": name}
    )


def _as_it_is(value: JsonValue) -> JsonValue:
    return value


def _map_key(key: object) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)
