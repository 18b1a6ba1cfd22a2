"""What is kept of a model and a layout: nothing of it differs from what is computed anew."""

from estimator_service.core.assumptions import of_layout
from estimator_service.core.layouts.cut import model_cut
from estimator_service.core.layouts.feasibility import layout_violations
from estimator_service.core.layouts.load import all_reduce_count
from estimator_service.core.layouts.rows import stage_kinds
from linkbound.domain.errors import Violation
from linkbound.domain.layout import ExpertParallelism
from linkbound.domain.workload import DecodeWorkload, PrefillWorkload
from tests.unit.estimator.layout_models import cut, decoder, mixture


def test_it_is_what_its_parts_are() -> None:
    model, layout = decoder(8), cut(4, 2)
    found = model_cut(model, layout)
    assert found.kinds == stage_kinds(model, layout)
    assert found.all_reduce_count == all_reduce_count(stage_kinds(model, layout)) == 17
    assert found.assumptions == of_layout(layout)
    assert found.violations_at("workload.") == ()


def test_models_and_layouts_are_told_apart() -> None:
    for model in (decoder(7), decoder(8), mixture()):
        for layout in (cut(1), cut(2), cut(2, 2)):
            assert model_cut(model, layout).kinds == stage_kinds(model, layout)


def test_violations_take_the_path_of_the_question() -> None:
    model = decoder(2)
    layout = cut(3, 4, expert_parallelism=ExpertParallelism.ALL_REDUCE)
    found = model_cut(model, layout)
    assert [violation.field for violation in found.violations_at("prefill.")] == [
        "prefill.tensor_parallel_size",
        "prefill.pipeline_parallel_size",
        "prefill.expert_parallelism",
    ]
    assert found.violations_at("prefill.") == tuple(layout_violations(model, layout, "prefill."))
    assert all(isinstance(violation, Violation) for violation in found.violations)


def test_workloads_that_are_cut_alike_have_one_layout() -> None:
    prefill = PrefillWorkload(model="a", tensor_parallel_size=8, prompt_tokens=1, ranks_per_node=8)
    decode = DecodeWorkload(model="b", tensor_parallel_size=8, ranks_per_node=8)
    assert prefill.layout is decode.layout
    assert prefill.layout == cut(8, ranks_per_node=8)
    assert PrefillWorkload(model="a", tensor_parallel_size=8, prompt_tokens=1, sequence_parallel=True).layout == cut(
        8, sequence_parallel=True
    )
