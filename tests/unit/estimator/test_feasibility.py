"""Over how many ranks a model can be cut, and the sentence that says why not."""

import pytest

from estimator_service.core.feasibility import infeasible_reasons, size_violations
from tests.unit.estimator.models import small_model


@pytest.mark.parametrize("rank_count", [1, 2, 4, 8])
def test_divisors_of_heads_and_vocabulary_are_feasible(rank_count: int) -> None:
    assert infeasible_reasons(small_model(heads=8, kv_heads=4), rank_count) == ()


def test_heads_have_to_be_divisible() -> None:
    assert infeasible_reasons(small_model(heads=8, kv_heads=16), 16) == ("16 ranks do not divide 8 attention heads",)


@pytest.mark.parametrize("rank_count", [8, 16])
def test_key_value_heads_are_copied_to_a_multiple_of_ranks(rank_count: int) -> None:
    assert infeasible_reasons(small_model(heads=16, kv_heads=8), rank_count) == ()


def test_key_value_heads_that_neither_divide_nor_copy() -> None:
    (reason,) = infeasible_reasons(small_model(heads=24, kv_heads=6), 4)
    assert reason == "4 ranks neither divide 6 key-value heads nor are a multiple of them"


def test_the_padded_vocabulary_has_to_be_divisible() -> None:
    assert infeasible_reasons(small_model(heads=6, kv_heads=6, vocabulary=1000), 3) == (
        "3 ranks do not divide 1024, the vocabulary of 1000 padded to a multiple of 64",
    )
    assert infeasible_reasons(small_model(heads=6, kv_heads=6, vocabulary=150), 3) == ()


def test_a_violation_names_the_size_and_every_reason() -> None:
    (violation,) = size_violations(small_model(heads=8, kv_heads=4), 3, "workload.tensor_parallel_size")
    assert violation.field == "workload.tensor_parallel_size"
    assert "small cannot be cut over 3 ranks" in violation.description
    for number in ("8 attention heads", "4 key-value heads", "1024"):
        assert number in violation.description
    assert list(size_violations(small_model(), 2, "workload.tensor_parallel_size")) == []
