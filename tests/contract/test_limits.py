"""The limits that the protos state are those that the domain types hold."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import pytest

from linkbound.domain.records import AppendRequest
from linkbound.ingest.v1 import ingest_service_pb2
from tests.contract.protos import comments, request_fields
from tests.unit.convert.converters import message_pairs

COMMENTS = comments()
RANGE = re.compile(r"(?P<low>-?\d[\d^]*) to (?P<high>\d[\d^]*(?: - 1)?)(?: characters| of |[,;.: ]|$)")
NOT_ONE_RANGE = {
    "linkbound.ingest.v1.SeriesDescriptor.port": "1 to 10^6, or 0",
    "linkbound.estimator.v1.DecodeWorkload.acceptance_length_tokens": "its upper end depends on the draft tokens",
}

Check = Callable[[object], str | None]


def number(text: str) -> int:
    """`2^62`, `-1000`, `2^63 - 1`."""
    power, _, less = text.removeprefix("-").partition(" - ")
    base, _, exponent = power.partition("^")
    size: int = int(base) ** int(exponent or 1) - int(less or 0)
    return -size if text.startswith("-") else size


def domain_classes() -> dict[str, type[Any]]:
    """The domain class of each message that a request holds."""
    classes = {pair.message.DESCRIPTOR.full_name: pair.domain for pair in message_pairs() if attrs.has(pair.domain)}
    for kind in ("RequestRecords", "MetricAggregates", "CollectiveResults", "TrainingSteps", "LinkTests", "Events"):
        message = getattr(ingest_service_pb2, f"Append{kind}Request")
        classes[message.DESCRIPTOR.full_name] = AppendRequest
    return classes


def check_of(kind: type[Any], name: str) -> Check | None:
    """The rule of a field."""
    attribute = attrs.fields_dict(kind).get(name)
    return None if attribute is None else attribute.metadata.get("linkbound_rule")


def stated_ranges() -> Iterator[tuple[str, Check, int, int, bool]]:
    classes = domain_classes()
    for field in request_fields():
        message_name, _, name = str(field.full_name).rpartition(".")
        stated = RANGE.search(COMMENTS.get(field.full_name, ""))
        if stated is None or message_name not in classes or field.full_name in NOT_ONE_RANGE:
            continue
        check = check_of(classes[message_name], name)
        if check is not None and not field.is_repeated:
            is_text = field.type == field.TYPE_STRING
            yield field.full_name, check, number(stated["low"]), number(stated["high"]), is_text


RANGES = list(stated_ranges())
NUMBERS = [(name, check, low, high) for name, check, low, high, is_text in RANGES if not is_text]
TEXTS = [(name, check, low, high) for name, check, low, high, is_text in RANGES if is_text]


def test_most_stated_ranges_are_found() -> None:
    assert len(NUMBERS) > 30
    assert len(TEXTS) > 10


@pytest.mark.parametrize(("name", "check", "low", "high"), NUMBERS, ids=[entry[0] for entry in NUMBERS])
def test_a_number_may_be_what_the_proto_says(name: str, check: Check, low: int, high: int) -> None:
    assert check(low) is None
    assert check(high) is None
    assert check(low - _step(low)) is not None
    assert check(high + _step(high)) is not None


def _step(limit: int) -> int:
    """Enough to leave a limit, for a whole number and for a float."""
    return max(1, abs(limit) // 10**12)


@pytest.mark.parametrize(("name", "check", "low", "high"), TEXTS, ids=[entry[0] for entry in TEXTS])
def test_a_text_may_be_as_long_as_the_proto_says(name: str, check: Check, low: int, high: int) -> None:
    assert check("a" * low) is None
    assert check("a" * high) is None
    assert check("a" * (high + 1)) is not None
    assert check("a" * (low - 1)) is not None
