"""Messages as JSON objects: what `--json` prints.

Differs from protobuf's own mapping where a script is better served: names in snake_case, 64-bit integers as numbers,
every field without presence printed, and no NaN or Infinity. An absent optional or message is left out.
"""

from __future__ import annotations

import base64
import math
from typing import TYPE_CHECKING, Any, TypeAlias

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from linkbound.domain.errors import InternalError

if TYPE_CHECKING:
    from google._upb import _message

    AnyFieldDescriptor: TypeAlias = FieldDescriptor | _message.FieldDescriptor

JsonValue: TypeAlias = Any
"""A value that the standard `json` module writes."""


def message_to_json(message: Message) -> dict[str, JsonValue]:
    """`message` as a JSON object; fields in the order of the proto, map entries by key, enums by their proto names.

    Raises InternalError (NOT_A_JSON_NUMBER) for NaN and infinities, for which JSON has no number.
    """
    return {
        field.name: _field_to_json(field, getattr(message, field.name))
        for field in message.DESCRIPTOR.fields
        if not field.has_presence or message.HasField(field.name)
    }


def _field_to_json(field: AnyFieldDescriptor, content: Any) -> JsonValue:
    entry = field.message_type
    if entry is not None and entry.GetOptions().map_entry:
        value_field = entry.fields_by_name["value"]
        return {_map_key(key): _value_to_json(value_field, content[key]) for key in sorted(content)}
    if field.is_repeated:
        return [_value_to_json(field, item) for item in content]
    return _value_to_json(field, content)


def _value_to_json(field: AnyFieldDescriptor, value: Any) -> JsonValue:
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return value if known is None else known.name
    match value:
        case Timestamp():
            return value.ToJsonString()
        case Message():
            return message_to_json(value)
        case bytes():
            return base64.b64encode(value).decode("ascii")
        case float() if not math.isfinite(value):
            raise InternalError(
                f"{field.full_name} is {value}, which JSON cannot hold",
                reason="NOT_A_JSON_NUMBER",
                metadata={"field": field.full_name},
            )
        case _:
            return value


def _map_key(key: object) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)
