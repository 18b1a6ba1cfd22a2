"""What layouts are ranked by, what they may take, and what a comparison says of it."""

from collections.abc import Iterator
from typing import Any

import pytest

from estimator_service.core import assumptions
from estimator_service.core.layouts.choice import READ_ENDS, SCALED_READS
from estimator_service.core.layouts.comparison import layouts_of
from estimator_service.core.layouts.words import in_seconds
from estimator_service.core.pass_reads import compared_reads
from estimator_service.service import default_estimator
from linkbound.domain.cluster_workload import ClusterWorkload
from linkbound.domain.decode import DecodeRequest
from linkbound.domain.layout import ExpertParallelism, layout_name
from linkbound.domain.layout_comparison import LayoutChoice, LayoutComparison, LayoutComparisonRequest, LayoutEstimate
from linkbound.domain.link import Link
from linkbound.domain.workload import DecodeWorkload
from tests.unit.estimator.layout_models import decoder, mixture
from tests.unit.estimator.test_layout_comparison import chosen, compare, the_batched, the_single

ESTIMATOR = default_estimator()


def asked(model: str, bits_per_second: int, **rest: Any) -> LayoutComparisonRequest:
    tokens = {name: rest.pop(name) for name in ("output_tokens", "draft_token_count") if name in rest}
    workload = ClusterWorkload(model=model, node_count=8, hardware="dgx-spark", **{"prompt_tokens": 8192, **rest})
    return LayoutComparisonRequest(workload=workload, link=Link(line_rate_bits_per_second=bits_per_second), **tokens)


def lines_of(choice: LayoutChoice) -> dict[str, str]:
    return {line.partition(": ")[0]: line for line in reversed(choice.reasons)}


def decode_workload(request: LayoutComparisonRequest, one: LayoutEstimate, request_count: int) -> DecodeWorkload:
    return DecodeWorkload(
        model=request.workload.model,
        hardware=request.workload.hardware,
        request_count=request_count,
        draft_token_count=request.draft_token_count,
        context_tokens=request.workload.prompt_tokens,
        tensor_parallel_size=one.layout.tensor_parallel_size,
        pipeline_parallel_size=one.layout.pipeline_parallel_size,
        data_parallel_size=one.layout.data_parallel_size,
        expert_parallelism=one.layout.expert_parallelism,
        ranks_per_node=one.layout.ranks_per_node,
    )


def floor_pairs(request: LayoutComparisonRequest) -> Iterator[tuple[float, float]]:
    """The floors of a comparison, and those of a single estimate of the same pass."""
    for one in ESTIMATOR.compare_layouts(request).layouts:
        together = -(-request.workload.request_count // one.passes_in_flight)
        for seconds, count in ((one.pass_seconds, together), (one.single_pass_seconds, 1)):
            alone = ESTIMATOR.estimate_decode(
                DecodeRequest(workload=decode_workload(request, one, count), link=request.link)
            )
            yield seconds.lower, alone.pass_seconds.lower


@pytest.mark.parametrize("model", ["glm-5.3", "glm-5.2-nvfp4", "mixtral-8x7b", "llama-3.1-70b"])
@pytest.mark.parametrize("request_count", [1, 16])
def test_floors_are_those_of_single_estimates(model: str, request_count: int) -> None:
    for compared, single in floor_pairs(asked(model, 200 * 10**9, request_count=request_count)):
        assert compared == single


def test_a_stated_mean_changes_no_order() -> None:
    """Two models of the same parts; a source states a lower mean for one of them."""
    stated, stored = ESTIMATOR.get_model("glm-5.3"), ESTIMATOR.get_model("glm-5.2-nvfp4")
    ratios = []
    for layout in layouts_of(8, 1, stated):
        one_row = DecodeWorkload(
            model="glm-5.3",
            tensor_parallel_size=layout.tensor_parallel_size,
            pipeline_parallel_size=layout.pipeline_parallel_size,
            data_parallel_size=layout.data_parallel_size,
            expert_parallelism=layout.expert_parallelism,
            request_count=1,
        )
        ours, theirs = compared_reads(one_row, stated), compared_reads(one_row, stored)
        ratios += [ours.least_bytes / theirs.least_bytes, ours.most_bytes / theirs.most_bytes]
    assert ratios == pytest.approx([ratios[0]] * len(ratios), rel=1e-3)
    assert ratios[0] < 0.5


def test_figures_with_a_stated_mean_say_what_they_are() -> None:
    request = asked("glm-5.3", 200 * 10**9)
    answer = ESTIMATOR.compare_layouts(request)
    assert assumptions.RANKED_WEIGHTS in answer.assumptions
    assert SCALED_READS in the_single(answer).reasons[0]
    other = ESTIMATOR.compare_layouts(asked("mixtral-8x7b", 200 * 10**9))
    assert assumptions.RANKED_WEIGHTS not in other.assumptions
    assert SCALED_READS not in " ".join((*the_single(other).reasons, *the_batched(other).reasons))


def test_experts_of_a_batch_may_be_read_many_times_those_of_a_row() -> None:
    """TP8 reads 3.19 to 11.65 GB for 16 rows of a mixture of 8 experts, so others may be ahead of it."""
    answer = ESTIMATOR.compare_layouts(asked("mixtral-8x7b", 200 * 10**9, request_count=16, output_tokens=2000))
    batched = the_batched(answer)
    first = {layout_name(one.layout): index for index, one in enumerate(answer.layouts)}
    maybe = {batched.index, *batched.undecided_indices}
    assert {first["TP8"], first["TP4 x PP2"]} <= maybe
    # 11.65 GB at 273 GB/s in each of 2,000 passes: more than 85 s at the most.
    assert 85 < _most_seconds(lines_of(batched)["TP8"]) < 120
    assert READ_ENDS in batched.reasons[0]


def _most_seconds(line: str) -> float:
    number, unit = line.partition(" in all")[0].rpartition(" to ")[2].split()
    assert unit == "s"
    return float(number)


def test_where_every_row_reads_the_same_nothing_is_said_of_it() -> None:
    answer = compare(decoder(8), request_count=4)
    assert READ_ENDS not in " ".join((*the_single(answer).reasons, *the_batched(answer).reasons))


def test_an_all_to_all_is_ranked_with_every_expert_on_a_rank_of_its_own() -> None:
    """At best, with all experts of a token on one rank, it would be ahead of the all-gather; it is not counted so."""
    answer = compare(mixture(), hardware=None, request_count=8, output_tokens=128)
    batched = the_batched(answer)
    spread = next(one for one in answer.layouts if one.layout.expert_parallelism is ExpertParallelism.ALL_TO_ALL)
    assert spread.network_seconds.upper is not None
    assert spread.pass_seconds.lower < spread.network_seconds.lower < spread.network_seconds.upper
    ahead = answer.layouts[batched.index]
    assert ahead is not spread
    # Its least, which no batch reaches, is below the least of the chosen one.
    assert _least_in_all(spread, 128) < _least_in_all(ahead, 128)
    assert answer.layouts.index(spread) in batched.undecided_indices
    line = lines_of(batched)["DP4, experts by all-to-all"]
    assert in_seconds(spread.network_seconds.upper) in line
    assert (
        "DP4, experts by all-to-all: at the least all experts of a token share a rank, which no batch of tokens does;"
        " at the most each is on a rank of its own, and so it is ranked." in batched.reasons
    )
    assert not any("on a rank of its own" in one for one in the_batched(compare(decoder(8))).reasons)


def _least_in_all(one: LayoutEstimate, passes: int) -> float:
    return one.network_seconds.lower + passes * one.pass_seconds.lower


@pytest.mark.parametrize("model", ["deepseek-v3", "qwen3-235b-a22b", "mixtral-8x7b", "glm-4.5-air"])
def test_no_headline_rests_on_what_no_batch_does(model: str) -> None:
    request = asked(model, 100 * 10**9, request_count=16)
    answer = ESTIMATOR.compare_layouts(request)
    for choice in (answer.batched, answer.single_stream):
        if choice is None:
            continue
        best = answer.layouts[choice.index]
        assert best.layout.expert_parallelism is not ExpertParallelism.ALL_TO_ALL, chosen(answer, choice)


def test_one_order_has_every_layout_once() -> None:
    answer: LayoutComparison = compare(mixture(), request_count=8, output_tokens=128)
    named = [line.partition(": ")[0] for line in the_batched(answer).reasons if " in all" in line]
    assert sorted(named) == sorted(layout_name(one.layout) for one in answer.layouts)
