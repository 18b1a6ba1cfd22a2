"""What a protobuf message leaves unset."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def unset_fields(message: Any, path: str = "") -> Iterable[str]:
    """Fields of a message, and of the messages in it, that are at their default; of a oneof, one has to be set."""
    present = {field.name for field, _ in message.ListFields()}
    for field in message.DESCRIPTOR.fields:
        oneof = field.containing_oneof
        alternatives = {f.name for f in oneof.fields} if oneof is not None else {field.name}
        if not alternatives & present:
            yield path + field.name
    for field, content in message.ListFields():
        kind = field.message_type
        if kind is None or kind.GetOptions().map_entry or kind.full_name.startswith("google."):
            continue
        for entry in content if field.is_repeated else [content]:
            yield from unset_fields(entry, f"{path}{field.name}.")
