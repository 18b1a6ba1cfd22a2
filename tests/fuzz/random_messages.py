"""Requests that no client would send: fields of every message at random, likely and absurd values alike."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

LARGEST_DEPTH = 6
# Of the values of one message. Most calls of the mildest kind reach the arithmetic behind the rules.
ABSURD_SHARES = (0.0, 0.02, 0.4)

LIKELY_NAMES = {
    "model": ("glm-5.3", "models/qwen3-32b", "llama-3.1-70b", "gpt-oss-120b"),
    "hardware": ("dgx-spark", "hardware/h100-sxm", ""),
    "calibration": ("", "calibrations/dgx-spark-pair", "dgx-spark-4-ring"),
    "engine_calibration": ("", "glm-5.3-dgx-spark-8-200g", "engineCalibrations/glm-5.3-dgx-spark-8-109g"),
    "engine": ("", "vllm-0.32", "vllm-0.30"),
    "switch": ("", "crs804", "switches/sn5600"),
    "nic": ("", "dgx-spark"),
    "model_config_json": ("",),
    "config_json": ('{"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 128}',),
    "page_token": ("",),
    "run": ("a", "runs/b"),
}
ALTERNATIVES = (
    ("model", "model_config_json"),
    ("calibration", "collective_table"),
    ("engine_calibration", "engine_table"),
    ("arrival_pass", "arrival_seconds"),
    ("ttft_seconds", "last_ttft_seconds"),
    ("ttft_seconds", "mean_ttft_seconds"),
)
"""Fields of which a message that means something has one."""
LIKELY_WHOLES = (1, 1, 2, 2, 4, 8, 16)
LIKELY_BY_UNIT = {"tokens": (1, 512, 8192, 10**6), "bytes": (1, 2, 1024, 4096, 10**9), "second": (10**9, 10**11)}
ABSURD_TEXTS = ("", "\x00", "é" * 40, "x" * 5000, "nothing-like-it", '{"hidden_size": 1e999}', "[" * 3000)
ABSURD_WHOLES = (0, -1, 99, -(2**31), 2**31 - 1)
ABSURD_LONG_WHOLES = (*ABSURD_WHOLES, 10**15, 10**15 + 1, 2**53 + 1, -(2**63), 2**63 - 1)
LIKELY_REALS = (0.5, 1.0, 0.9, 6.36, 1000.0)
ABSURD_REALS = (0.0, -1.0, 5e-324, 1e308, math.inf, -math.inf, math.nan)


def random_message(kind: type[Message], source: Random) -> Message:
    """A message of `kind`, its fields and those of the messages in it set at random."""
    return _message(kind, source, source.choice(ABSURD_SHARES), 0)


def random_value(field: Any, source: Random) -> Any:
    """A value of a field that holds no message, likely or absurd."""
    return _value(field, source, source.choice(ABSURD_SHARES), LARGEST_DEPTH)


def _message(kind: type[Message], source: Random, absurd_share: float, depth: int) -> Message:
    message = kind()
    fields: Iterable[Any] = kind.DESCRIPTOR.fields
    for field in fields:
        nests = field.message_type is not None
        if (nests and depth == LARGEST_DEPTH) or source.random() < 0.25 + 0.1 * depth:
            continue
        if nests and field.message_type.GetOptions().map_entry:
            getattr(message, field.name)[source.choice(ABSURD_TEXTS)] = source.choice(ABSURD_TEXTS)
        elif field.is_repeated:
            count = source.choice((1, 2, 3))
            getattr(message, field.name).extend(_value(field, source, absurd_share, depth) for _ in range(count))
        elif nests:
            getattr(message, field.name).CopyFrom(_value(field, source, absurd_share, depth))
        else:
            setattr(message, field.name, _value(field, source, absurd_share, depth))
    if source.random() >= absurd_share:
        _choose_alternatives(message, source)
    return message


def _choose_alternatives(message: Message, source: Random) -> None:
    names = set(message.DESCRIPTOR.fields_by_name)
    for alternatives in ALTERNATIVES:
        if names.issuperset(alternatives):
            message.ClearField(source.choice(alternatives))


def _value(field: Any, source: Random, absurd_share: float, depth: int) -> Any:
    if field.message_type is not None:
        return _message(GetMessageClass(field.message_type), source, absurd_share, depth + 1)
    is_absurd = source.random() < absurd_share
    if field.enum_type is not None:
        return 99 if is_absurd else source.choice([value.number for value in field.enum_type.values])
    if field.type == field.TYPE_BYTES:
        return source.randbytes(source.choice((1, 3, 200)))
    return source.choice((_ABSURD if is_absurd else _LIKELY)[field.cpp_type](field.name))


def _likely_wholes(name: str) -> tuple[int, ...]:
    return LIKELY_BY_UNIT.get(name.rpartition("_")[2], LIKELY_WHOLES)


def _likely_small_wholes(name: str) -> tuple[int, ...]:
    return tuple(value for value in _likely_wholes(name) if value < 2**31)


Choices = dict[int, Callable[[str], tuple[Any, ...]]]
_LIKELY: Choices = {
    FieldDescriptor.CPPTYPE_STRING: lambda name: LIKELY_NAMES.get(name, ("a", "b")),
    FieldDescriptor.CPPTYPE_BOOL: lambda _name: (False, True),
    FieldDescriptor.CPPTYPE_INT32: _likely_small_wholes,
    FieldDescriptor.CPPTYPE_INT64: _likely_wholes,
    FieldDescriptor.CPPTYPE_DOUBLE: lambda _name: LIKELY_REALS,
}
_ABSURD: Choices = {
    FieldDescriptor.CPPTYPE_STRING: lambda _name: ABSURD_TEXTS,
    FieldDescriptor.CPPTYPE_BOOL: lambda _name: (False, True),
    FieldDescriptor.CPPTYPE_INT32: lambda _name: ABSURD_WHOLES,
    FieldDescriptor.CPPTYPE_INT64: lambda _name: ABSURD_LONG_WHOLES,
    FieldDescriptor.CPPTYPE_DOUBLE: lambda _name: ABSURD_REALS,
}
