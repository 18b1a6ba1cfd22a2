"""Architectures as they were released: parameters within 2 % of what their makers state."""

import pytest

from tests.unit.architecture.configs import RELEASED, model

TOLERATED_FRACTION = 0.02


@pytest.mark.parametrize("name", RELEASED)
def test_totals_are_those_of_the_release(name: str) -> None:
    counted = model(RELEASED[name]["config"])
    assert counted.total_parameters is not None
    assert counted.undetermined == ()
    assert counted.total_parameters / 1e9 == pytest.approx(RELEASED[name]["billions"], rel=TOLERATED_FRACTION)


@pytest.mark.parametrize("name", RELEASED)
def test_every_layer_ends_in_sums_over_the_ranks(name: str) -> None:
    """From one sum (state spaces alone, parallel blocks that are added) to five (doubled blocks) in a layer."""
    counted = model(RELEASED[name]["config"])
    in_layers = counted.all_reduce_count - 1
    assert counted.layer_count <= in_layers <= 5 * counted.layer_count
