"""Tables as TOML text: the part of TOML that files of the catalogue need."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_LONGEST_LINE = 110


def toml_text(table: Mapping[str, Any]) -> str:
    """`table` as TOML: text, numbers, true and false, arrays of these, tables and arrays of tables."""
    return "\n".join(_lines(table, "")).lstrip("\n") + "\n"


def _lines(table: Mapping[str, Any], path: str) -> Iterator[str]:
    nested = {name: value for name, value in table.items() if _is_nested(value)}
    for name, value in table.items():
        if name not in nested:
            yield f"{name} = {_value(value, len(name) + 3)}"
    for name, value in nested.items():
        own_path = f"{path}.{name}" if path else name
        for entry in value if isinstance(value, list) else [value]:
            yield ""
            yield f"[[{own_path}]]" if isinstance(value, list) else f"[{own_path}]"
            yield from _lines(entry, own_path)


def _is_nested(value: object) -> bool:
    return isinstance(value, Mapping) or (
        isinstance(value, list) and bool(value) and all(isinstance(entry, Mapping) for entry in value)
    )


def _value(value: Any, column: int) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # JSON escapes are TOML's, but for the one control character that JSON lets stand.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
    if isinstance(value, int):
        return f"{value:_}" if abs(value) >= 10**6 else str(value)
    if isinstance(value, float):
        return repr(value)
    return _array(value, column)


def _array(values: Sequence[Any], column: int) -> str:
    items = [_value(value, 2) for value in values]
    line = f"[{', '.join(items)}]"
    if column + len(line) <= _LONGEST_LINE:
        return line
    return "[\n" + "".join(f"  {item},\n" for item in items) + "]"
