"""One question over up to four axes: the request, and its answer in columns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum

from attrs import field, frozen

from linkbound.domain.errors import Violation
from linkbound.domain.layout import LARGEST_PARALLEL_SIZE, ParallelLayout
from linkbound.domain.link import LARGEST_RATE_BITS_PER_SECOND, Link
from linkbound.domain.rules import Checked, CrossChecked, instance, member, optional, sequence, shown, whole
from linkbound.domain.workload import (
    LARGEST_PROMPT_TOKENS,
    LARGEST_REQUEST_COUNT,
    LARGEST_TOTAL_PROMPT_TOKENS,
    PrefillWorkload,
)

LARGEST_AXIS_COUNT = 4
LARGEST_LISTED_VALUE_COUNT = 10_000
LARGEST_RANGE_VALUE_COUNT = 10**9
LARGEST_POINT_COUNT = 10**12
LARGEST_POINTS_PER_RESPONSE = 65_536
DEFAULT_POINTS_PER_RESPONSE = 16_384


class SweepVariable(Enum):
    """What an axis varies."""

    UNSPECIFIED = "SWEEP_VARIABLE_UNSPECIFIED"
    PROMPT_TOKENS = "SWEEP_VARIABLE_PROMPT_TOKENS"
    REQUEST_COUNT = "SWEEP_VARIABLE_REQUEST_COUNT"
    TENSOR_PARALLEL_SIZE = "SWEEP_VARIABLE_TENSOR_PARALLEL_SIZE"
    LINK_BITS_PER_SECOND = "SWEEP_VARIABLE_LINK_BITS_PER_SECOND"
    TO_LINK_BITS_PER_SECOND = "SWEEP_VARIABLE_TO_LINK_BITS_PER_SECOND"
    UNKNOWN = "SWEEP_VARIABLE_UNKNOWN"


LARGEST_VALUES: Mapping[SweepVariable, int] = {
    SweepVariable.PROMPT_TOKENS: LARGEST_PROMPT_TOKENS,
    SweepVariable.REQUEST_COUNT: LARGEST_REQUEST_COUNT,
    SweepVariable.TENSOR_PARALLEL_SIZE: LARGEST_PARALLEL_SIZE,
    SweepVariable.LINK_BITS_PER_SECOND: LARGEST_RATE_BITS_PER_SECOND,
    SweepVariable.TO_LINK_BITS_PER_SECOND: LARGEST_RATE_BITS_PER_SECOND,
}
"""The largest value of each variable; the smallest is 1."""


@frozen(kw_only=True)
class SweepRange(CrossChecked):
    """`value_count` values from `first` on, `step` apart. It is never written out."""

    first: int = field(metadata=whole(1, LARGEST_RATE_BITS_PER_SECOND))
    step: int = field(default=0, metadata=whole(-LARGEST_RATE_BITS_PER_SECOND, LARGEST_RATE_BITS_PER_SECOND))
    value_count: int = field(metadata=whole(1, LARGEST_RANGE_VALUE_COUNT))

    @property
    def last(self) -> int:
        """The last value."""
        return self.first + self.step * (self.value_count - 1)

    def cross_violations(self) -> Iterable[Violation]:
        """Several values differ."""
        if self.step == 0 and self.value_count > 1:
            yield Violation("step", f"0 is no difference between {self.value_count} values")


@frozen(kw_only=True)
class SweepAxis(CrossChecked):
    """What one axis varies: over the `values` that are listed, or over a `range` of them."""

    variable: SweepVariable = field(metadata=member(SweepVariable, SweepVariable.UNSPECIFIED, SweepVariable.UNKNOWN))
    values: tuple[int, ...] = field(
        default=(), metadata=sequence(0, LARGEST_LISTED_VALUE_COUNT, whole(-(2**63), 2**63 - 1))
    )
    range: SweepRange | None = field(default=None, metadata=optional(instance(SweepRange)))

    @property
    def value_count(self) -> int:
        """Values in all."""
        return len(self.values) if self.range is None else self.range.value_count

    @property
    def smallest(self) -> int:
        """The smallest value."""
        return min(self.values) if self.range is None else min(self.range.first, self.range.last)

    @property
    def largest(self) -> int:
        """The largest value."""
        return max(self.values) if self.range is None else max(self.range.first, self.range.last)

    def value_at(self, position: int) -> int:
        """The value at `position`, counted from 0."""
        return self.values[position] if self.range is None else self.range.first + self.range.step * position

    def cross_violations(self) -> Iterable[Violation]:
        """There are values, in one form, and each is one that the variable may have."""
        if bool(self.values) == (self.range is not None):
            problem = "are given beside a range" if self.values else "are missing, and so is a range"
            yield Violation("values", problem)
            return
        highest = LARGEST_VALUES[self.variable]
        if self.smallest >= 1 and self.largest <= highest:
            return
        listed = [(f"values[{index}]", value) for index, value in enumerate(self.values)]
        ends = [("range", value) for value in dict.fromkeys((self.smallest, self.largest))]
        for place, value in listed or ends:
            if not 1 <= value <= highest:
                yield Violation(place, f"{value} is not a whole number from 1 to {highest}")


@frozen(kw_only=True)
class SweepRequest(Checked, CrossChecked):
    """What do these prompts cost at every point of the axes, the last of which varies fastest?

    What an axis varies is taken from the axis instead of from `workload`, `link` and `to_link`. Points count from 0;
    the answer begins with `start_index`.
    """

    workload: PrefillWorkload = field(metadata=instance(PrefillWorkload))
    link: Link = field(metadata=instance(Link))
    to_link: Link | None = field(default=None, metadata=optional(instance(Link)))
    axes: tuple[SweepAxis, ...] = field(metadata=sequence(1, LARGEST_AXIS_COUNT, instance(SweepAxis)))
    start_index: int = field(default=0, metadata=whole(0, LARGEST_POINT_COUNT - 1))
    points_per_response: int = field(
        default=DEFAULT_POINTS_PER_RESPONSE, metadata=whole(1, LARGEST_POINTS_PER_RESPONSE)
    )

    @property
    def total_point_count(self) -> int:
        """Points of the whole sweep."""
        return math.prod(axis.value_count for axis in self.axes)

    def axis_of(self, variable: SweepVariable) -> SweepAxis | None:
        """The axis that varies `variable`, if one does."""
        return next((axis for axis in self.axes if axis.variable is variable), None)

    def values_at(self, index: int) -> tuple[int, ...]:
        """The value of each axis at point `index`."""
        values: list[int] = []
        for axis in reversed(self.axes):
            index, position = divmod(index, axis.value_count)
            values.append(axis.value_at(position))
        return tuple(reversed(values))

    def cross_violations(self) -> Iterable[Violation]:
        """Axes differ, vary what is there, and have no more points and tokens than an answer can count."""
        variables = [axis.variable for axis in self.axes]
        for index, variable in enumerate(variables):
            if variable in variables[:index]:
                yield Violation(f"axes[{index}].variable", f"{variable.name} is varied by another axis already")
        if SweepVariable.TO_LINK_BITS_PER_SECOND in variables and self.to_link is None:
            yield Violation("to_link", "is missing, and an axis varies its rate")
        yield from self._layout_violations()
        yield from self._size_violations()

    def _layout_violations(self) -> Iterable[Violation]:
        layout = self.workload.layout
        if layout != ParallelLayout(tensor_parallel_size=layout.tensor_parallel_size):
            yield Violation("workload", "is cut otherwise than over one tensor-parallel group of one rank per node")

    def _size_violations(self) -> Iterable[Violation]:
        total = self.total_point_count
        if total > LARGEST_POINT_COUNT:
            yield Violation("axes", f"{shown(total)} points in all are above {LARGEST_POINT_COUNT}")
        elif self.start_index >= total:
            yield Violation("start_index", f"{self.start_index} is not a whole number from 0 to {total - 1}")
        tokens, requests = self.axis_of(SweepVariable.PROMPT_TOKENS), self.axis_of(SweepVariable.REQUEST_COUNT)
        most_tokens = self.workload.prompt_tokens if tokens is None else tokens.largest
        most_requests = self.workload.request_count if requests is None else requests.largest
        if most_tokens * most_requests > LARGEST_TOTAL_PROMPT_TOKENS:
            yield Violation(
                "axes",
                f"{most_tokens} prompt tokens times {most_requests} requests is above"
                f" {LARGEST_TOTAL_PROMPT_TOKENS} tokens in all",
            )


@frozen(kw_only=True)
class SweepColumns:
    """One stretch of points, from `start_index` on, as columns: arrays of the standard library, 64 bits an entry.

    NumPy reads one without a copy: `numpy.asarray(columns.network_seconds)`. The two ends of the extra TTFT are empty
    where there is no link to change to. `infeasible_indices` are the points whose tensor-parallel size the model cannot
    be cut by; their columns hold what the formulas give all the same. `assumptions` stand in the first stretch.
    """

    start_index: int
    total_point_count: int
    sent_bytes_per_rank: Sequence[int]
    network_seconds: Sequence[float]
    extra_ttft_lower_seconds: Sequence[float]
    extra_ttft_upper_seconds: Sequence[float]
    infeasible_indices: Sequence[int]
    estimator_version: str
    assumptions: tuple[str, ...] = ()

    @property
    def point_count(self) -> int:
        """Points of this stretch."""
        return len(self.sent_bytes_per_rank)

    @property
    def end_index(self) -> int:
        """Index of the point after the last one."""
        return self.start_index + self.point_count
