"""Fields of a config: typed reading by name, with a record of which keys were used, assumed or broken."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attrs import field, mutable

from linkbound.domain.errors import Violation
from linkbound.domain.rules import shown

LARGEST_WIDTH = 10**6
_LONGEST_LIST = 4096
_LONGEST_SHOWN_KEY = 200


@mutable
class Ledger:
    """What was found out while reading: keys that were used, and closed with all that is in them, and what to say."""

    used: set[str] = field(factory=set)
    closed: set[str] = field(factory=set)
    violations: dict[str, Violation] = field(factory=dict)
    assumed_defaults: dict[str, str] = field(factory=dict)
    assumptions: dict[str, None] = field(factory=dict)
    undetermined: dict[str, None] = field(factory=dict)

    def assume(self, sentence: str) -> None:
        """Keep an assumption, each once."""
        self.assumptions[sentence] = None

    def leave_open(self, sentence: str) -> None:
        """Keep what could not be determined, each once."""
        self.undetermined[sentence] = None


class Fields:
    """One object of a config. Readers take several names of one thing and return the first that has a value, else None.

    A value of the wrong kind or out of range is a violation of its path and reads as None. `defaults` answer for keys
    that the config leaves out, each noted as assumed. A null is a key without a value.
    """

    def __init__(
        self,
        values: Mapping[str, Any],
        ledger: Ledger,
        *,
        field: str,
        path: str = "",
        defaults: Mapping[str, Any] | None = None,
    ) -> None:
        self._values = values
        self.ledger = ledger
        self.field = field
        self._path = path
        self._defaults = defaults or {}

    @property
    def values(self) -> Mapping[str, Any]:
        """The values as they are."""
        return self._values

    def with_defaults(self, defaults: Mapping[str, Any]) -> Fields:
        """The same fields, with `defaults` for keys that are left out."""
        return Fields(self._values, self.ledger, field=self.field, path=self._path, defaults=defaults)

    def path_of(self, name: str) -> str:
        """The path of a key within the config."""
        return f"{self._path}{name}"

    def has(self, *names: str) -> bool:
        """Whether one of the keys has a value, given or by default."""
        return any(self._values.get(name) is not None or self._defaults.get(name) is not None for name in names)

    def states(self, *names: str) -> bool:
        """Whether the config itself gives one of the keys a value."""
        return any(self._values.get(name) is not None for name in names)

    def stated_name(self, *names: str) -> str:
        """The first of the keys that the config itself gives a value, else the first."""
        return next((name for name in names if self.states(name)), names[0])

    def use(self, *names: str) -> None:
        """Count keys as understood."""
        self.ledger.used.update(self.path_of(name) for name in names if name in self._values)

    def close(self, *names: str) -> None:
        """Count keys as understood with everything in them."""
        self.ledger.closed.update(self.path_of(name) for name in names if name in self._values)

    def whole(self, *names: str, minimum: int = 1, maximum: int = LARGEST_WIDTH) -> int | None:
        """A whole number from `minimum` to `maximum`."""
        name, value = self._find(names)
        if value is None or not name:
            return None
        whole = _as_whole(value)
        if whole is None or not minimum <= whole <= maximum:
            self.refuse(name, f"{shown(value)} is not a whole number from {minimum} to {maximum}")
            return None
        return whole

    def number(self, *names: str, maximum: float = 1e6) -> float | None:
        """A finite number above 0."""
        name, value = self._find(names)
        if value is None or not name:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= maximum:
            self.refuse(name, f"{shown(value)} is not a number above 0 and at most {maximum:g}")
            return None
        return float(value)

    def flag(self, *names: str) -> bool | None:
        """True or false."""
        name, value = self._find(names)
        if value is None or not name:
            return None
        if not isinstance(value, bool):
            self.refuse(name, f"{shown(value)} is not true or false")
            return None
        return value

    def text(self, *names: str) -> str | None:
        """Text."""
        name, value = self._find(names)
        if value is None or not name:
            return None
        if not isinstance(value, str):
            self.refuse(name, f"{shown(value)} is not text")
            return None
        return value

    def items(self, *names: str, length: int | None = None) -> Sequence[Any] | None:
        """An array, of `length` entries where that is given."""
        name, value = self._find(names)
        if value is None or not name:
            return None
        if not isinstance(value, list | tuple) or len(value) > _LONGEST_LIST:
            self.refuse(name, f"{shown(value)} is not an array of at most {_LONGEST_LIST} entries")
            return None
        if length is not None and len(value) < length:
            self.refuse(name, f"{len(value)} entries are fewer than the {length} layers")
            return None
        return value if length is None else value[:length]

    def wholes(self, *names: str, length: int | None = None, minimum: int = 0) -> tuple[int, ...] | None:
        """An array of whole numbers."""
        entries = self.items(*names, length=length)
        if entries is None:
            return None
        numbers = tuple(_as_whole(entry) for entry in entries)
        if any(number is None or not minimum <= number <= LARGEST_WIDTH for number in numbers):
            name, value = self._find(names)
            self.refuse(name, f"{shown(value)} is not an array of whole numbers from {minimum} to {LARGEST_WIDTH}")
            return None
        return tuple(number for number in numbers if number is not None)

    def per_layer(self, *names: str, length: int, maximum: int = LARGEST_WIDTH) -> tuple[int, ...] | None:
        """A whole number above 0 for each of `length` layers: one for all, or an array of them."""
        name, value = self._find(names)
        if value is None or not name:
            return None
        if isinstance(value, list | tuple):
            numbers = self.wholes(name, length=length, minimum=1)
            if numbers is not None and max(numbers, default=0) > maximum:
                self.refuse(name, f"{max(numbers)} is not a whole number from 1 to {maximum}")
                return None
            return numbers
        whole = self.whole(name, maximum=maximum)
        return None if whole is None else (whole,) * length

    def is_array(self, *names: str) -> bool:
        """Whether the first of the keys that the config gives a value holds an array."""
        return isinstance(self._values.get(self.stated_name(*names)), list)

    def section(self, *names: str, defaults: Mapping[str, Any] | None = None) -> Fields | None:
        """An object within this one."""
        for name in names:
            value = self._values.get(name)
            if isinstance(value, Mapping) and value:
                self.use(name)
                return Fields(value, self.ledger, field=self.field, path=self.path_of(f"{name}."), defaults=defaults)
        return None

    def refuse(self, name: str, description: str) -> None:
        """Note what is wrong with the value of a key."""
        path = f"{self.field}.{shown_key(self.path_of(name))}"
        self.ledger.violations.setdefault(path, Violation(path, description))

    def note_conflicts(self, *names: str) -> None:
        """Note keys that name one thing and disagree about it: the first of `names` that has a value is taken."""
        stated = [name for name in names if self._values.get(name) is not None]
        for name in stated[1:]:
            taken, other = self._values[stated[0]], self._values[name]
            if other != taken:
                told = f"{self.path_of(name)} {shown(other)} differs from {self.path_of(stated[0])} {shown(taken)}"
                self.ledger.assume(f"{told}, which is taken.")

    def _find(self, names: Iterable[str]) -> tuple[str, Any]:
        """The first name with a value, and the value. Every name that is there counts as understood."""
        found: tuple[str, Any] = ("", None)
        for name in names:
            if name in self._values:
                self.ledger.used.add(self.path_of(name))
                if not found[0] and self._values[name] is not None:
                    found = name, self._values[name]
        if found[0]:
            return found
        for name in names:
            value = self._defaults.get(name)
            if value is not None:
                self.ledger.assumed_defaults[self.path_of(name)] = _in_words(value)
                return name, value
        return found


def shown_key(path: str) -> str:
    """A key as a message shows it: printable and not long."""
    return path if path.isprintable() and len(path) <= _LONGEST_SHOWN_KEY else shown(path)


def _as_whole(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        return int(value)
    return None


def _in_words(value: object) -> str:
    words = {True: "true", False: "false"}
    return words[value] if isinstance(value, bool) else shown(value).strip("'")
