"""Names of modules as quantisers write them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator_service.architecture.module_patterns import module_list
from estimator_service.architecture.name_patterns import compile_expression, compile_glob


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


def test_wildcards_after_the_number_of_a_layer() -> None:
    names = module_list(["model.layers.3.mlp.experts.*.up_proj", "model.layers.4.*attn*", "model.layers.5.*.experts"])
    assert names.holds(3, ["mlp.experts.0.up_proj"])
    assert not names.holds(3, ["mlp.experts.0.down_proj"])
    assert not names.holds(4, ["mlp.experts.0.up_proj"])
    assert names.holds(4, ["self_attn.q_proj"])
    assert names.holds(5, ["mlp.experts.0.up_proj"])
    assert names.not_understood == ()


def test_expressions_know_the_numbers_of_layers() -> None:
    names = module_list(["re:.*layers\\.(1|12)\\.mlp.*", "re:model\\.layers\\.\\d+\\.self_attn\\.q_proj$"])
    assert [layer for layer in range(30) if names.holds(layer, ["mlp.up_proj"])] == [1, 12]
    assert [layer for layer in range(30) if names.holds(layer, ["self_attn.q_proj"])] == list(range(30))
    assert not names.holds(3, ["self_attn.k_proj"])


@pytest.mark.parametrize("prefix", ["model", "model.language_model", "language_model.model", "backbone"])
def test_what_stands_before_the_layers(prefix: str) -> None:
    escaped = prefix.replace(".", "\\.")
    assert module_list([f"re:^{escaped}\\.layers\\.\\d+\\.mlp"]).holds(7, ["mlp.up_proj"])
    assert module_list([f"{prefix}.layers.*.mlp"]).holds(7, ["mlp.up_proj"])


PIECES = ["a", "b", "1", ".", ".*", "\\.", "\\d+", "[0-9]+", "(a|b1)", "(a|)", "(?:ab|b)", "^", "$"]


def as_written_for_re(pieces: list[str]) -> list[str]:
    """Anchors where they say nothing would end a match for `re`: here they are taken as they are meant, at the ends."""
    inner = [piece for piece in pieces if piece not in "^$"]
    return ["^", *inner, *(["$"] if "$" in pieces else [])]


@given(st.lists(st.sampled_from(PIECES), max_size=8), st.text("ab1.", max_size=10))
def test_expressions_match_what_those_of_python_match(pieces: list[str], name: str) -> None:
    compiled = compile_expression("".join(as_written_for_re(pieces)))
    assert compiled is not None
    assert compiled.matches(name) is (re.match("".join(as_written_for_re(pieces)), name) is not None)


@given(st.text("ab*.", max_size=8), st.text("ab.", max_size=10))
def test_wildcards_match_what_expressions_match(pattern: str, name: str) -> None:
    expected = re.fullmatch(re.escape(pattern).replace("\\*", ".*"), name) is not None
    assert compile_glob(pattern).matches(name) is expected


def test_layers_whose_numbers_a_pattern_does_not_tell_apart_lead_to_the_same_states() -> None:
    """What is decided for one of them is decided for all, however many layers and patterns there are."""
    pattern = compile_expression(".*layers" + ".*a" * 70)
    assert pattern is not None
    assert len({pattern.after(pattern.start, f"model.layers.{layer}.") for layer in range(1024)}) == 1
