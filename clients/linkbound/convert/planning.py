"""Converters of `linkbound/estimator/v1/planning.proto`."""

from __future__ import annotations

from linkbound.convert.estimate import estimate_from_proto, estimate_to_proto
from linkbound.convert.link import link_from_proto, link_to_proto, resolved_link_from_proto, resolved_link_to_proto
from linkbound.convert.values import EnumConverter
from linkbound.convert.workload import prefill_workload_from_proto, prefill_workload_to_proto
from linkbound.domain.names import HARDWARE, MODELS, NICS, SWITCHES, resource_id, resource_name
from linkbound.domain.planning import (
    LinkVerdict,
    PlanCheck,
    PlanItem,
    PlanRequest,
    PlanStatus,
    SlowestLink,
    SlowestLinkRequest,
    Verdict,
)
from linkbound.estimator.v1 import planning_pb2

_VERDICT = EnumConverter(Verdict, planning_pb2.Verdict)
_PLAN_STATUS = EnumConverter(PlanStatus, planning_pb2.PlanStatus)

verdict_to_proto = _VERDICT.to_proto
verdict_from_proto = _VERDICT.from_proto
plan_status_to_proto = _PLAN_STATUS.to_proto
plan_status_from_proto = _PLAN_STATUS.from_proto


def slowest_link_request_to_proto(value: SlowestLinkRequest) -> planning_pb2.FindSlowestLinkRequest:
    """A question about a TTFT target as a message."""
    return planning_pb2.FindSlowestLinkRequest(
        workload=prefill_workload_to_proto(value.workload),
        target_ttft_seconds=value.target_ttft_seconds,
        baseline_link=None if value.baseline_link is None else link_to_proto(value.baseline_link),
        baseline_ttft_seconds=value.baseline_ttft_seconds,
        inner_link=None if value.inner_link is None else link_to_proto(value.inner_link),
    )


def slowest_link_request_from_proto(message: planning_pb2.FindSlowestLinkRequest) -> SlowestLinkRequest:
    """A question about a TTFT target from its message. Raises InvalidArgumentError with every violation."""
    return SlowestLinkRequest(
        workload=prefill_workload_from_proto(message.workload),
        target_ttft_seconds=message.target_ttft_seconds,
        baseline_link=link_from_proto(message.baseline_link) if message.HasField("baseline_link") else None,
        baseline_ttft_seconds=message.baseline_ttft_seconds if message.HasField("baseline_ttft_seconds") else None,
        inner_link=link_from_proto(message.inner_link) if message.HasField("inner_link") else None,
    )


def link_verdict_to_proto(value: LinkVerdict) -> planning_pb2.LinkVerdict:
    """What a link means for a target as a message."""
    return planning_pb2.LinkVerdict(
        preset=value.preset,
        link=resolved_link_to_proto(value.link),
        ttft_seconds=estimate_to_proto(value.ttft_seconds),
        verdict=verdict_to_proto(value.verdict),
    )


def link_verdict_from_proto(message: planning_pb2.LinkVerdict) -> LinkVerdict:
    """What a link means for a target from its message."""
    return LinkVerdict(
        preset=message.preset,
        link=resolved_link_from_proto(message.link),
        ttft_seconds=estimate_from_proto(message.ttft_seconds),
        verdict=verdict_from_proto(message.verdict),
    )


def slowest_link_to_proto(value: SlowestLink) -> planning_pb2.FindSlowestLinkResponse:
    """The slowest link for a target as a message."""
    return planning_pb2.FindSlowestLinkResponse(
        slowest_bits_per_second=estimate_to_proto(value.slowest_bits_per_second),
        presets=map(link_verdict_to_proto, value.presets),
        reasons=value.reasons,
        assumptions=value.assumptions,
        estimator_version=value.estimator_version,
    )


def slowest_link_from_proto(message: planning_pb2.FindSlowestLinkResponse) -> SlowestLink:
    """The slowest link for a target from its message."""
    return SlowestLink(
        slowest_bits_per_second=estimate_from_proto(message.slowest_bits_per_second),
        presets=tuple(map(link_verdict_from_proto, message.presets)),
        reasons=tuple(message.reasons),
        assumptions=tuple(message.assumptions),
        estimator_version=message.estimator_version,
    )


def plan_request_to_proto(value: PlanRequest) -> planning_pb2.CheckPlanRequest:
    """A plan as a message."""
    return planning_pb2.CheckPlanRequest(
        model=resource_name(MODELS, value.model) if value.model else "",
        node_count=value.node_count,
        link=link_to_proto(value.link),
        reference_link=None if value.reference_link is None else link_to_proto(value.reference_link),
        tensor_parallel_size=value.tensor_parallel_size,
        prompt_tokens=value.prompt_tokens,
        target_ttft_seconds=value.target_ttft_seconds,
        baseline_ttft_seconds=value.baseline_ttft_seconds,
        switch=resource_name(SWITCHES, value.switch) if value.switch else "",
        nic=resource_name(NICS, value.nic) if value.nic else "",
        hardware=resource_name(HARDWARE, value.hardware) if value.hardware else "",
        counter_interval_seconds=value.counter_interval_seconds,
    )


def plan_request_from_proto(message: planning_pb2.CheckPlanRequest) -> PlanRequest:
    """A plan from its message. Raises InvalidArgumentError with every violation."""
    return PlanRequest(
        model=resource_id(MODELS, message.model),
        node_count=message.node_count,
        link=link_from_proto(message.link),
        reference_link=link_from_proto(message.reference_link) if message.HasField("reference_link") else None,
        tensor_parallel_size=message.tensor_parallel_size,
        prompt_tokens=message.prompt_tokens,
        target_ttft_seconds=message.target_ttft_seconds if message.HasField("target_ttft_seconds") else None,
        baseline_ttft_seconds=message.baseline_ttft_seconds if message.HasField("baseline_ttft_seconds") else None,
        switch=resource_id(SWITCHES, message.switch),
        nic=resource_id(NICS, message.nic),
        hardware=resource_id(HARDWARE, message.hardware),
        counter_interval_seconds=(
            message.counter_interval_seconds if message.HasField("counter_interval_seconds") else None
        ),
    )


def plan_item_to_proto(value: PlanItem) -> planning_pb2.PlanItem:
    """A line of the checklist as a message."""
    return planning_pb2.PlanItem(
        topic=value.topic,
        question=value.question,
        status=plan_status_to_proto(value.status),
        answers=value.answers,
        advice=value.advice,
    )


def plan_item_from_proto(message: planning_pb2.PlanItem) -> PlanItem:
    """A line of the checklist from its message."""
    return PlanItem(
        topic=message.topic,
        question=message.question,
        status=plan_status_from_proto(message.status),
        answers=tuple(message.answers),
        advice=tuple(message.advice),
    )


def plan_check_to_proto(value: PlanCheck) -> planning_pb2.CheckPlanResponse:
    """The checklist as a message."""
    return planning_pb2.CheckPlanResponse(
        items=map(plan_item_to_proto, value.items),
        assumptions=value.assumptions,
        estimator_version=value.estimator_version,
    )


def plan_check_from_proto(message: planning_pb2.CheckPlanResponse) -> PlanCheck:
    """The checklist from its message."""
    return PlanCheck(
        items=tuple(map(plan_item_from_proto, message.items)),
        assumptions=tuple(message.assumptions),
        estimator_version=message.estimator_version,
    )
