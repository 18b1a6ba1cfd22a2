"""Layouts on the same nodes, what is chosen among them, and what is recommended."""

from typing import Any

import attrs
import pytest

from estimator_service.core import assumptions
from estimator_service.core.layouts.comparison import compare_layouts, layouts_of
from estimator_service.core.layouts.recommendation import recommend_layout
from estimator_service.core.layouts.words import in_seconds
from estimator_service.core.memory import MEMORY_NOT_KNOWN
from estimator_service.service import default_estimator
from linkbound.domain.calibration import Calibration, CollectivePoint, CollectiveTable
from linkbound.domain.catalog import CacheGroup, Hardware, Model, ModelPart, ParameterGroup, WeightSplit
from linkbound.domain.cluster_workload import ClusterWorkload
from linkbound.domain.collective import CollectiveKind
from linkbound.domain.errors import InvalidArgumentError
from linkbound.domain.layout import ExpertParallelism, layout_name
from linkbound.domain.layout_comparison import LayoutChoice, LayoutComparison, LayoutComparisonRequest, LayoutEstimate
from linkbound.domain.layout_recommendation import LayoutOption, LayoutRecommendation, LayoutRecommendationRequest
from linkbound.domain.link import Link
from tests.unit.estimator.layout_models import ROW, decoder, mixture

BOARD = Hardware(hardware_id="board", display_name="Board", memory_bytes=10**9, memory_bandwidth_bytes_per_second=10**6)


def link(bits_per_second: int = 8 * 10**9) -> Link:
    return Link(line_rate_bits_per_second=bits_per_second)


def workload(**rest: Any) -> ClusterWorkload:
    return ClusterWorkload(**{"model": "decoder", "node_count": 4, "prompt_tokens": 1000, **rest})


def compare(
    model: Model,
    hardware: Hardware | None = BOARD,
    calibration: Calibration | None = None,
    rate: int = 8 * 10**9,
    **rest: Any,
) -> LayoutComparison:
    asked = {name: rest.pop(name) for name in ("draft_token_count", "output_tokens") if name in rest}
    request = LayoutComparisonRequest(workload=workload(**rest), link=link(rate), inner_link=link(), **asked)
    return compare_layouts(request, model, hardware, calibration)


def names(model: Model, node_count: int, ranks_per_node: int = 1) -> list[str]:
    return [layout_name(layout) for layout in layouts_of(node_count, ranks_per_node, model)]


def test_layouts_of_a_dense_model() -> None:
    assert names(decoder(8), 8) == ["TP8", "TP4 x PP2", "TP2 x PP4", "PP8"]
    assert names(decoder(8), 6) == ["TP6", "TP3 x PP2", "TP2 x PP3", "PP6"]
    assert names(decoder(8), 1) == ["TP1"]


def test_no_more_stages_than_layers_and_no_group_that_straddles_nodes() -> None:
    assert names(decoder(3), 8) == ["TP8", "TP4 x PP2"]
    assert names(decoder(12), 3, 4) == ["TP12", "TP4 x PP3", "TP2 x PP6", "PP12"]
    assert list(layouts_of(4093, 16, decoder(8))) == []


def test_a_mixture_can_spread_its_experts() -> None:
    assert names(mixture(), 2, 2)[-5:] == [
        "TP4, experts by all-reduce",
        "DP4, experts by all-gather",
        "DP4, experts by all-to-all",
        "TP2 x DP2, experts by all-gather",
        "TP2 x DP2, experts by all-to-all",
    ]


def test_nothing_to_choose_is_an_answer() -> None:
    answer = compare(decoder(8), node_count=4093, ranks_per_node=16)
    assert (answer.layouts, answer.single_stream, answer.batched) == ((), None, None)


def test_infeasible_layouts_stand_behind_and_say_why() -> None:
    answer = compare(decoder(8), node_count=6)
    assert [layout_name(one.layout) for one in answer.layouts] == ["TP2 x PP3", "PP6", "TP6", "TP3 x PP2"]
    # Nobody says what the model keeps in memory.
    assert [one.feasible for one in answer.layouts] == [None, None, False, False]
    assert all("do not divide 64 attention heads" in one.reasons[0] for one in answer.layouts[2:])
    assert answer.single_stream is not None
    assert answer.single_stream.index == 0


def test_requests_fill_the_stages() -> None:
    answer = compare(decoder(8), request_count=3)
    four_stages = answer.layouts[2]
    assert (four_stages.passes_in_flight, four_stages.bubble_fraction) == (3, 0.25)
    assert compare(decoder(8), request_count=4).layouts[2].bubble_fraction == 0


def test_a_layout_with_idle_stages_is_not_taken_for_many_requests() -> None:
    answer = compare(decoder(8), rate=8 * 10**5, request_count=2)
    assert answer.batched is not None
    assert layout_name(answer.layouts[answer.batched.index].layout) == "TP2 x PP2"
    assert answer.batched.reasons[-1] == "PP4 is not considered: 2 requests keep 2 of 4 stages busy."


def test_one_request_alone_is_read_for_at_once() -> None:
    answer = compare(decoder(8))
    # 8,000 bytes at a megabyte a second over four ranks, or one after another.
    assert [one.single_pass_seconds.lower for one in answer.layouts] == pytest.approx([2e-3, 4e-3, 8e-3])
    assert answer.single_stream is not None
    assert answer.single_stream.index == 0
    assert "TP4: reads and transfers of a decode token of one request take 2 ms" in answer.single_stream.reasons[0]


def test_without_hardware_the_fewest_stages_are_taken_and_that_is_said() -> None:
    answer = compare(decoder(8), hardware=None)
    assert answer.single_stream is not None
    assert answer.single_stream.index == 0
    assert "not known" in answer.single_stream.reasons[0]
    assert any("No hardware is given" in sentence for sentence in answer.assumptions)


def test_memory_holds_prompts_and_output_and_says_so() -> None:
    def asked(prompt_tokens: int, output_tokens: int) -> LayoutComparison:
        return default_estimator().compare_layouts(
            LayoutComparisonRequest(
                workload=workload(model="glm-5.3", node_count=8, prompt_tokens=prompt_tokens, hardware="dgx-spark"),
                output_tokens=output_tokens,
                link=link(),
            )
        )

    def caches(answer: LayoutComparison) -> dict[str, int | None]:
        return {
            layout_name(one.layout): one.memory.kv_cache_bytes if one.memory is not None else None
            for one in answer.layouts
        }

    first, second = asked(8000, 500), asked(500, 8000)
    assert caches(first) == caches(second) != caches(asked(8000, 8000))
    assert any("each prompt and of the 500 tokens after it" in sentence for sentence in first.assumptions)
    assert not any("prompts alone" in sentence for sentence in first.assumptions)


def test_output_tokens_weigh_decode_against_prefill() -> None:
    short, long = (compare(decoder(8), request_count=4, output_tokens=tokens) for tokens in (1, 10**6))
    assert short.batched is not None
    assert long.batched is not None
    assert layout_name(short.layouts[short.batched.index].layout) == "PP4"
    assert layout_name(long.layouts[long.batched.index].layout) == "TP4"
    turn = next(reason for reason in short.batched.reasons if reason.startswith("TP4:"))
    tokens = int(turn.rpartition("from about ")[2].split()[0].replace(",", ""))
    before, after = (compare(decoder(8), request_count=4, output_tokens=near) for near in (tokens // 2, tokens * 2))
    assert before.batched is not None
    assert after.batched is not None
    # Two stages of two ranks may be ahead between them; TP4 is ahead of PP4 only behind the turn.
    assert _seconds(before, 0, tokens // 2) > _seconds(before, 2, tokens // 2)
    assert _seconds(after, 0, tokens * 2) < _seconds(after, 2, tokens * 2)


def _seconds(answer: LayoutComparison, index: int, passes: int) -> float:
    one = answer.layouts[index]
    return one.network_seconds.lower + passes * one.pass_seconds.lower


def the_batched(answer: LayoutComparison) -> LayoutChoice:
    assert answer.batched is not None
    return answer.batched


def the_single(answer: LayoutComparison) -> LayoutChoice:
    assert answer.single_stream is not None
    return answer.single_stream


def chosen(answer: LayoutComparison, choice: LayoutChoice) -> str:
    return layout_name(answer.layouts[choice.index].layout)


def ranked_seconds(one: LayoutEstimate, passes: int) -> float:
    """At its least, an all-to-all with every expert on a rank of its own; nothing is read."""
    if one.layout.expert_parallelism is not ExpertParallelism.ALL_TO_ALL:
        return one.network_seconds.lower + passes * one.pass_seconds.lower
    # 2 all-to-alls of 4 experts of a token, a quarter of them on the rank itself, in 6 layers.
    assert one.network_seconds.upper is not None
    of_pass = 6 * 2 * 4 * ROW * (3 / 4) * 2 / 10**9
    assert one.network_seconds.upper == pytest.approx(1000 * of_pass)
    return one.network_seconds.upper + passes * of_pass


def test_every_layout_is_ranked_by_its_least_and_shows_both_ends() -> None:
    answer = compare(mixture(), hardware=None, request_count=8, output_tokens=128)
    batched = the_batched(answer)
    lines = {line.partition(": ")[0]: line for line in reversed(batched.reasons)}
    busy = [one for one in answer.layouts if one.bubble_fraction == 0]
    assert len(busy) == len(answer.layouts)
    for one in busy:
        line = lines[layout_name(one.layout)]
        assert one.network_seconds.upper is not None
        assert in_seconds(one.network_seconds.lower) in line
        assert in_seconds(one.network_seconds.upper) in line
    totals = [ranked_seconds(one, 128) for one in answer.layouts]
    assert batched.index == min(range(len(totals)), key=totals.__getitem__)
    in_order = [line for line in batched.reasons if line in lines.values() and "in all" in line]
    assert [totals[_index(answer, line.partition(": ")[0])] for line in in_order] == sorted(totals)


def _index(answer: LayoutComparison, name: str) -> int:
    return next(index for index, one in enumerate(answer.layouts) if layout_name(one.layout) == name)


def test_ranges_that_overlap_tell_no_order() -> None:
    """An all-to-all at its least has all experts of a token on one rank, and others are within its range."""
    answer = compare(mixture(), hardware=None, request_count=8)
    batched = the_batched(answer)
    assert chosen(answer, batched) == "PP4"
    assert "which no batch of tokens does" in " ".join(batched.reasons)
    others = [layout_name(answer.layouts[index].layout) for index in batched.undecided_indices]
    assert others == ["DP4, experts by all-to-all"]
    (said,) = [line for line in batched.reasons if "ranges overlap" in line]
    assert all(name in said for name in others)
    assert layout_name(answer.layouts[0].layout) == "TP4"
    assert 0 not in batched.undecided_indices


def test_ranges_that_do_not_overlap_tell_an_order() -> None:
    answer = compare(decoder(8), rate=8 * 10**5, request_count=4)
    assert (chosen(answer, the_batched(answer)), the_batched(answer).undecided_indices) == ("PP4", ())
    assert not any("overlap" in line for line in the_batched(answer).reasons)
    assert not any("on a rank of its own" in line for line in the_batched(answer).reasons)
    single = the_single(compare(decoder(8)))
    assert single.undecided_indices == ()


def calibration_of(rank_count: int) -> Calibration:
    table = CollectiveTable(
        kind=CollectiveKind.ALL_REDUCE,
        rank_count=rank_count,
        points=(
            CollectivePoint(message_bytes=128, seconds=1e-4),
            CollectivePoint(message_bytes=10**6, seconds=2e-3),
        ),
    )
    return Calibration(table=table, fixed_seconds=1e-4, bus_bandwidth_bytes_per_second=7.5e8, interval_fraction=0.1)


def test_a_calibration_counts_where_it_was_measured() -> None:
    answer = compare(decoder(8), calibration=calibration_of(4))
    assert [one.network_seconds.expected is not None for one in answer.layouts] == [True, False, False]
    assert answer.layouts[0].single_pass_seconds.lower > compare(decoder(8)).layouts[0].single_pass_seconds.lower


def test_measured_latency_does_not_count_against_layouts_without_it() -> None:
    bare, answer = (
        compare(decoder(8), request_count=4),
        compare(decoder(8), request_count=4, calibration=calibration_of(4)),
    )
    for with_it, without in ((the_single(answer), the_single(bare)), (the_batched(answer), the_batched(bare))):
        assert (with_it.index, with_it.undecided_indices) == (without.index, without.undecided_indices)
        said = [line for line in with_it.reasons if line not in without.reasons]
        assert len(said) == 1
        assert said[0].startswith("The calibration covers TP4 alone, so it does not count in the order")


def test_a_calibration_of_every_layout_counts_in_the_order() -> None:
    model = decoder(1)
    bare, answer = compare(model, node_count=2), compare(model, node_count=2, calibration=calibration_of(2))
    assert [layout_name(one.layout) for one in answer.layouts] == ["TP2"]
    assert not any("alone" in line for line in the_single(answer).reasons)
    assert the_single(answer).reasons[0] != the_single(bare).reasons[0]


def test_what_fits_may_be_not_known() -> None:
    answer = compare(decoder(8))
    assert all(one.feasible is None and one.reasons == (MEMORY_NOT_KNOWN,) for one in answer.layouts)
    assert all(one.feasible is True for one in compare(decoder(8), hardware=None).layouts)
    # Nothing is known to be against them, so one of them is taken.
    assert the_single(answer).index == 0


def recommend(hardware: Hardware | None = None, request_count: int = 1, **baseline: Any) -> LayoutRecommendation:
    request = LayoutRecommendationRequest(
        workload=workload(request_count=request_count), link=link(), reference_link=link(16 * 10**9), **baseline
    )
    return recommend_layout(request, decoder(8), hardware)


class TestRecommendations:
    def test_every_size_fills_all_nodes(self) -> None:
        assert [(one.instance_count, one.layout.tensor_parallel_size) for one in recommend().options] == [
            (4, 1),
            (2, 2),
            (1, 4),
        ]

    def test_losses_without_a_baseline_are_those_of_the_bytes(self) -> None:
        (largest,) = (one for one in recommend().options if one.instance_count == 1)
        sent = 17 * 1.5 * 1000 * ROW
        assert largest.sent_bytes_per_rank == sent
        assert largest.extra_ttft_seconds.upper == pytest.approx(sent / 10**9 - sent / (2 * 10**9))
        assert largest.extra_ttft_fraction is None
        assert largest.last_ttft_seconds is None

    def test_a_baseline_gives_shares_and_ttfts(self) -> None:
        answer = recommend(baseline_tensor_parallel_size=2, baseline_ttft_seconds=1.0, request_count=5)
        by_size = {one.layout.tensor_parallel_size: one for one in answer.options}
        measured = by_size[2]
        assert measured.ttft_seconds is not None
        assert measured.ttft_seconds.lower == 1
        assert measured.extra_ttft_fraction is not None
        assert measured.extra_ttft_fraction.upper == pytest.approx(measured.extra_ttft_seconds.upper)
        assert measured.last_ttft_seconds is not None
        # Five prompts over two instances: three of them follow each other.
        assert measured.last_ttft_seconds.lower == 3
        assert by_size[1].extra_ttft_fraction is not None
        assert by_size[1].extra_ttft_fraction.upper == 0
        # What was measured on two ranks is not known to fit one.
        assert [one.layout.tensor_parallel_size for one in answer.options] == [2, 4, 1]
        assert any("Sizes below TP2" in reason for reason in answer.reasons)

    def test_a_baseline_at_a_size_that_cannot_be_is_refused(self) -> None:
        with pytest.raises(InvalidArgumentError) as raised:
            recommend(baseline_tensor_parallel_size=3, baseline_ttft_seconds=1e-9)
        assert [violation.field for violation in raised.value.field_violations] == [
            "baseline_tensor_parallel_size",
            "baseline_ttft_seconds",
        ]

    def test_a_model_that_does_not_say_what_it_keeps_is_not_refused(self) -> None:
        tiny = attrs.evolve(BOARD, memory_bytes=1)
        options = recommend(hardware=tiny).options
        assert all(one.feasible is None and one.memory is None for one in options)
        assert all(one.reasons == (MEMORY_NOT_KNOWN,) for one in options)
        assert all(one.feasible is True for one in recommend().options)

    def test_a_size_that_does_not_fit_stands_behind(self) -> None:
        catalog = default_estimator()
        request = LayoutRecommendationRequest(
            workload=workload(model="glm-5.3", node_count=16, prompt_tokens=8192, hardware="dgx-spark"),
            link=link(100 * 10**9),
            reference_link=link(200 * 10**9),
        )
        fits = {one.layout.tensor_parallel_size: one.feasible for one in catalog.recommend_layout(request).options}
        assert fits == {8: True, 16: True, 4: False, 2: False, 1: False}
        assert list(fits)[:2] == [8, 16]


def asked(model: str, node_count: int, **rest: Any) -> LayoutRecommendation:
    """The question of the surface: over 100 Gb/s, against 200."""
    baseline = {name: rest.pop(name) for name in [*rest] if name.startswith("baseline")}
    request = LayoutRecommendationRequest(
        workload=workload(model=model, node_count=node_count, prompt_tokens=8192, hardware="dgx-spark", **rest),
        link=link(100 * 10**9),
        inner_link=link(3600 * 10**9),
        reference_link=link(200 * 10**9),
        **baseline,
    )
    return default_estimator().recommend_layout(request)


def named(option: LayoutOption) -> str:
    return f"{option.instance_count} x {layout_name(option.layout)}"


class TestNodesLeftOver:
    @pytest.mark.parametrize(
        ("model", "nodes", "best", "idle"),
        [
            ("glm-5.3", 8, "1 x TP8", 0),
            ("glm-5.3", 9, "1 x TP8", 1),
            ("glm-5.3", 10, "1 x TP8", 2),
            ("glm-5.3", 12, "1 x TP8", 4),
            ("glm-5.3", 17, "2 x TP8", 1),
            ("llama-3.1-70b", 7, "3 x TP2", 1),
        ],
    )
    def test_nodes_may_stay_idle_and_how_many_is_said(self, model: str, nodes: int, best: str, idle: int) -> None:
        answer = asked(model, nodes)
        first = answer.options[0]
        assert (named(first), first.idle_node_count, first.feasible) == (best, idle, True)
        stay = "stays" if idle == 1 else "stay"
        assert (f"{idle} of {nodes} nodes {stay} idle" in answer.reasons[0]) == (idle > 0)

    def test_no_option_leaves_room_for_another_instance(self) -> None:
        for option in asked("llama-3.1-70b", 11).options:
            assert option.instance_count * option.layout.rank_count + option.idle_node_count == 11
            assert option.idle_node_count < option.layout.rank_count

    def test_parts_of_a_node_and_whole_ones(self) -> None:
        counts = {
            option.layout.tensor_parallel_size: (option.instance_count, option.idle_node_count)
            for option in asked("llama-3.1-70b", 3, ranks_per_node=4).options
            if option.feasible
        }
        assert counts == {2: (6, 0), 4: (3, 0), 8: (1, 1)}

    def test_without_a_baseline_fewer_idle_nodes_come_first(self) -> None:
        """Groups of three ranks send less than those of four, and leave one of 16 nodes idle."""
        model = attrs.evolve(decoder(8), attention_head_count=12, key_value_head_count=12, vocabulary_size=768)
        request = LayoutRecommendationRequest(
            workload=workload(node_count=16), link=link(), reference_link=link(16 * 10**9)
        )
        idle = [one.idle_node_count for one in recommend_layout(request, model, None).options if one.feasible]
        assert idle == sorted(idle)
        assert idle[0] == 0
        assert idle[-1] > 0
        reasons = recommend_layout(request, model, None).reasons
        assert any("leave fewer nodes idle come first" in reason for reason in reasons)

    def test_with_a_baseline_idle_nodes_cost_their_arithmetic(self) -> None:
        model = attrs.evolve(decoder(8), attention_head_count=12, key_value_head_count=12, vocabulary_size=768)
        request = LayoutRecommendationRequest(
            workload=workload(node_count=4),
            link=link(),
            reference_link=link(16 * 10**9),
            baseline_tensor_parallel_size=1,
            baseline_ttft_seconds=1000.0,
        )
        order = [named(one) for one in recommend_layout(request, model, None).options if one.feasible]
        # Three of four nodes compute a third less than all of them.
        assert order == ["4 x TP1", "2 x TP2", "1 x TP4", "1 x TP3"]


class TestNothingFits:
    def test_it_says_what_is_closest_and_what_would_be_enough(self) -> None:
        answer = asked("glm-5.3", 3)
        assert not any(option.feasible for option in answer.options)
        assert answer.reasons == (
            "No size can be run on these nodes, with pipeline stages neither.",
            "TP2 comes closest: a rank needs 230.2 GB of memory and may use 117.5 GB: 112.7 GB are missing.",
            "The smallest instance that holds the model is PP5, on 5 nodes.",
        )
        assert not any(one.feasible for one in asked("glm-5.3", 4).options)
        assert named(asked("glm-5.3", 5).options[0]) == "1 x PP5"

    def test_nothing_is_enough_for_a_request_that_no_rank_can_hold(self) -> None:
        answer = asked("glm-5.3", 8, request_count=100_000)
        assert answer.reasons[-1] == (
            "No number of such nodes holds the model with these prompts in any way that it can be cut."
        )


class TestWords:
    LARGER = "A larger group computes a prompt sooner"

    def test_without_a_baseline_transfers_set_no_pace(self) -> None:
        lines = recommend().reasons[:3]
        assert lines[0] == ("4 x TP1: loses nothing; its transfers set no limit to the prompts of all nodes together.")
        assert all("transfers alone allow all nodes together a prompt every" in line for line in lines[1:])
        assert not any("0 us" in line for line in lines)
        assert any(reason.startswith(self.LARGER) for reason in recommend().reasons)

    def test_what_is_not_known_is_told_from_what_was_not_asked(self) -> None:
        assert recommend().reasons[-1].startswith("Whether the model fits was not checked;")
        assert recommend(hardware=BOARD).reasons[-1].startswith("Whether the model fits is not known, since the model")


class TestStagesWhereNoGroupFits:
    """A model of 200 GB with three heads, so that a group has one rank or three."""

    @pytest.fixture
    def model(self) -> Model:
        return attrs.evolve(
            decoder(8),
            attention_head_count=3,
            key_value_head_count=3,
            vocabulary_size=3 * 64,
            parameter_groups=(
                ParameterGroup(
                    part=ModelPart.ATTENTION,
                    parameter_count=10**11,
                    active_parameter_count=10**11,
                    weight_bytes=2 * 10**11,
                    split=WeightSplit.SLICED,
                    layer_count=8,
                ),
            ),
            cache_groups=(CacheGroup(reason="latents", layer_count=8, values_per_token=1),),
        )

    def answer(self, model: Model, memory_bytes: int, **rest: Any) -> LayoutRecommendation:
        board = attrs.evolve(BOARD, memory_bytes=memory_bytes)
        baseline = {name: rest.pop(name) for name in [*rest] if name.startswith("baseline")}
        request = LayoutRecommendationRequest(
            workload=workload(**rest), link=link(), inner_link=link(), reference_link=link(16 * 10**9), **baseline
        )
        return recommend_layout(request, model, board)

    def test_groups_alone_come_first_where_one_fits(self, model: Model) -> None:
        options = self.answer(model, 150 * 10**9, node_count=4).options
        assert named(options[0]) == "1 x TP3"
        assert all(option.layout.pipeline_parallel_size == 1 for option in options)

    def test_stages_are_offered_where_no_group_fits(self, model: Model) -> None:
        answer = self.answer(model, 150 * 10**9, node_count=2, request_count=4)
        best = answer.options[0]
        assert (named(best), best.feasible, best.idle_node_count) == ("1 x PP2", True, 0)
        assert any("shared out over pipeline stages" in reason for reason in answer.reasons)
        assert assumptions.PROMPT_IN_EVERY_STAGE in answer.assumptions
        assert assumptions.EVEN_STAGES in answer.assumptions
        # The first stage hands two rows of every token to the second.
        assert best.sent_bytes_per_rank == 2 * 1000 * ROW
        # Groups of single ranks stand behind and say why.
        assert [named(one) for one in answer.options[1:]] == ["2 x TP1", "1 x TP2"]

    def test_each_size_has_the_fewest_stages_that_fit(self, model: Model) -> None:
        answer = self.answer(model, 65 * 10**9, node_count=16)
        assert {named(one) for one in answer.options if one.feasible} == {"4 x PP4", "2 x TP3 x PP2"}
        assert not any(reason.startswith(TestWords.LARGER) for reason in answer.reasons)
        assert answer.options[0].idle_node_count == 0

    def test_times_of_a_pipeline_with_a_baseline(self, model: Model) -> None:
        answer = self.answer(
            model,
            150 * 10**9,
            node_count=2,
            request_count=4,
            baseline_tensor_parallel_size=1,
            baseline_ttft_seconds=2.0,
        )
        best = answer.options[0]
        assert named(best) == "1 x PP2"
        assert best.ttft_seconds is not None
        assert best.last_ttft_seconds is not None
        assert best.extra_ttft_fraction is not None
        sent = 2 * 1000 * ROW
        # One prompt: both stages at once at the least, which only several passes can, and in turn at the most.
        assert best.ttft_seconds.lower == pytest.approx(1.0)
        assert best.ttft_seconds.upper == pytest.approx(2.0 + sent / 10**9)
        assert best.last_ttft_seconds.lower == pytest.approx(4.0)
        assert best.last_ttft_seconds.upper == pytest.approx(4 * (2.0 + sent / 10**9))
        loss = sent / 10**9 - sent / (2 * 10**9)
        assert best.extra_ttft_seconds.upper == pytest.approx(loss)
        assert best.extra_ttft_fraction.upper == pytest.approx(loss / (1.0 + sent / (2 * 10**9)))

    def test_where_stages_are_too_few_it_says_what_would_be_enough(self, model: Model) -> None:
        answer = self.answer(model, 65 * 10**9, node_count=2)
        assert not any(option.feasible for option in answer.options)
        assert answer.reasons[-1] == "The smallest instance that holds the model is PP4, on 4 nodes."

    def test_an_instance_of_stages_may_be_a_part_of_a_node(self, model: Model) -> None:
        best = self.answer(model, 150 * 10**9, node_count=1, ranks_per_node=4).options[0]
        assert (named(best), best.layout.ranks_per_node, best.idle_node_count) == ("2 x PP2", 2, 0)
        assert best.sent_bytes_per_rank == 0

    def test_stages_that_straddle_nodes_hide_none_that_do_not(self, model: Model) -> None:
        """Stages of two layers, where 15 are the fewest and 16 fill nodes."""
        long = attrs.evolve(
            model,
            layer_count=30,
            parameter_groups=tuple(attrs.evolve(one, layer_count=30) for one in model.parameter_groups),
            cache_groups=tuple(attrs.evolve(one, layer_count=30) for one in model.cache_groups),
        )
        answer = self.answer(long, 22 * 10**9, node_count=4, ranks_per_node=4)
        assert named(answer.options[0]) == "1 x PP16"
        assert answer.options[0].feasible
