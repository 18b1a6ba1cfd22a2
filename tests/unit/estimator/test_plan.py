"""The planning checklist: the first study's case answered with its numbers, and what is missing answered as missing."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from estimator_service.core.links import resolve
from estimator_service.core.planning.checklist import check_plan
from estimator_service.core.planning.facts import PlanFacts, missing, plan_facts, port_rate_bits_per_second
from estimator_service.service import default_estimator
from linkbound.domain.catalog import CacheGroup, Hardware, Model
from linkbound.domain.errors import InvalidArgumentError
from linkbound.domain.link import Link
from linkbound.domain.link_presets import parse_link
from linkbound.domain.planning import PlanCheck, PlanItem, PlanRequest, PlanStatus
from tests.unit.estimator.models import small_model
from tests.unit.estimator.network import shipped_parts

ESTIMATOR = default_estimator()
TOPICS = [
    "tensor_parallel_size",
    "prompt_length",
    "ttft_target",
    "link_loss",
    "link_up",
    "counters",
    "memory",
    "switch_capacity",
]
# P3 of the first study on two instances: 32K tokens on TP8, 27.02 s over 200 Gb/s.
STUDY = PlanRequest(
    model="glm-5.3",
    node_count=16,
    link=parse_link("100g"),
    reference_link=parse_link("200g"),
    tensor_parallel_size=8,
    prompt_tokens=32_768,
    target_ttft_seconds=32.0,
    baseline_ttft_seconds=27.02,
    switch="crs804",
    counter_interval_seconds=1e-3,
)
NOTHING = PlanRequest(node_count=4, link=parse_link("spark-1f"))


def items(request: PlanRequest) -> dict[str, PlanItem]:
    answer: PlanCheck = ESTIMATOR.check_plan(request)
    assert [item.topic for item in answer.items] == TOPICS
    return {item.topic: item for item in answer.items}


def changed(**changes: Any) -> dict[str, PlanItem]:
    return items(attrs.evolve(STUDY, **changes))


def said(item: PlanItem) -> str:
    return " ".join((*item.answers, *item.advice))


def test_the_study_s_case() -> None:
    answers = items(STUDY)
    statuses = {topic: item.status for topic, item in answers.items() if topic != "memory"}
    assert statuses == {
        "tensor_parallel_size": PlanStatus.OK,
        "prompt_length": PlanStatus.OK,
        "ttft_target": PlanStatus.OK,
        "link_loss": PlanStatus.OK,
        "link_up": PlanStatus.VERIFY_BY_HAND,
        "counters": PlanStatus.OK,
        "switch_capacity": PlanStatus.VERIFY_BY_HAND,
    }
    assert "2 instances of TP8 on 16 nodes" in said(answers["tensor_parallel_size"])
    # Study 1, 10, for a prompt of 32K: at TP8 4.43 s of 27.02.
    assert "16.4 % at TP8" in said(answers["tensor_parallel_size"])
    assert "3.38 MB for each of them, 110.6 GB in all, in 157 all-reduces" in said(answers["prompt_length"])
    # Study 1, 5.1: 0.135 s for each 1,000 tokens; 5.2: 4.43 s.
    assert "adds at most 4.43 s to TTFT" in said(answers["link_loss"])
    assert "0.135 s for each 1,000 prompt tokens" in said(answers["link_loss"])
    assert "7.05 ms" in said(answers["counters"])
    assert "100.0 % of the switching capacity" in said(answers["switch_capacity"])


def test_everything_missing_is_answered_as_missing() -> None:
    answers = items(NOTHING)
    missing_topics = {topic for topic, item in answers.items() if item.status is PlanStatus.MISSING}
    assert missing_topics == set(TOPICS) - {"link_up"}
    assert answers["link_up"].status is PlanStatus.VERIFY_BY_HAND
    assert "No switch is given" in said(answers["switch_capacity"])
    assert "CRS804" in said(answers["switch_capacity"])
    assert all(item.answers or item.advice for item in answers.values())


@pytest.mark.parametrize(
    ("changes", "topic", "status"),
    [
        ({"target_ttft_seconds": 30.0}, "ttft_target", PlanStatus.CONCERN),
        ({"target_ttft_seconds": 20.0}, "ttft_target", PlanStatus.CONCERN),
        ({"target_ttft_seconds": None}, "ttft_target", PlanStatus.MISSING),
        ({"baseline_ttft_seconds": None}, "ttft_target", PlanStatus.MISSING),
        ({"baseline_ttft_seconds": None, "target_ttft_seconds": 1.0}, "ttft_target", PlanStatus.CONCERN),
        ({"reference_link": None}, "link_loss", PlanStatus.MISSING),
        ({"prompt_tokens": 0}, "link_loss", PlanStatus.MISSING),
        ({"model": ""}, "link_loss", PlanStatus.MISSING),
        ({"baseline_ttft_seconds": None}, "link_loss", PlanStatus.OK),
        ({"tensor_parallel_size": 0}, "tensor_parallel_size", PlanStatus.MISSING),
        ({"tensor_parallel_size": 7}, "tensor_parallel_size", PlanStatus.CONCERN),
        ({"tensor_parallel_size": 32}, "tensor_parallel_size", PlanStatus.CONCERN),
        ({"counter_interval_seconds": 1.0}, "counters", PlanStatus.CONCERN),
        ({"counter_interval_seconds": None}, "counters", PlanStatus.MISSING),
        ({"switch": ""}, "switch_capacity", PlanStatus.MISSING),
        ({"switch": "crs812"}, "switch_capacity", PlanStatus.CONCERN),
        ({"switch": "crs812"}, "link_up", PlanStatus.CONCERN),
        ({"hardware": ""}, "memory", PlanStatus.MISSING),
    ],
)
def test_one_thing_changed(changes: dict[str, Any], topic: str, status: PlanStatus) -> None:
    assert changed(**changes)[topic].status is status


def test_the_common_mistakes_are_named_where_they_apply() -> None:
    watched_by_the_second = said(changed(counter_interval_seconds=1.0)["counters"])
    assert "do not see RDMA" in watched_by_the_second
    assert "hide the bursts" in watched_by_the_second
    assert "hide the bursts" not in said(items(STUDY)["counters"])
    assert "Half the link is not half the speed" in said(items(STUDY)["link_loss"])
    assert "Do not spread a model over more nodes" in said(changed(tensor_parallel_size=16)["tensor_parallel_size"])


def test_one_large_instance_loses_more_than_two_small_ones() -> None:
    wide = said(changed(tensor_parallel_size=16, target_ttft_seconds=None)["tensor_parallel_size"])
    assert "1 instance of TP16 on 16 nodes" in wide
    assert "at TP8" in wide
    assert "at TP16" in wide


def test_too_few_nodes_for_a_group_are_told_what_it_needs() -> None:
    item = changed(node_count=3)["tensor_parallel_size"]
    assert "TP8 needs 8 nodes, one rank each; there are 3." in item.answers
    assert item.advice == (
        "A tensor-parallel group of 8 needs 8 ranks: take more nodes, or a smaller size that the memory allows.",
    )


def test_half_a_link_is_spoken_of_where_the_planned_one_is_slower() -> None:
    links = ("100g", "150g", "200g", "400g")
    told = [link for link in links if "Half the link" in said(changed(link=parse_link(link))["link_loss"])]
    assert told == ["100g", "150g"]
    assert "Half the link" not in said(changed(reference_link=None)["link_loss"])


def test_nodes_that_stay_idle_are_counted() -> None:
    assert "; 4 stay idle" in said(changed(node_count=12)["tensor_parallel_size"])


def test_a_slow_link_and_a_fast_one() -> None:
    slower = said(changed(link=parse_link("10g"))["ttft_target"])
    assert "missed" in slower
    faster = said(changed(link=parse_link("400g"))["link_loss"])
    assert "takes at most 2.21 s from TTFT" in faster


def test_a_baseline_without_its_link_is_not_used() -> None:
    answer = ESTIMATOR.check_plan(attrs.evolve(STUDY, reference_link=None))
    assert any("over which link it was measured" in sentence for sentence in answer.assumptions)


def test_a_baseline_that_its_link_cannot_have_reached_is_refused() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        ESTIMATOR.check_plan(attrs.evolve(STUDY, baseline_ttft_seconds=1.0))
    assert [violation.field for violation in caught.value.field_violations] == ["baseline_ttft_seconds"]


def test_a_short_prompt_is_overstated() -> None:
    assert "overstates" in said(changed(prompt_tokens=1024, baseline_ttft_seconds=0.96)["prompt_length"])
    assert "overstates" not in said(items(STUDY)["prompt_length"])


def model_in_memory(weight_bits: float) -> Model:
    """A model of 1,000 parameters whose requests keep 10 values of 2 bytes a token."""
    return attrs.evolve(
        small_model(),
        total_parameters=1000,
        weight_bits_per_parameter=weight_bits,
        cache_groups=(CacheGroup(reason="attention", layer_count=1, values_per_token=10),),
    )


def facts_of(memory_bytes: int, tensor_parallel_size: int = 4) -> PlanFacts:
    hardware = Hardware(
        hardware_id="board",
        display_name="Board",
        memory_bytes=memory_bytes,
        memory_bandwidth_bytes_per_second=1,
        sources=("by hand",),
    )
    request = PlanRequest(
        model="small",
        node_count=8,
        link=parse_link("100g"),
        tensor_parallel_size=tensor_parallel_size,
        prompt_tokens=10,
        hardware="board",
    )
    return plan_facts(request, model_in_memory(8.0), hardware, shipped_parts("crs804"))


def memory_and_size(facts: PlanFacts) -> tuple[PlanItem, PlanItem]:
    by_topic = {item.topic: item for item in check_plan(facts).items}
    return by_topic["memory"], by_topic["tensor_parallel_size"]


def test_memory_that_is_enough_on_fewer_ranks_is_a_concern_about_the_size() -> None:
    memory, size = memory_and_size(facts_of(10**15))
    assert memory.status is PlanStatus.OK
    assert size.status is PlanStatus.CONCERN
    assert "TP1 is enough for the memory" in said(size)
    narrow, alone = memory_and_size(facts_of(10**15, tensor_parallel_size=1))
    assert (narrow.status, alone.status) == (PlanStatus.OK, PlanStatus.OK)


def test_memory_that_is_short_is_a_concern() -> None:
    memory, _ = memory_and_size(facts_of(1000))
    assert memory.status is PlanStatus.CONCERN
    assert "are short" in said(memory)


@pytest.mark.parametrize(
    ("link", "rate"),
    [
        (Link(line_rate_bits_per_second=10**11), 10**11),
        (parse_link("spark-1f"), 200 * 10**9),
        (Link(measured_bits_per_second=109 * 10**9), 109 * 10**9),
        (Link(line_rate_bits_per_second=1), 10**9),
        (parse_link("nvlink5"), 10**12),
    ],
)
def test_the_rate_of_a_port(link: Link, rate: int) -> None:
    assert port_rate_bits_per_second(link, resolve(link)) == rate


def test_what_is_missing_is_listed() -> None:
    facts = plan_facts(NOTHING, None, None, shipped_parts("crs804"))
    assert missing(facts) == ("Not computed, since not given: the model, the tensor-parallel size, the prompt length.",)
    assert missing(facts, length=False) == ("Not computed, since not given: the model, the tensor-parallel size.",)
