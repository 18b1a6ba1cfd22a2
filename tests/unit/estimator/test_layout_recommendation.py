"""What is recommended for a number of nodes, and why."""

from typing import Any

import attrs
import pytest

from estimator_service.core import assumptions
from estimator_service.core.layouts.recommendation import recommend_layout
from estimator_service.core.memory import MEMORY_NOT_KNOWN
from estimator_service.service import default_estimator
from linkbound.domain.catalog import CacheGroup, Hardware, Model, ModelPart, ParameterGroup, WeightSplit
from linkbound.domain.errors import InvalidArgumentError
from linkbound.domain.layout import layout_name
from linkbound.domain.layout_recommendation import LayoutOption, LayoutRecommendation, LayoutRecommendationRequest
from tests.unit.estimator.layout_models import BOARD, ROW, decoder, link, workload


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
