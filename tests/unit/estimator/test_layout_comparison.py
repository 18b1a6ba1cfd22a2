"""Layouts on the same nodes, what is chosen among them, and what is recommended."""

from typing import Any

import attrs
import pytest

from estimator_service.core.layouts.comparison import compare_layouts, layouts_of
from estimator_service.core.layouts.recommendation import recommend_layout
from estimator_service.core.layouts.words import in_seconds
from estimator_service.service import default_estimator
from linkbound.domain.calibration import Calibration, CollectivePoint, CollectiveTable
from linkbound.domain.catalog import Hardware, Model
from linkbound.domain.collective import CollectiveKind
from linkbound.domain.errors import InvalidArgumentError
from linkbound.domain.layout import layout_name
from linkbound.domain.layout_comparison import LayoutComparison, LayoutComparisonRequest
from linkbound.domain.layout_recommendation import LayoutRecommendation, LayoutRecommendationRequest
from linkbound.domain.link import Link
from tests.unit.estimator.layout_models import ROW, decoder, mixture

BOARD = Hardware(hardware_id="board", display_name="Board", memory_bytes=10**9, memory_bandwidth_bytes_per_second=10**6)


def link(bits_per_second: int = 8 * 10**9) -> Link:
    return Link(line_rate_bits_per_second=bits_per_second)


def compare(
    model: Model,
    hardware: Hardware | None = BOARD,
    calibration: Calibration | None = None,
    rate: int = 8 * 10**9,
    **rest: Any,
) -> LayoutComparison:
    request = LayoutComparisonRequest(
        **{"model": "decoder", "node_count": 4, "prompt_tokens": 1000, **rest},
        link=link(rate),
        inner_link=link(),
    )
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
    assert [one.feasible for one in answer.layouts] == [True, True, False, False]
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
    assert "TP4: a decode token of one request takes at least 2 ms" in answer.single_stream.reasons[0]


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
                model="glm-5.3",
                node_count=8,
                prompt_tokens=prompt_tokens,
                output_tokens=output_tokens,
                hardware="dgx-spark",
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


def test_an_all_to_all_is_ranked_with_every_expert_on_a_rank_of_its_own() -> None:
    """At best, with all experts of a token on one rank, it would be ahead of the all-gather; it is not counted so."""
    answer = compare(mixture(), hardware=None, request_count=8)
    named = {layout_name(one.layout): one for one in answer.layouts}
    spread = named["DP4, experts by all-to-all"]
    assert answer.batched is not None
    reason = next(one for one in answer.batched.reasons if one.startswith("DP4, experts by all-to-all:"))
    assert spread.network_seconds.upper is not None
    assert spread.network_seconds.lower < spread.network_seconds.upper
    assert in_seconds(spread.network_seconds.upper) in reason
    assert in_seconds(spread.network_seconds.lower) not in reason
    assert (
        "DP4, experts by all-to-all: figures are with every expert of a token on a rank of its own; where experts share"
        " a rank, less is sent." in answer.batched.reasons
    )
    dense = compare(decoder(8)).batched
    assert dense is not None
    assert not any("on a rank of its own" in one for one in dense.reasons)


def test_a_calibration_counts_where_it_was_measured() -> None:
    table = CollectiveTable(
        kind=CollectiveKind.ALL_REDUCE,
        rank_count=4,
        points=(
            CollectivePoint(message_bytes=128, seconds=1e-4),
            CollectivePoint(message_bytes=10**6, seconds=2e-3),
        ),
    )
    calibration = Calibration(
        table=table, fixed_seconds=1e-4, bus_bandwidth_bytes_per_second=7.5e8, interval_fraction=0.1
    )
    answer = compare(decoder(8), calibration=calibration)
    assert [one.network_seconds.expected is not None for one in answer.layouts] == [True, False, False]
    assert answer.layouts[0].single_pass_seconds.lower > compare(decoder(8)).layouts[0].single_pass_seconds.lower


def recommend(hardware: Hardware | None = None, **rest: Any) -> LayoutRecommendation:
    request = LayoutRecommendationRequest(
        **{"model": "decoder", "node_count": 4, "prompt_tokens": 1000, **rest},
        link=link(),
        reference_link=link(16 * 10**9),
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
        assert all(one.feasible and one.memory is None for one in recommend(hardware=tiny).options)

    def test_a_size_that_does_not_fit_stands_behind(self) -> None:
        catalog = default_estimator()
        request = LayoutRecommendationRequest(
            model="glm-5.3",
            node_count=16,
            link=link(100 * 10**9),
            reference_link=link(200 * 10**9),
            prompt_tokens=8192,
            hardware="dgx-spark",
        )
        fits = {one.layout.tensor_parallel_size: one.feasible for one in catalog.recommend_layout(request).options}
        assert fits == {8: True, 16: True, 4: False, 2: False, 1: False}
        assert list(fits)[:2] == [8, 16]
