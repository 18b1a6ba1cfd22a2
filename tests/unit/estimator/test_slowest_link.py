"""A TTFT target in, the slowest link out: figures of the first study, solved by hand."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from estimator_service.core.assumptions import ONE_LINK_PER_NODE, UNUSED_INNER_LINK
from estimator_service.core.planning.slowest_link import (
    NO_LINK_MATTERS,
    NOTHING_IS_SENT,
    ONLY_THE_NETWORK,
    TOO_SLOW_WITHIN_NODES,
    Target,
    enough_bits_per_second,
    find_slowest_link,
    least_bits_per_second,
    needed_bits_per_second,
    slack_seconds,
)
from estimator_service.service import default_estimator
from linkbound.domain.errors import InvalidArgumentError
from linkbound.domain.estimate import Basis, Constraint, Effect
from linkbound.domain.link import LARGEST_RATE_BITS_PER_SECOND, Link
from linkbound.domain.link_presets import LINK_PRESETS
from linkbound.domain.planning import SlowestLink, SlowestLinkRequest, Verdict
from linkbound.domain.workload import PrefillWorkload
from tests.unit.estimator.models import small_model

GIGABIT = 10**9
ESTIMATOR = default_estimator()
# P3 of the first study: 32K tokens of GLM-5.3 on TP8, 27.02 s over 200 Gb/s.
P3 = PrefillWorkload(model="glm-5.3", tensor_parallel_size=8, prompt_tokens=32_768)
SENT_BITS = 8 * 3_376_128 * 32_768


def slowest(target_seconds: float, baseline_seconds: float | None = 27.02) -> SlowestLink:
    link = None if baseline_seconds is None else Link(line_rate_bits_per_second=200 * GIGABIT)
    return ESTIMATOR.find_slowest_link(
        SlowestLinkRequest(
            workload=P3,
            target_ttft_seconds=target_seconds,
            baseline_link=link,
            baseline_ttft_seconds=baseline_seconds,
        )
    )


def verdicts(answer: SlowestLink) -> dict[str, Verdict]:
    return {entry.preset: entry.verdict for entry in answer.presets}


def test_a_target_above_the_baseline() -> None:
    answer = slowest(30.0)
    interval = answer.slowest_bits_per_second
    # Everything hidden: the bytes in 30 s. Nothing hidden: in 30 - 27.02 + 4.425 s.
    assert interval.lower == pytest.approx(SENT_BITS / 30)
    assert interval.upper == pytest.approx(SENT_BITS / (30 - 27.02 + SENT_BITS / 200e9))
    assert (interval.lower_basis, interval.upper_basis) == (Basis.FORMULA, Basis.MIXED)
    assert interval.binding_constraint is Constraint.NETWORK_BANDWIDTH
    assert answer.reasons == ()


def test_the_study_s_target_of_the_emulated_link() -> None:
    """30.57 s were measured over 109 Gb/s: the rate from which that is certain is a little above, as of a bound."""
    interval = slowest(30.57).slowest_bits_per_second
    assert interval.upper is not None
    assert 109e9 < interval.upper < 112e9
    assert interval.lower < 109e9


def test_the_baseline_itself_needs_its_link_at_most() -> None:
    interval = slowest(27.02).slowest_bits_per_second
    assert interval.upper == pytest.approx(200e9)


def test_a_target_below_the_baseline_needs_a_faster_link_and_none_is_known_to_be_enough() -> None:
    answer = slowest(25.0)
    interval = answer.slowest_bits_per_second
    # Arithmetic takes at least 27.02 - 4.425 s of it.
    assert interval.lower == pytest.approx(SENT_BITS / (25 - (27.02 - SENT_BITS / 200e9)))
    assert interval.lower > 200e9
    assert interval.upper is None
    assert interval.lower_basis is Basis.MIXED
    assert "below the baseline" in answer.reasons[0]
    assert verdicts(answer)["spark-2f"] is Verdict.NO
    assert verdicts(answer)["nvlink5"] is Verdict.MAYBE


def test_a_target_below_the_arithmetic_is_hopeless() -> None:
    answer = slowest(20.0)
    interval = answer.slowest_bits_per_second
    assert interval.lower == LARGEST_RATE_BITS_PER_SECOND
    assert interval.upper is None
    assert interval.binding_constraint is Constraint.COMPUTE
    assert "at least 22.6 s" in answer.reasons[0]
    assert set(verdicts(answer).values()) == {Verdict.NO}


def test_without_a_baseline_there_is_only_a_necessary_rate() -> None:
    answer = slowest(30.0, None)
    interval = answer.slowest_bits_per_second
    assert interval.lower == pytest.approx(SENT_BITS / 30)
    assert interval.upper is None
    assert {Effect.COMPUTE_TIME, Effect.FIXED_OVERHEAD} <= set(interval.effects_left_out)
    assert set(verdicts(answer).values()) == {Verdict.MAYBE, Verdict.NO}
    assert "arithmetic comes on top" in answer.reasons[0]


def test_presets_come_slowest_first_each_with_its_verdict() -> None:
    answer = slowest(30.0)
    rates = [entry.link.effective_bits_per_second for entry in answer.presets]
    assert rates == sorted(rates)
    assert set(verdicts(answer)) == {preset.name for preset in LINK_PRESETS}
    assert verdicts(answer)["10gbe"] is Verdict.NO
    assert verdicts(answer)["spark-1f"] is Verdict.MAYBE
    assert verdicts(answer)["spark-2f"] is Verdict.YES


def test_one_rank_sends_nothing() -> None:
    request = SlowestLinkRequest(
        workload=PrefillWorkload(model="small", tensor_parallel_size=1, prompt_tokens=10),
        target_ttft_seconds=2.0,
        baseline_link=Link(line_rate_bits_per_second=GIGABIT),
        baseline_ttft_seconds=1.0,
    )
    answer = find_slowest_link(request, small_model())
    assert (answer.slowest_bits_per_second.lower, answer.slowest_bits_per_second.upper) == (0, 0)
    assert set(verdicts(answer).values()) == {Verdict.YES}
    hopeless = find_slowest_link(attrs.evolve(request, target_ttft_seconds=0.5), small_model())
    assert hopeless.slowest_bits_per_second.lower == LARGEST_RATE_BITS_PER_SECOND


def test_without_a_baseline_one_rank_sends_nothing_either() -> None:
    request = SlowestLinkRequest(
        workload=PrefillWorkload(model="small", tensor_parallel_size=1, prompt_tokens=10),
        target_ttft_seconds=2.0,
        inner_link=Link(line_rate_bits_per_second=GIGABIT),
    )
    answer = find_slowest_link(request, small_model())
    assert answer.slowest_bits_per_second.lower == 0
    assert answer.reasons == (NO_LINK_MATTERS, ONLY_THE_NETWORK)
    assert UNUSED_INNER_LINK in answer.assumptions


def test_the_pieces() -> None:
    target = Target(
        ttft_seconds=10.0, floor_bytes=1e9, sent_bytes=1e9, baseline_seconds=8.0, baseline_network_seconds=2.0
    )
    assert slack_seconds(target) == 4
    assert needed_bits_per_second(1e9, 4) == 2e9
    assert (least_bits_per_second(target), enough_bits_per_second(target)) == (8e8, 2e9)
    assert needed_bits_per_second(1e9, 0) == LARGEST_RATE_BITS_PER_SECOND
    assert needed_bits_per_second(0, 0) == 0


def test_a_layout_within_nodes_asks_for_the_link_between_them() -> None:
    """Eight ranks on two nodes of four: a node sends what one rank does; the link within it stays as it is."""
    inner = Link(line_rate_bits_per_second=3600 * GIGABIT)
    request = SlowestLinkRequest(
        workload=attrs.evolve(P3, ranks_per_node=4),
        target_ttft_seconds=30.0,
        baseline_link=Link(line_rate_bits_per_second=200 * GIGABIT),
        baseline_ttft_seconds=27.02,
        inner_link=inner,
    )
    answer = ESTIMATOR.find_slowest_link(request)
    assert answer.slowest_bits_per_second == slowest(30.0).slowest_bits_per_second
    assert ONE_LINK_PER_NODE in answer.assumptions
    of_one_node = ESTIMATOR.find_slowest_link(attrs.evolve(request, workload=attrs.evolve(P3, ranks_per_node=8)))
    assert (of_one_node.slowest_bits_per_second.lower, of_one_node.slowest_bits_per_second.upper) == (0, 0)


def test_a_pipeline_needs_less_of_a_link() -> None:
    staged = attrs.evolve(P3, tensor_parallel_size=2, pipeline_parallel_size=4)
    answer = ESTIMATOR.find_slowest_link(SlowestLinkRequest(workload=staged, target_ttft_seconds=30.0))
    # A rank of two sends 4/7 of what one of eight does for its sums; what stages hand on comes on top.
    whole = slowest(30.0, None).slowest_bits_per_second.lower
    assert whole * 4 / 7 < answer.slowest_bits_per_second.lower < whole


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"workload": attrs.evolve(P3, ranks_per_node=4)}, "inner_link"),
        ({"baseline_link": None}, "baseline_link"),
        ({"baseline_ttft_seconds": None}, "baseline_ttft_seconds"),
        ({"baseline_ttft_seconds": 0.1}, "baseline_ttft_seconds"),
        ({"target_ttft_seconds": 0.0}, "target_ttft_seconds"),
        ({"workload": attrs.evolve(P3, tensor_parallel_size=7)}, "workload.tensor_parallel_size"),
    ],
)
def test_what_cannot_be_answered(changes: dict[str, Any], field: str) -> None:
    good = SlowestLinkRequest(
        workload=P3,
        target_ttft_seconds=30.0,
        baseline_link=Link(line_rate_bits_per_second=200 * GIGABIT),
        baseline_ttft_seconds=27.02,
    )
    with pytest.raises(InvalidArgumentError) as caught:
        ESTIMATOR.find_slowest_link(attrs.evolve(good, **changes))
    assert [violation.field for violation in caught.value.field_violations] == [field]


def test_links_within_nodes_stay_and_may_be_too_slow() -> None:
    within = attrs.evolve(P3, ranks_per_node=2)
    asked = SlowestLinkRequest(
        workload=within, target_ttft_seconds=30.0, inner_link=Link(line_rate_bits_per_second=3600 * GIGABIT)
    )
    assert ESTIMATOR.find_slowest_link(asked).slowest_bits_per_second.lower == pytest.approx(SENT_BITS / 30)
    slow = attrs.evolve(asked, inner_link=Link(line_rate_bits_per_second=GIGABIT))
    answer = ESTIMATOR.find_slowest_link(slow)
    assert answer.slowest_bits_per_second.lower == LARGEST_RATE_BITS_PER_SECOND
    assert answer.reasons == (TOO_SLOW_WITHIN_NODES.format(inner=SENT_BITS / GIGABIT),)
    assert set(verdicts(answer).values()) == {Verdict.NO}


def test_one_node_sends_nothing_to_others() -> None:
    asked = SlowestLinkRequest(
        workload=attrs.evolve(P3, ranks_per_node=8),
        target_ttft_seconds=30.0,
        baseline_link=Link(line_rate_bits_per_second=200 * GIGABIT),
        baseline_ttft_seconds=27.02,
        inner_link=Link(line_rate_bits_per_second=3600 * GIGABIT),
    )
    answer = ESTIMATOR.find_slowest_link(asked)
    assert (answer.slowest_bits_per_second.lower, answer.slowest_bits_per_second.upper) == (0, 0)
    assert answer.reasons == (NOTHING_IS_SENT,)
