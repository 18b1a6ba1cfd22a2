"""Options for a cluster, best first, and why the other switches cannot do it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from attrs import frozen

from estimator_service.core import assumptions
from estimator_service.core.sizing import materials, sentences
from estimator_service.core.sizing.direct import direct_option, nothing_to_buy
from estimator_service.core.sizing.fabric import (
    Fabric,
    largest_node_count,
    oversubscription_ratio,
    smallest_fabric,
)
from estimator_service.core.sizing.order import Candidate, rank, why_before
from estimator_service.core.sizing.ports import node_ports, node_rates, uplink_ports
from estimator_service.core.version import ESTIMATOR_VERSION
from linkbound.domain.network_parts import Cable, NetworkParts, Nic, Switch
from linkbound.domain.sizing import ClusterSizing, SizeClusterRequest, SizeOption

_RING_NODE_COUNTS = (3, 4)


@frozen(kw_only=True)
class _Choice:
    """What one switch can do: a fabric, or a refusal in words."""

    switch: Switch
    fabric: Fabric | None
    refusal: str = ""


def size_cluster(request: SizeClusterRequest, parts: NetworkParts) -> ClusterSizing:
    """Bills of materials for `request`, one for each switch of `parts`, best first (`docs/formulas.md`, Sizing).

    Where no switch is named, two nodes are joined by cables alone first; then the order is that of `rank`. One node
    needs nothing.
    """
    nic, cables = parts.nic, parts.cables
    if request.node_count == 1:
        return ClusterSizing(options=(nothing_to_buy(),), estimator_version=ESTIMATOR_VERSION)
    too_fast = sentences.too_fast(nic, request.rate_bits_per_second)
    choices = [] if too_fast else [_choice(request, switch, nic, cables) for switch in parts.switches]
    found = [Candidate(choice.switch, choice.fabric) for choice in choices if choice.fabric is not None]
    found.sort(key=rank)
    is_pair = request.node_count == 2
    direct = direct_option(request, nic, cables) if is_pair and not request.switch else None
    return ClusterSizing(
        options=(
            *(() if direct is None else (direct,)),
            *(_option(request, one, after, nic, cables) for one, after in zip_longest(found, found[1:])),
        ),
        refused=(too_fast,) if too_fast else tuple(choice.refusal for choice in choices if choice.fabric is None),
        assumptions=(
            assumptions.ONE_KIND_OF_SWITCH,
            assumptions.LIST_PRICES,
            *((assumptions.TWO_NODES,) if is_pair and direct is None else ()),
            *((assumptions.NO_RINGS,) if request.node_count in _RING_NODE_COUNTS else ()),
        ),
        estimator_version=ESTIMATOR_VERSION,
    )


def _choice(request: SizeClusterRequest, switch: Switch, nic: Nic, cables: Sequence[Cable]) -> _Choice:
    links = request.links_per_node or 1
    ratio = request.oversubscription_ratio or 1.0
    uplinks = uplink_ports(switch, cables)
    rates = node_rates(switch, nic, cables, request.rate_bits_per_second, links)
    if not rates:
        refusal = sentences.no_port(switch, nic, request.rate_bits_per_second, links)
        return _Choice(switch=switch, fabric=None, refusal=refusal)
    fabrics: list[Fabric] = []
    largest = 0
    for rate in rates:
        ports = node_ports(switch, nic, cables, rate, links)
        largest = max(largest, largest_node_count(ports, uplinks, links, ratio))
        fabric = smallest_fabric(ports, uplinks, request.node_count, links, ratio)
        if fabric is not None:
            fabrics.append(fabric)
    # At the same number of switches the slowest rate that is fast enough: it comes first, and min keeps it.
    best = min(fabrics, key=lambda fabric: fabric.switch_count, default=None)
    refusal = sentences.refusal(switch, request.node_count, links, largest, request.rate_bits_per_second)
    return _Choice(switch=switch, fabric=best, refusal="" if best is not None else refusal)


def _option(
    request: SizeClusterRequest, candidate: Candidate, after: Candidate | None, nic: Nic, cables: Sequence[Cable]
) -> SizeOption:
    """The bill of `candidate`, which stands before `after`."""
    switch, fabric = candidate.switch, candidate.fabric
    bought = materials.cables_of(fabric)
    return SizeOption(
        switch=switch.switch_id,
        display_name=switch.display_name,
        switch_count=fabric.switch_count,
        leaf_switch_count=len(fabric.nodes_of_leaves),
        spine_switch_count=fabric.spine_count,
        cables=tuple(materials.cable_line(cable, count) for cable, count in bought),
        node_ports_used=fabric.node_link_count,
        node_ports_free=fabric.free_link_count,
        oversubscription_ratio=oversubscription_ratio(fabric),
        worst_case_bits_per_second=materials.worst_case_bits_per_second(switch, nic, fabric),
        capacity_share_fraction=materials.capacity_share_fraction(switch, fabric),
        list_price_usd=materials.list_price_usd(switch, fabric, bought),
        verify=sentences.to_verify(switch, nic, fabric, cables),
        reasons=(
            *sentences.reasons(switch, nic, fabric, request.rate_bits_per_second),
            *(() if after is None else why_before(candidate, after)),
        ),
        sources=tuple(dict.fromkeys((*switch.sources, *nic.sources))),
    )
