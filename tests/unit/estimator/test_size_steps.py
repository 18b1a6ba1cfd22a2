"""Numbered sizes between which the lower end of a calibrated time is straight."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator_service.core.collective_time.steps import SizeSteps, size_steps

KNOTS = st.lists(st.integers(1, 10**12), min_size=2, max_size=12, unique=True).map(sorted)
ALMOST_NINTH = 2 ** (1 / 8)


def numbers(steps: SizeSteps) -> range:
    return range(-40, steps.numbers_of_knots[-1] + 40)


def test_an_octave_has_eight_steps_in_equal_ratios() -> None:
    steps = size_steps([1024, 2048, 3000])
    assert steps.numbers_of_knots == (0, 8, 13)
    assert [steps.size(number) for number in (-8, 0, 4, 8, 13, 21)] == pytest.approx(
        [512, 1024, 1024 * math.sqrt(2), 2048, 3000, 6000], rel=1e-14
    )


@given(KNOTS)
def test_sizes_rise_by_at_most_an_eighth_of_an_octave_and_meet_each_knot(knots: list[int]) -> None:
    steps = size_steps(knots)
    sizes = [steps.size(number) for number in numbers(steps)]
    for before, after in pairwise(sizes):
        assert before < after <= before * ALMOST_NINTH * (1 + 1e-12)
    assert [steps.size(number) for number in steps.numbers_of_knots] == knots


@given(KNOTS, st.data())
def test_each_size_lies_from_its_step_on_and_before_the_next(knots: list[int], data: st.DataObject) -> None:
    steps = size_steps(knots)
    at_a_step = st.sampled_from(numbers(steps)).map(steps.size)
    size = data.draw(at_a_step | at_a_step.map(lambda it: math.nextafter(it, 0)) | st.floats(1e-3, 1e15))
    number = steps.number_below(size)
    assert steps.size(number) <= size < steps.size(number + 1)
