"""Layouts on the same nodes, and what is chosen among them."""

from typing import Any

import pytest

from estimator_service.core.layouts.comparison import compare_layouts, layouts_of
from estimator_service.core.layouts.words import in_seconds
from estimator_service.core.memory import MEMORY_NOT_KNOWN
from estimator_service.service import default_estimator
from linkbound.domain.calibration import Calibration, CollectivePoint, CollectiveTable
from linkbound.domain.catalog import Hardware, Model
from linkbound.domain.collective import CollectiveKind
from linkbound.domain.layout import ExpertParallelism, layout_name
from linkbound.domain.layout_comparison import LayoutChoice, LayoutComparison, LayoutComparisonRequest, LayoutEstimate
from tests.unit.estimator.layout_models import BOARD, ROW, decoder, link, mixture, workload


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
