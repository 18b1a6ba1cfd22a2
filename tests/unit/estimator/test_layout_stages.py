"""Which layers a stage holds, and what its blocks run."""

import attrs
import pytest

from estimator_service.core.layouts.stages import collectives_in_stage, stage_layers
from linkbound.domain.catalog import ModelPart
from tests.unit.estimator.layout_models import all_reduce, decoder, mixture


@pytest.mark.parametrize(
    ("layers", "stages", "expected"),
    [
        # Two of these stand in vLLM's own tests and documentation.
        (61, 2, [31, 30]),
        (61, 4, [15, 15, 16, 15]),
        (20, 4, [5, 5, 5, 5]),
        (78, 8, [9, 10, 10, 10, 10, 10, 10, 9]),
        (7, 4, [2, 2, 2, 1]),
        (3, 1, [3]),
        (2, 3, [1, 1, 0]),
    ],
)
def test_layers_are_spread_as_vllm_does(layers: int, stages: int, expected: list[int]) -> None:
    spread = list(stage_layers(layers, stages))
    assert [stage.end - stage.start for stage in spread] == expected
    assert (spread[0].start, spread[-1].end) == (0, layers)
    assert [stage.is_first for stage in spread] == [index == 0 for index in range(stages)]
    assert [stage.is_last for stage in spread] == [index == stages - 1 for index in range(stages)]


def counts(model_layers: int, dense: int, stages: int) -> dict[ModelPart, list[int]]:
    model = mixture(model_layers, dense)
    return {
        collective.part: [
            collectives_in_stage(collective, model, stage) for stage in stage_layers(model.layer_count, stages)
        ]
        for collective in model.collectives
    }


def test_dense_layers_come_first() -> None:
    assert counts(8, 3, 4) == {
        ModelPart.EMBEDDING: [1, 0, 0, 0],
        ModelPart.ATTENTION: [2, 2, 2, 2],
        ModelPart.DENSE_MLP: [2, 1, 0, 0],
        ModelPart.ROUTED_EXPERTS: [0, 1, 2, 2],
        ModelPart.LM_HEAD: [0, 0, 0, 1],
    }


@pytest.mark.parametrize("stages", range(1, 13))
@pytest.mark.parametrize("count", [1, 3, 5, 7, 14])
def test_what_not_every_layer_has_is_spread_evenly_and_adds_up(stages: int, count: int) -> None:
    model = attrs.evolve(decoder(7), collectives=(all_reduce(ModelPart.LINEAR_MIXER, count),))
    spread = [collectives_in_stage(model.collectives[0], model, stage) for stage in stage_layers(7, stages)]
    assert sum(spread) == count
    of_layers = [count * (stage.end - stage.start) / 7 for stage in stage_layers(7, stages)]
    assert all(abs(whole - even) < 1 for whole, even in zip(spread, of_layers, strict=True))
