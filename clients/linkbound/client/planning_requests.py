"""Requests of sizing and planning from the keywords of the clients. Pure; written once for sync and async."""

from __future__ import annotations

from typing import Any, cast

from linkbound.client import names
from linkbound.client.estimator_requests import LinkOrRate, LinksRead
from linkbound.domain.link import Link
from linkbound.domain.planning import PlanRequest, SlowestLinkRequest
from linkbound.domain.sizing import SizeClusterRequest
from linkbound.domain.workload import PrefillWorkload


def size_cluster_request(
    *,
    node_count: int,
    rate: LinkOrRate,
    switch: str,
    links_per_node: int | None,
    nic: str,
    oversubscription_ratio: float | None,
) -> SizeClusterRequest:
    """The request of `size_cluster`; a link stands for its line rate, else for its measured one."""
    links = LinksRead()
    link = links.read(rate, "rate")
    return links.judge(
        lambda: SizeClusterRequest(
            node_count=node_count,
            rate_bits_per_second=_node_rate(link),
            switch=names.switch_id(switch),
            links_per_node=links_per_node,
            nic=names.nic_id(nic),
            oversubscription_ratio=oversubscription_ratio,
        )
    )


def slowest_link_request(
    workload: PrefillWorkload,
    *,
    target_ttft_seconds: float,
    baseline_link: LinkOrRate | None,
    baseline_ttft_seconds: float | None,
    inner_link: LinkOrRate | None,
) -> SlowestLinkRequest:
    """The request of `find_slowest_link`."""
    links = LinksRead()
    link = links.read_optional(baseline_link, "baseline_link")
    inner = links.read_optional(inner_link, "inner_link")
    return links.judge(
        lambda: SlowestLinkRequest(
            workload=workload,
            target_ttft_seconds=target_ttft_seconds,
            baseline_link=link,
            baseline_ttft_seconds=baseline_ttft_seconds,
            inner_link=inner,
        )
    )


def plan_request(  # noqa: PLR0913 - the keywords are the request
    *,
    model: str,
    node_count: int,
    link: LinkOrRate,
    reference_link: LinkOrRate | None,
    tensor_parallel_size: int,
    prompt_tokens: int,
    target_ttft_seconds: float | None,
    baseline_ttft_seconds: float | None,
    switch: str,
    nic: str,
    hardware: str,
    counter_interval_seconds: float | None,
) -> PlanRequest:
    """The request of `check_plan`."""
    links = LinksRead()
    planned, reference = links.read(link, "link"), links.read_optional(reference_link, "reference_link")
    return links.judge(
        lambda: PlanRequest(
            model=names.model_id(model),
            node_count=node_count,
            link=planned,
            reference_link=reference,
            tensor_parallel_size=tensor_parallel_size,
            prompt_tokens=prompt_tokens,
            target_ttft_seconds=target_ttft_seconds,
            baseline_ttft_seconds=baseline_ttft_seconds,
            switch=names.switch_id(switch),
            nic=names.nic_id(nic),
            hardware=names.hardware_id(hardware),
            counter_interval_seconds=counter_interval_seconds,
        )
    )


def _node_rate(link: Link) -> int:
    """The rate of a port for `link`; what is no link is passed on, for the rule of the field to refuse."""
    given: Any = link
    if not isinstance(given, Link):
        return cast("int", given)
    return link.line_rate_bits_per_second or link.measured_bits_per_second or 0
