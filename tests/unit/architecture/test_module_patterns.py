"""Names of modules as quantisers write them."""

import pytest

from estimator_service.architecture.module_patterns import compile_expression, compile_glob, module_list


@pytest.mark.parametrize(
    ("pattern", "name", "matches"),
    [
        ("*", "anything", True),
        ("a*c", "abc", True),
        ("a*c", "ab", False),
        ("*.mlp.*", "model.layers.3.mlp.gate", True),
        ("*.mlp.*", "model.layers.3.mlp", False),
        ("a**b", "ab", True),
    ],
)
def test_wildcards(pattern: str, name: str, *, matches: bool) -> None:
    assert compile_glob(pattern).matches(name) is matches


@pytest.mark.parametrize(
    ("expression", "name", "matches"),
    [
        (".*self_attn.*", "model.layers.3.self_attn.q_proj", True),
        ("self_attn.*", "model.layers.3.self_attn.q_proj", False),
        ("model\\.layers\\.\\d+\\.mlp$", "model.layers.12.mlp", True),
        ("model\\.layers\\.\\d+\\.mlp$", "model.layers.12.mlp.gate", False),
        ("model\\.layers\\.[0-9]+\\.mlp", "model.layers.12.mlp.gate", True),
        (".*mlp\\.(gate|up|gate_up|down)_proj.*", "model.layers.0.mlp.gate_up_proj", True),
        (".*mlp\\.(gate|up|gate_up|down)_proj.*", "model.layers.0.mlp.experts.0.up_proj", False),
        ("^lm_head$", "lm_head", True),
        ("a.c", "abc", True),
        (".*" * 40 + "x", "a" * 200, False),
    ],
)
def test_expressions(expression: str, name: str, *, matches: bool) -> None:
    pattern = compile_expression(expression)
    assert pattern is not None
    assert pattern.matches(name) is matches


@pytest.mark.parametrize("expression", ["(a*)*", "a+", "(?=x)", "[a-z]", "a{2}", "\\w"[:1] + "(" * 3])
def test_what_is_more_than_that_is_not_understood(expression: str) -> None:
    assert compile_expression(expression) is None


def test_a_list_knows_its_layers() -> None:
    names = module_list(["model.layers.3.mlp", "language_model.model.layers.4.*", "layers.5.self_attn*", "lm_head", 7])
    assert names.holds(3, ["mlp.gate_proj"])
    assert not names.holds(3, ["self_attn.q_proj"])
    assert names.holds(4, ["anything"])
    assert names.holds(5, ["self_attn.q_proj"])
    assert not names.holds(6, ["mlp.gate_proj"])
    assert names.holds(None, ["lm_head"])


def test_a_layer_is_not_taken_for_one_whose_number_starts_alike() -> None:
    assert not module_list(["model.layers.1.mlp"]).holds(10, ["mlp.gate_proj"])


def test_only_so_many_patterns_are_understood() -> None:
    names = module_list([f"*name_{i}*" for i in range(1000)])
    assert names.not_understood
