"""Values of one axis as people write them: `8`, `2,4,8`, or `1k..64k+1k` for evenly spaced ones."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from linkbound.cli.params import Parse, RefusedError, list_of, parse_rate, parse_whole, value
from linkbound.domain.quantities import parse_tokens
from linkbound.domain.rules import shown
from linkbound.domain.sweep import SweepAxis, SweepRange, SweepVariable

_RANGE = ".."
_STEP = "+"


@frozen
class AxisValues:
    """What was typed for one axis: values one by one, or a range of them."""

    values: tuple[int, ...]
    range: SweepRange | None = None

    @property
    def first(self) -> int:
        """The first value."""
        return self.values[0] if self.range is None else self.range.first

    @property
    def is_single(self) -> bool:
        """Whether there is nothing to vary."""
        return self.range is None and len(self.values) == 1

    def axis(self, variable: SweepVariable) -> SweepAxis:
        """The axis that varies `variable` over these values."""
        return SweepAxis(variable=variable, values=self.values, range=self.range)


def axis_values(name: str, parse: Callable[[str], int]) -> Parse[AxisValues]:
    """Reads the values of an axis, each with `parse`; `name` is shown in help."""

    def read(typed: object) -> AxisValues:
        if isinstance(typed, AxisValues):
            return typed
        text = str(typed)
        return _range(text, parse) if _RANGE in text else AxisValues(list_of(parse)(text))

    return value(name, read)


def _range(text: str, parse: Callable[[str], int]) -> AxisValues:
    ends, has_step, step_text = text.partition(_STEP)
    first_text, _, last_text = ends.partition(_RANGE)
    if not has_step:
        raise RefusedError(f"{shown(text)} has no step; evenly spaced values are FIRST..LAST+STEP")
    first, last, step = parse(first_text), parse(last_text), parse(step_text)
    if step < 1 or last < first:
        raise RefusedError(f"{shown(text)} does not rise in steps of at least 1 from its first value to its last")
    return AxisValues((), SweepRange(first=first, step=step, value_count=(last - first) // step + 1))


SIZES = axis_values("number,...", parse_whole)
TOKENS = axis_values("tokens,...", parse_tokens)
RATES = axis_values("rate,...", parse_rate)
