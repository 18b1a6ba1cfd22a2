"""Prefill and decode over layouts: links that count, times of several stages, calibrations."""

from typing import Any

import attrs
import pytest

from estimator_service.core import assumptions
from estimator_service.core.collective_time import calibrated_seconds, fit
from estimator_service.core.decode import estimate_decode
from estimator_service.core.prefill import estimate_prefill
from linkbound.domain.calibration import Calibration, CollectivePoint, CollectiveTable, CollectiveTiming
from linkbound.domain.catalog import Hardware, Model
from linkbound.domain.collective import CollectiveKind
from linkbound.domain.decode import DecodeEstimate, DecodeRequest
from linkbound.domain.errors import InvalidArgumentError
from linkbound.domain.estimate import Basis, Constraint, Effect
from linkbound.domain.layout import ExpertParallelism
from linkbound.domain.link import Link
from linkbound.domain.prefill import PrefillEstimate, PrefillRequest
from linkbound.domain.workload import DecodeWorkload, PrefillWorkload
from tests.unit.estimator.layout_models import ROW, decoder, mixture

BOARD = Hardware(hardware_id="board", display_name="Board", memory_bytes=10**9, memory_bandwidth_bytes_per_second=10**6)
RATE = 8 * 10**9
"""One gigabyte a second."""


def link(bits_per_second: int = RATE) -> Link:
    return Link(line_rate_bits_per_second=bits_per_second)


def prefill(
    model: Model | None = None,
    calibration: Calibration | None = None,
    *,
    tp: int = 4,
    tokens: int = 1000,
    requests: int = 1,
    pass_tokens: int | None = None,
    to: Link | None = None,
    inner: Link | None = None,
    others: tuple[Link, ...] = (),
    baseline: float | None = None,
    **cut: Any,
) -> PrefillEstimate:
    workload = PrefillWorkload(
        model="decoder",
        tensor_parallel_size=tp,
        prompt_tokens=tokens,
        request_count=requests,
        max_num_batched_tokens=pass_tokens,
        **cut,
    )
    request = PrefillRequest(
        workload=workload,
        link=link(),
        to_link=to,
        inner_link=inner,
        rank_links=others,
        baseline_ttft_seconds=baseline,
    )
    return estimate_prefill(request, model or decoder(8), calibration)


def decode(
    model: Model | None = None,
    calibration: Calibration | None = None,
    *,
    tp: int = 4,
    requests: int = 1,
    hardware: Hardware | None = BOARD,
    to: Link | None = None,
    inner: Link | None = None,
    **cut: Any,
) -> DecodeEstimate:
    workload = DecodeWorkload(model="decoder", tensor_parallel_size=tp, request_count=requests, **cut)
    request = DecodeRequest(workload=workload, link=link(), to_link=to, inner_link=inner)
    return estimate_decode(request, model or decoder(8), hardware, calibration)


def fitted(*points: tuple[int, float], rank_count: int = 4, ranks_per_node: int = 1) -> Calibration:
    table = CollectiveTable(
        kind=CollectiveKind.ALL_REDUCE,
        rank_count=rank_count,
        ranks_per_node=ranks_per_node,
        points=tuple(CollectivePoint(message_bytes=size, seconds=seconds) for size, seconds in points),
    )
    return fit(table)


# 20 us, and beyond that half a gigabyte a second.
SLOW_TABLE = [(128, 20e-6), (12_800, 45.6e-6), (128_000, 276e-6), (1_280_000, 2580e-6)]


class TestTheSlowestLink:
    def test_it_sets_the_rate_of_every_group(self) -> None:
        answer = prefill(others=(link(RATE // 2), link(RATE // 4), link(2 * RATE)))
        assert answer.link.effective_bits_per_second == RATE // 4
        assert answer.network_seconds.lower == pytest.approx(4 * prefill().network_seconds.lower)
        assert "rank_links[1] is the slowest link and sets the rate of every group." in answer.assumptions
        assert assumptions.OWN_LINKS in answer.assumptions
        assert not any("same rate" in sentence or "slowest counts" in sentence for sentence in answer.assumptions)

    def test_in_a_pipeline_it_may_be_in_the_last_stage(self) -> None:
        stages: dict[str, Any] = {"tp": 1, "pipeline_parallel_size": 4}
        plain, answer = prefill(**stages), prefill(others=(link(RATE // 100),), **stages)
        assert plain.network_seconds.upper is not None
        assert answer.network_seconds.upper == pytest.approx(100 * plain.network_seconds.upper)
        # One boundary of three, which it is sent over.
        assert answer.network_seconds.lower == pytest.approx(100 * plain.network_seconds.lower / 3)
        assert assumptions.SLOWEST_RANK_LINK_ANYWHERE.format(0) in answer.assumptions

    def test_in_a_pipeline_the_others_bound_the_lower_end(self) -> None:
        stages: dict[str, Any] = {"tp": 1, "pipeline_parallel_size": 4}
        plain, answer = prefill(**stages), prefill(others=(link(RATE // 2),), **stages)
        assert answer.network_seconds.lower == plain.network_seconds.lower

    def test_in_a_pipeline_the_others_gain_from_a_faster_link(self) -> None:
        stages: dict[str, Any] = {"tp": 1, "pipeline_parallel_size": 4}
        answer = prefill(to=link(RATE // 2), others=(link(RATE // 2),), **stages)
        assert answer.extra_ttft_seconds is not None
        assert answer.extra_ttft_seconds.upper == pytest.approx(prefill(**stages).network_seconds.lower)

    def test_among_attention_groups_it_may_be_in_one_without_prompts(self) -> None:
        groups: dict[str, Any] = {"tp": 1, "data_parallel_size": 4, "expert_parallelism": ExpertParallelism.ALL_TO_ALL}
        answer = prefill(mixture(8), others=(link(RATE // 100),), **groups)
        assert answer.network_seconds.lower == prefill(mixture(8), **groups).network_seconds.lower

    def test_faster_ones_change_nothing(self) -> None:
        assert prefill(others=(link(2 * RATE), link())) == prefill()

    def test_it_stays_where_the_others_change(self) -> None:
        answer = prefill(to=link(10 * RATE), others=(link(RATE // 2),))
        assert answer.to_link is not None
        assert answer.to_link.effective_bits_per_second == RATE // 2
        assert answer.extra_ttft_seconds is not None
        assert (answer.extra_ttft_seconds.lower, answer.extra_ttft_seconds.upper) == (0, 0)


class TestSeveralRanksInANode:
    def test_a_link_within_nodes_of_one_rank_is_not_used_and_that_is_said(self) -> None:
        for used, unused in (
            (prefill(ranks_per_node=4, inner=link()), prefill(inner=link())),
            (decode(ranks_per_node=4, inner=link()), decode(inner=link())),
        ):
            assert assumptions.UNUSED_INNER_LINK in unused.assumptions
            assert assumptions.UNUSED_INNER_LINK not in used.assumptions
        assert assumptions.UNUSED_INNER_LINK not in prefill().assumptions

    def test_a_node_of_every_rank_leaves_the_link_alone(self) -> None:
        answer = prefill(ranks_per_node=4, inner=link(8 * RATE), to=link(RATE // 2))
        assert answer.sent_bytes_per_rank == 0
        assert (
            answer.network_seconds.lower
            == answer.network_seconds.upper
            == pytest.approx(prefill().network_seconds.lower / 8)
        )
        assert answer.inner_link is not None
        assert answer.extra_ttft_seconds is not None
        assert answer.extra_ttft_seconds.upper == 0

    def test_time_is_between_the_slower_link_and_both(self) -> None:
        answer = prefill(ranks_per_node=2, inner=link(4 * RATE))
        alone = prefill().network_seconds.lower
        assert answer.network_seconds.lower == pytest.approx(alone)
        assert answer.network_seconds.upper == pytest.approx(alone * 1.25)
        slow_within = prefill(ranks_per_node=2, inner=link(RATE // 2))
        assert slow_within.network_seconds.lower == pytest.approx(2 * alone)
        assert slow_within.network_seconds.upper == pytest.approx(3 * alone)

    def test_no_baseline_is_below_what_a_link_within_the_node_needs(self) -> None:
        needed = prefill(ranks_per_node=2, inner=link(RATE // 2)).network_seconds.lower
        with pytest.raises(InvalidArgumentError) as raised:
            prefill(ranks_per_node=2, inner=link(RATE // 2), baseline=needed * 0.9)
        assert [violation.field for violation in raised.value.field_violations] == ["baseline_ttft_seconds"]
        share = prefill(ranks_per_node=2, inner=link(RATE // 2), baseline=needed).network_share_fraction
        assert share == pytest.approx(1)

    def test_a_link_within_the_node_is_needed(self) -> None:
        with pytest.raises(InvalidArgumentError) as raised:
            prefill(ranks_per_node=2)
        assert [violation.field for violation in raised.value.field_violations] == ["inner_link"]


class TestStages:
    def test_one_pass_goes_through_every_stage(self) -> None:
        answer = prefill(pipeline_parallel_size=2)
        assert answer.network_seconds.lower == pytest.approx(answer.network_seconds.upper)
        assert answer.network_seconds.lower > answer.sent_bytes_per_rank * 8 / RATE

    def test_passes_may_follow_each_other(self) -> None:
        answer = prefill(pipeline_parallel_size=2, pass_tokens=100)
        assert answer.network_seconds.upper is not None
        assert answer.sent_bytes_per_rank * 8 / RATE < answer.network_seconds.lower < answer.network_seconds.upper
        assert answer.network_seconds.upper == pytest.approx(prefill(pipeline_parallel_size=2).network_seconds.upper)

    def test_a_slower_link_costs_what_every_stage_sends_at_most(self) -> None:
        answer = prefill(pipeline_parallel_size=2, to=link(RATE // 2), pass_tokens=100)
        assert answer.extra_ttft_seconds is not None
        assert answer.extra_ttft_seconds.upper == pytest.approx(answer.network_seconds.upper)

    def test_a_decode_token_waits_for_every_stage(self) -> None:
        one, two = decode(), decode(pipeline_parallel_size=2)
        assert one.active_weight_bytes_per_rank == 2000
        assert two.active_weight_bytes_per_rank == 1000
        assert one.pass_seconds.lower == two.pass_seconds.lower == pytest.approx(2e-3)
        # A pass in each of the two stages: the rank sends as often as its own stage lets it.
        assert two.traffic_bits_per_second.upper == pytest.approx(two.sent_bytes_per_pass * 8 / 1e-3)

    def test_stages_without_layers_are_refused(self) -> None:
        with pytest.raises(InvalidArgumentError) as raised:
            prefill(pipeline_parallel_size=9)
        assert [violation.field for violation in raised.value.field_violations] == ["workload.pipeline_parallel_size"]


class TestExperts:
    def test_a_prompt_alone_runs_in_one_attention_group(self) -> None:
        layout: dict[str, Any] = {"data_parallel_size": 8, "expert_parallelism": ExpertParallelism.ALL_TO_ALL}
        one = prefill(mixture(), tp=1, requests=1, **layout)
        eight = prefill(mixture(), tp=1, requests=8, **layout)
        assert one.sent_bytes_per_rank == eight.sent_bytes_per_rank == round(6 * 2 * 1000 * 4 * ROW * 7 / 8)
        assert eight.sent_bytes_per_prompt_token == pytest.approx(one.sent_bytes_per_prompt_token / 8, abs=1)

    @pytest.mark.parametrize(
        ("model", "cut", "field"),
        [
            (decoder(8), {"data_parallel_size": 2}, "data_parallel_size"),
            (decoder(8), {"expert_parallelism": ExpertParallelism.ALL_REDUCE}, "expert_parallelism"),
            (mixture(), {"expert_parallelism": ExpertParallelism.ALL_TO_ALL}, "data_parallel_size"),
            (
                mixture(),
                {"data_parallel_size": 2, "expert_parallelism": ExpertParallelism.ALL_REDUCE},
                "expert_parallelism",
            ),
            (
                attrs.evolve(mixture(), active_expert_count=0),
                {"data_parallel_size": 2, "expert_parallelism": ExpertParallelism.ALL_TO_ALL},
                "expert_parallelism",
            ),
            (
                mixture(),
                {"data_parallel_size": 16, "expert_parallelism": ExpertParallelism.ALL_GATHER},
                "expert_parallelism",
            ),
        ],
    )
    def test_layouts_that_the_model_cannot_have(self, model: Model, cut: dict[str, Any], field: str) -> None:
        with pytest.raises(InvalidArgumentError) as raised:
            prefill(model, **cut)
        assert [violation.field for violation in raised.value.field_violations] == [f"workload.{field}"]


class TestCalibrations:
    def test_every_all_reduce_of_every_pass_takes_its_calibrated_time(self) -> None:
        calibration = fitted(*SLOW_TABLE)
        answer = prefill(calibration=calibration, tokens=1000, pass_tokens=100)
        # 10 passes of 17 sums of 12,800 bytes.
        assert answer.network_seconds.expected == pytest.approx(10 * 17 * 45.6e-6)
        assert answer.network_seconds.expected_basis is Basis.CALIBRATED
        assert answer.network_seconds.upper is not None
        assert answer.network_seconds.expected is not None
        assert answer.network_seconds.lower < answer.network_seconds.expected < answer.network_seconds.upper
        assert Effect.COLLECTIVE_LATENCY not in answer.network_seconds.effects_left_out
        assert Effect.COLLECTIVE_LATENCY in prefill(pass_tokens=100).network_seconds.effects_left_out

    def test_one_that_covers_nothing_expects_nothing(self) -> None:
        answer = prefill(calibration=fitted(*SLOW_TABLE, rank_count=8))
        assert answer.network_seconds == prefill().network_seconds
        assert (
            "The calibration covers no collective of this layout, so nothing is expected of it." in answer.assumptions
        )

    def test_ranks_in_a_node_count_too(self) -> None:
        of_one, of_two = fitted(*SLOW_TABLE), fitted(*SLOW_TABLE, ranks_per_node=2)
        inner = link(100 * RATE)
        assert prefill(calibration=of_one, ranks_per_node=2, inner=inner).network_seconds.expected is None
        assert prefill(calibration=of_two, ranks_per_node=2, inner=inner).network_seconds.expected is not None

    def test_a_slower_link_within_the_node_slows_what_was_measured_there(self) -> None:
        calibration = fitted(*SLOW_TABLE, ranks_per_node=4)
        measured_rate = calibration.bus_bandwidth_bytes_per_second
        fast, slow = (
            prefill(calibration=calibration, ranks_per_node=4, inner=inner, pass_tokens=100).network_seconds
            for inner in (link(100 * RATE), link(RATE // 4))
        )
        # 10 passes of 17 sums, of which a rank sends 19,200 bytes each.
        added = 170 * 19_200 * (8 / (RATE // 4) - 1 / measured_rate)
        assert fast.expected is not None
        assert slow.expected == pytest.approx(fast.expected + added)

    def test_what_is_not_covered_is_not_before_the_busier_of_both_links(self) -> None:
        table = fitted((128, 1e-9), (10**6, 1e-6), ranks_per_node=2)
        both = decode(calibration=table, ranks_per_node=2, inner=link(RATE), hardware=None)
        assert both.pass_seconds.lower == pytest.approx(both.network_seconds.lower)

    def test_a_slower_link_costs_less_where_the_rate_was_not_reached(self) -> None:
        calibration = fitted(*SLOW_TABLE)
        # 12,800 bytes take 25.6 us beside the fixed time, where the link alone would need 19.2; at half, 38.4.
        answer = prefill(calibration=calibration, pass_tokens=100, to=link(RATE // 2), baseline=1.0)
        extra = answer.extra_ttft_seconds
        assert extra is not None
        assert extra.expected is not None
        assert extra.upper is not None
        assert extra.lower < extra.expected < extra.upper
        assert answer.extra_ttft_fraction is not None
        assert answer.extra_ttft_fraction.expected == pytest.approx(extra.expected)
        assert answer.ttft_seconds.expected == pytest.approx(1 + extra.expected)

    def test_a_decode_pass_reads_and_sums_in_turn(self) -> None:
        calibration = fitted((128, 20e-6), (256, 20e-6), (512, 20e-6), (1024, 20e-6), (10**6, 2e-3))
        answer = decode(calibration=calibration)
        assert answer.network_seconds.expected is not None
        # 17 sums, and the logits that the table does not cover at its fixed time.
        assert answer.network_seconds.expected == pytest.approx(18 * 20e-6, rel=0.05)
        assert 2e-3 < answer.pass_seconds.lower < 2e-3 + answer.network_seconds.expected
        assert answer.pass_seconds.binding_constraint is Constraint.MEMORY_BANDWIDTH
        assert answer.pass_seconds.lower_basis is Basis.CALIBRATED
        without_memory = decode(calibration=calibration, hardware=None)
        assert without_memory.pass_seconds.binding_constraint is Constraint.NETWORK_LATENCY

    def test_launches_within_a_framework_are_no_part_of_a_floor(self) -> None:
        back_to_back = fitted(*SLOW_TABLE)
        table = attrs.evolve(back_to_back.table, timing=CollectiveTiming.IN_FRAMEWORK)
        graph, eager = (decode(calibration=one, requests=50) for one in (back_to_back, fit(table)))
        assert eager.network_seconds == graph.network_seconds
        # Sums this small are launch alone: what stays is their time on the wire, after that to read memory.
        memory_seconds = decode(requests=50).pass_seconds.lower
        assert eager.pass_seconds.lower == pytest.approx(memory_seconds + eager.network_seconds.lower)
        assert eager.pass_seconds.lower < graph.pass_seconds.lower

    def test_what_is_not_covered_takes_the_fixed_time_and_that_of_its_bytes(self) -> None:
        calibration = fitted(*SLOW_TABLE)
        answer = decode(calibration=calibration, hardware=None)
        sums = calibrated_seconds(calibration, answer.message_bytes_per_all_reduce, answer.link)
        smallest = calibrated_seconds(calibration, SLOW_TABLE[0][0])
        gather_seconds = answer.logits_gather_bytes_per_rank * 8 / RATE
        assert sums.expected is not None
        assert sums.upper is not None
        assert smallest.upper is not None
        assert answer.all_reduce_count == 17
        assert answer.network_seconds.expected == pytest.approx(
            17 * sums.expected + gather_seconds + calibration.fixed_seconds
        )
        assert answer.network_seconds.upper == pytest.approx(17 * sums.upper + gather_seconds + smallest.upper)

    def test_effects_stay_left_out_until_every_collective_is_covered(self) -> None:
        calibration = fitted(*SLOW_TABLE)
        unmeasured = {Effect.RATE_RAMP, Effect.ALGORITHM_CHOICE}
        sums_alone = prefill(calibration=calibration, pass_tokens=100, to=link(RATE // 2), baseline=1.0)
        assert unmeasured <= set(prefill(pass_tokens=100).network_seconds.effects_left_out)
        assert not unmeasured & set(sums_alone.network_seconds.effects_left_out)
        assert sums_alone.extra_ttft_seconds is not None
        assert not unmeasured & set(sums_alone.extra_ttft_seconds.effects_left_out)
        # The gather of the logits has the fixed time of the calibration, and no measured one.
        with_gather = decode(calibration=calibration, hardware=None).network_seconds
        assert unmeasured <= set(with_gather.effects_left_out)
        assert Effect.COLLECTIVE_LATENCY not in with_gather.effects_left_out

    def test_a_pass_is_not_faster_than_the_wire(self) -> None:
        fast = fitted((128, 1e-9), (10**6, 1e-6))
        answer = decode(calibration=fast, hardware=None, requests=1000)
        assert answer.network_seconds.expected is not None
        assert answer.network_seconds.expected >= answer.network_seconds.lower
        assert answer.pass_seconds.lower >= answer.network_seconds.lower
