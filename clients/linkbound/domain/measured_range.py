"""The range of a figure over the rounds that it was measured in."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import field, frozen

from linkbound.domain.errors import Violation
from linkbound.domain.rules import CrossChecked
from linkbound.domain.workload import POSITIVE_SECONDS


@frozen(kw_only=True)
class MeasuredRange(CrossChecked):
    """The least and the largest of the rounds that a figure stands for, in its unit."""

    least: float = field(metadata=POSITIVE_SECONDS)
    largest: float = field(metadata=POSITIVE_SECONDS)

    def cross_violations(self) -> Iterable[Violation]:
        """The ends are in order."""
        if self.least > self.largest:
            yield Violation("least", f"{self.least} is above the largest, {self.largest}")


def range_violations(name: str, found: MeasuredRange | None, measured: float | None) -> Iterable[Violation]:
    """Why the range called `name` is not that of what was measured."""
    if found is None:
        return
    if measured is None:
        yield Violation(name, "is given without what it is the range of")
    elif not found.least <= measured <= found.largest:
        yield Violation(name, f"{found.least} to {found.largest} does not hold {measured}")
