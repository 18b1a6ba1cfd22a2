"""How a workload names its model, and how it cuts it over ranks."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from linkbound.domain.layout import LARGEST_INSTANCE_RANK_COUNT, ExpertParallelism
from tests.strategies.values import IDS, Fill, Strategy, members, texts


def models_given(fill: Fill) -> Strategy:
    """The name of a model, or its config."""
    return st.fixed_dictionaries({"model": IDS}) | st.fixed_dictionaries({"model_config_json": texts(fill, 64, 1)})


@st.composite
def cuts(draw: st.DrawFn, fill: Fill) -> dict[str, Any]:
    """The fields of a layout, as a workload has them: ranks within bounds, whole nodes filled."""
    size, stages, groups = draw(st.integers(1, 4096)), draw(st.integers(1, 16)), draw(st.integers(1, 16))
    if size * stages * groups > LARGEST_INSTANCE_RANK_COUNT:
        stages = groups = 1
    in_node = draw(st.integers(1, 64))
    return {
        "tensor_parallel_size": size,
        "pipeline_parallel_size": stages,
        "data_parallel_size": groups,
        "expert_parallelism": draw(members(fill, ExpertParallelism)),
        "sequence_parallel": draw(st.just(True) if fill is Fill.FULL else st.booleans()),
        "ranks_per_node": in_node if size * stages * groups % in_node == 0 else 1,
    }
