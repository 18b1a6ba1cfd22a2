"""The rules engine: every violation at once, each with its dotted path, the value and what is allowed."""

from __future__ import annotations

import importlib
import math
import pkgutil
from collections.abc import Iterable
from enum import Enum
from typing import Any

import attrs
import pytest
from attrs import field, frozen
from hypothesis import given
from hypothesis import strategies as st

import linkbound.domain
from linkbound.domain.errors import InvalidArgumentError, Violation
from linkbound.domain.rules import (
    Checked,
    CrossChecked,
    finite,
    instance,
    member,
    one_of,
    optional,
    pattern,
    real,
    sequence,
    shown,
    text,
    violations_of,
    whole,
)


class Colour(Enum):
    UNSPECIFIED = 0
    RED = 1


@frozen(kw_only=True)
class Leaf(CrossChecked):
    low: int = field(default=1, metadata=whole(1, 10))
    high: int = field(default=5, metadata=whole(1, 10))

    def cross_violations(self) -> Iterable[Violation]:
        if self.low > self.high:
            yield Violation("low", f"{self.low} is above high, {self.high}")


@frozen(kw_only=True)
class Tree(Checked):
    leaf: Leaf = field(metadata=instance(Leaf))
    leaves: tuple[Leaf, ...] = field(default=(), metadata=sequence(0, 3))
    colour: Colour = field(default=Colour.RED, metadata=member(Colour, Colour.UNSPECIFIED))
    seconds: float | None = field(default=None, metadata=optional(real(100.0)))


@frozen(kw_only=True)
class One:
    value: object = field(default=None)


def problem_with(rule: dict[str, object], value: object) -> str | None:
    """What `rule` says of `value`, through the public walk."""

    @frozen(kw_only=True)
    class Holder:
        value: object = field(metadata=rule)

    found = list(violations_of(Holder(value=value)))
    return "; ".join(violation.description for violation in found) if found else None


def test_every_violation_is_reported_at_once_in_the_order_of_the_fields() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        Tree(
            leaf=Leaf(low=0, high=11),
            leaves=(Leaf(), Leaf(low=99)),
            colour=Colour.UNSPECIFIED,
            seconds=math.nan,
        )
    assert [v.field for v in caught.value.field_violations] == [
        "leaf.low",
        "leaf.high",
        "leaves[1].low",
        "colour",
        "seconds",
    ]
    assert "99 is not a whole number from 1 to 10" in str(caught.value)
    assert caught.value.reason == "INVALID_FIELD"
    assert caught.value.code == "INVALID_ARGUMENT"


def test_cross_rules_carry_the_path_and_wait_for_the_fields() -> None:
    with pytest.raises(InvalidArgumentError) as crossed:
        Tree(leaf=Leaf(low=9, high=2))
    assert [v.field for v in crossed.value.field_violations] == ["leaf.low"]
    assert "9 is above high, 2" in crossed.value.message
    with pytest.raises(InvalidArgumentError) as broken:
        Tree(leaf=Leaf(low=0, high=0))
    assert len(broken.value.field_violations) == 2
    assert "above high" not in broken.value.message


def test_nested_types_do_not_raise_by_themselves() -> None:
    assert Leaf(low=0).low == 0


@pytest.mark.parametrize(
    ("rule", "good", "bad"),
    [
        (whole(1, 8), [1, 8], [0, 9, -1, 10**18, 1.0, True, "1", None, math.nan]),
        (real(10.0), [1e-300, 10.0, 3], [0, 0.0, -1.0, 10.1, math.nan, math.inf, -math.inf, True, "1", None]),
        (finite(-1.0, 1.0), [-1.0, 0, 1.0], [-1.1, 1.1, math.nan, math.inf, False, None]),
        (text(3), ["", "abc", "köl"], ["abcd", "a\n", "\x00", 3, None]),
        (text(3, minimum_length=1), ["a"], [""]),
        (pattern("[a-z]+", "lower case"), ["abc"], ["", "ABC", "é", "abc\n", 1, None]),
        (one_of(256, 1024), [256], [255, "256", 256.0, None]),
        (member(Colour, Colour.UNSPECIFIED), [Colour.RED], [Colour.UNSPECIFIED, "RED", 1, None]),
        (optional(whole(1, 2)), [None, 1], [0]),
        (sequence(1, 2, whole(1, 9)), [(1,), (1, 9)], [(), (1, 2, 3), (0,), [1], None]),
        (instance(Leaf), [Leaf()], [One(), None]),
    ],
)
def test_each_rule_takes_the_good_and_refuses_the_bad(
    rule: dict[str, object], good: list[object], bad: list[object]
) -> None:
    for value in good:
        assert problem_with(rule, value) is None, value
    for value in bad:
        description = problem_with(rule, value)
        assert description is not None, value
        assert description.isascii()


def test_a_member_is_named_as_people_know_it() -> None:
    assert problem_with(dict(member(Colour, Colour.UNSPECIFIED)), Colour.UNSPECIFIED) == "UNSPECIFIED is not one of RED"


def test_every_bad_item_of_a_sequence_has_a_path_of_its_own() -> None:
    @frozen(kw_only=True)
    class Sizes(Checked):
        sizes: tuple[int, ...] = field(metadata=sequence(0, 9, whole(1, 2)))

    with pytest.raises(InvalidArgumentError) as caught:
        Sizes(sizes=(1, 3, 2, 0))
    assert [(v.field, v.description) for v in caught.value.field_violations] == [
        ("sizes[1]", "3 is not a whole number from 1 to 2"),
        ("sizes[3]", "0 is not a whole number from 1 to 2"),
    ]


@pytest.mark.parametrize("rule", [whole(1, 2), real(1.0), finite(0.0, 1.0)])
@pytest.mark.parametrize("value", [10**400, -(10**400), 10**5000], ids=["huge", "negative", "unprintable"])
def test_a_number_beyond_floats_and_beyond_printing_is_refused_like_any_other(
    rule: dict[str, object], value: int
) -> None:
    description = problem_with(rule, value)
    assert description is not None
    assert len(description) < 200


@given(st.text())
def test_a_shown_value_is_short_ascii_on_one_line(value: str) -> None:
    assert shown(value).isascii()
    assert "\n" not in shown(value)
    assert len(shown(value)) <= 80 + len("... (1000000000 characters)")


@given(st.integers(), st.integers(-100, 100), st.integers(0, 100))
def test_whole_is_membership_of_the_range(value: int, low: int, span: int) -> None:
    accepted = problem_with(dict(whole(low, low + span)), value) is None
    assert accepted == (value in range(low, low + span + 1))


def domain_classes() -> list[type[Any]]:
    """Every class with rules of the domain."""
    names = [f"linkbound.domain.{info.name}" for info in pkgutil.iter_modules(linkbound.domain.__path__)]
    found = {kind for name in names for kind in vars(importlib.import_module(name)).values() if isinstance(kind, type)}
    return sorted((kind for kind in found if attrs.has(kind)), key=lambda kind: kind.__qualname__)


@pytest.mark.parametrize("kind", domain_classes())
def test_a_default_keeps_its_rule(kind: type[Any]) -> None:
    """Defaults are not checked again in every request."""
    for attribute in attrs.fields(kind):
        check, default = attribute.metadata.get("linkbound_rule"), attribute.default
        if check is not None and default is not attrs.NOTHING:
            assert check(default) is None, attribute.name


def test_the_classes_of_the_domain_are_found() -> None:
    assert len(domain_classes()) > 50
