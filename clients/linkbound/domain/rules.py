"""Rules of request fields: declared beside the field, checked all at once.

A field states its rule as metadata: ``prompt_tokens: int = field(metadata=whole(1, 10**9))``. A request type derives
from `Checked`; building one walks it with everything nested in it and raises one `InvalidArgumentError` that lists
every violation with its dotted path. Nested types state rules and do not raise by themselves, so that one bad link
does not hide a bad token count.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, ClassVar, TypeVar

import attrs

from linkbound.domain.errors import InvalidArgumentError, Violation

Check = Callable[[object], str | None]
"""Takes a value and returns what is wrong with it, or None."""

T = TypeVar("T", bound=attrs.AttrsInstance)
Item = TypeVar("Item")

_RULE_KEY = "linkbound_rule"
_ITEM_RULE_KEY = "linkbound_item_rule"
_SHOWN_CHARACTER_COUNT = 80


def shown(value: object) -> str:
    """`value` as an error message shows it: one line of ASCII, cut where it is long."""
    try:
        text = ascii(value)
    except ValueError:
        # Python refuses to print whole numbers of more than some thousand digits.
        return "a whole number of thousands of digits"
    if len(text) <= _SHOWN_CHARACTER_COUNT:
        return text
    return f"{text[:_SHOWN_CHARACTER_COUNT]}... ({len(text)} characters)"


def _as_metadata(check: Check) -> Mapping[str, object]:
    return {_RULE_KEY: check}


def whole(minimum: int, maximum: int) -> Mapping[str, object]:
    """A whole number from `minimum` to `maximum`, both included."""

    def check(value: object) -> str | None:
        # Not a subclass: True is no number, and no other kind of whole number travels in a message.
        if type(value) is int and minimum <= value <= maximum:
            return None
        return f"{shown(value)} is not a whole number from {minimum} to {maximum}"

    return _as_metadata(check)


def quantity(minimum: int, maximum: int, noun: str, words: Callable[[int], str]) -> Mapping[str, object]:
    """A whole number from `minimum` to `maximum` that people know with a unit: as a `noun`, which `words` writes."""
    in_range = _check_of(whole(minimum, maximum))

    def check(value: object) -> str | None:
        problem = in_range(value)
        if problem is None or type(value) is not int:
            return problem
        return f"{words(value)} is not a {noun} from {words(minimum)} to {words(maximum)}"

    return _as_metadata(check)


def real(maximum: float, *, above: float = 0.0) -> Mapping[str, object]:
    """A finite number above `above` and not above `maximum`."""

    def check(value: object) -> str | None:
        if isinstance(value, int | float) and not isinstance(value, bool) and above < value <= maximum:
            return None
        return f"{shown(value)} is not a number above {above:g} and at most {maximum:g}"

    return _as_metadata(check)


def finite(minimum: float, maximum: float) -> Mapping[str, object]:
    """A finite number from `minimum` to `maximum`, both included."""

    def check(value: object) -> str | None:
        if isinstance(value, int | float) and not isinstance(value, bool) and minimum <= value <= maximum:
            return None
        return f"{shown(value)} is not a number from {minimum:g} to {maximum:g}"

    return _as_metadata(check)


def text(maximum_length: int, *, minimum_length: int = 0) -> Mapping[str, object]:
    """Printable text of `minimum_length` to `maximum_length` characters, any script, without control characters."""

    def check(value: object) -> str | None:
        if (
            isinstance(value, str)
            and minimum_length <= len(value) <= maximum_length
            and (value == "" or value.isprintable())
        ):
            return None
        return f"{shown(value)} is not printable text of {minimum_length} to {maximum_length} characters"

    return _as_metadata(check)


def document(maximum_bytes: int) -> Mapping[str, object]:
    """Text of a file, of any characters that UTF-8 has, of at most `maximum_bytes` bytes in it. May be empty."""

    def check(value: object) -> str | None:
        if not isinstance(value, str):
            return f"{shown(value)} is not text"
        try:
            size_bytes = len(value) if value.isascii() else len(value.encode())
        except UnicodeEncodeError:
            return f"{shown(value)} is not text: UTF-8 has no such character"
        return None if size_bytes <= maximum_bytes else f"{size_bytes} bytes are above {maximum_bytes}"

    return _as_metadata(check)


def pattern(expression: str, description: str) -> Mapping[str, object]:
    """Text that matches `expression` as a whole; `description` says in words what is allowed."""
    compiled = re.compile(expression, re.ASCII)

    def check(value: object) -> str | None:
        if isinstance(value, str) and compiled.fullmatch(value):
            return None
        return f"{shown(value)} is not {description}"

    return _as_metadata(check)


def one_of(*allowed: object) -> Mapping[str, object]:
    """One of the values `allowed`."""

    def check(value: object) -> str | None:
        if any(type(value) is type(a) and value == a for a in allowed):
            return None
        return f"{shown(value)} is not one of {', '.join(str(a) for a in allowed)}"

    return _as_metadata(check)


def member(kind: type[Enum], *refused: Enum) -> Mapping[str, object]:
    """A member of the enum `kind` that is not among `refused`."""
    names = ", ".join(m.name for m in kind if m not in refused)

    def check(value: object) -> str | None:
        if isinstance(value, kind) and value not in refused:
            return None
        given = value.name if isinstance(value, Enum) else shown(value)
        return f"{given} is not one of {names}"

    return _as_metadata(check)


def optional(rule: Mapping[str, object]) -> Mapping[str, object]:
    """None, or a value that keeps `rule`."""
    inner = _check_of(rule)

    def check(value: object) -> str | None:
        return None if value is None else inner(value)

    return _as_metadata(check)


def sequence(minimum_count: int, maximum_count: int, item: Mapping[str, object] | None = None) -> Mapping[str, object]:
    """A tuple of `minimum_count` to `maximum_count` items that each keep the rule `item`."""

    def check(value: object) -> str | None:
        if not isinstance(value, tuple):
            return f"{shown(value)} is not a tuple"
        if not minimum_count <= len(value) <= maximum_count:
            items = "1 item is" if len(value) == 1 else f"{len(value)} items are"
            return f"{items} not {minimum_count} to {maximum_count} items"
        return None

    return {_RULE_KEY: check} if item is None else {_RULE_KEY: check, _ITEM_RULE_KEY: _check_of(item)}


def whole_numbers(maximum_count: int, minimum: int, maximum: int) -> Mapping[str, object]:
    """A tuple of at most `maximum_count` whole numbers from `minimum` to `maximum`; the first wrong one is told.

    For columns of very many: they are checked all at once.
    """
    count_in_range = _check_of(sequence(0, maximum_count))
    in_range = _check_of(whole(minimum, maximum))

    def check(value: object) -> str | None:
        problem = count_in_range(value)
        if problem is not None or not isinstance(value, tuple) or not value:
            return problem
        if set(map(type, value)) == {int} and minimum <= min(value) and max(value) <= maximum:
            return None
        return next(f"at {index}: {wrong}" for index, item in enumerate(value) if (wrong := in_range(item)) is not None)

    return _as_metadata(check)


def instance(kind: type | tuple[type, ...]) -> Mapping[str, object]:
    """An instance of `kind`, or of one of several; its own rules are checked too."""
    kinds = kind if isinstance(kind, tuple) else (kind,)
    names = " or ".join(k.__name__ for k in kinds)

    def check(value: object) -> str | None:
        return None if isinstance(value, kinds) else f"{shown(value)} is not a {names}"

    return _as_metadata(check)


def as_tuple(items: Iterable[Item]) -> tuple[Item, ...]:
    """`items` as a tuple. What cannot be one stays as it is, for the rule of its field to refuse."""
    given: Any = items
    return tuple(items) if isinstance(given, Iterable) else given


class Checked:
    """A request, an attrs class: building one raises `InvalidArgumentError` with every violation in it and below it."""

    __slots__ = ()
    __attrs_attrs__: ClassVar[Any]

    def __attrs_post_init__(self) -> None:
        """Check this request and everything nested in it."""
        checked(self)


class CrossChecked:
    """A type with rules between its fields, asked only where each field keeps its own rule."""

    __slots__ = ()

    def missing_violations(self) -> Iterable[Violation]:
        """Fields that lack a value or are given beside their alternative; asked always, whatever the fields hold."""
        return ()

    def cross_violations(self) -> Iterable[Violation]:
        """The broken rules between fields; paths are relative to this type."""
        return ()


def checked(value: T) -> T:
    """`value`, if it keeps its rules and so does everything nested in it; InvalidArgumentError with every violation."""
    found: list[Violation] = []
    _collect(value, "", found)
    if found:
        raise InvalidArgumentError(found)
    return value


def violations_of(value: attrs.AttrsInstance, prefix: str = "") -> Iterator[Violation]:
    """Every broken rule of the attrs instance `value` and of what is nested in it, in the order of the fields."""
    found: list[Violation] = []
    _collect(value, prefix, found)
    return iter(found)


# Every request passes through these, so they are written for speed: a request that keeps its rules builds nothing.


def _collect(value: Any, prefix: str, found: list[Violation]) -> None:
    """Add what is broken within the attrs instance `value` to `found`."""
    is_cross_checked = isinstance(value, CrossChecked)
    if is_cross_checked:
        for violation in value.missing_violations():
            _add(violation, prefix, found)
    known_count = len(found)
    for name, default, check, item_check in _RULES[type(value)]:
        content = getattr(value, name)
        if content is default:
            continue
        problem = None if check is None else check(content)
        if problem is not None:
            found.append(Violation(prefix + name, problem))
        elif _RULES[type(content)]:
            _collect(content, f"{prefix}{name}.", found)
        elif isinstance(content, tuple):
            _collect_items(content, item_check, prefix + name, found)
    if is_cross_checked and len(found) == known_count:
        for violation in value.cross_violations():
            _add(violation, prefix, found)


def _add(violation: Violation, prefix: str, found: list[Violation]) -> None:
    """Add `violation`, whose path starts at what is at `prefix`, to `found`."""
    found.append(attrs.evolve(violation, field=prefix + violation.field))


def _collect_items(items: tuple[Any, ...], check: Check | None, path: str, found: list[Violation]) -> None:
    """Add what is broken within `items` to `found`; each of them keeps the rule `check`."""
    for index, item in enumerate(items):
        problem = None if check is None else check(item)
        if problem is not None:
            found.append(Violation(f"{path}[{index}]", problem))
        elif _RULES[type(item)]:
            _collect(item, f"{path}[{index}].", found)
        elif isinstance(item, tuple):
            _collect_items(item, None, f"{path}[{index}]", found)


_FieldRules = tuple[tuple[str, object, Check | None, Check | None], ...]


class _RulesByClass(dict[type, _FieldRules]):
    """Each field of a class with its default, which keeps its rule, its rule and that of its items.

    They are read once; there are none of a class without fields.
    """

    def __missing__(self, kind: type) -> _FieldRules:
        attributes = attrs.fields(kind) if attrs.has(kind) else ()
        rules = tuple(
            (a.name, a.default, a.metadata.get(_RULE_KEY), a.metadata.get(_ITEM_RULE_KEY)) for a in attributes
        )
        self[kind] = rules
        return rules


_RULES = _RulesByClass()


def _check_of(rule: Mapping[str, object]) -> Check:
    check = rule[_RULE_KEY]
    if not callable(check):
        raise TypeError("not a rule")
    return check
