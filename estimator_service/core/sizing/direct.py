"""Without a switch: one node alone, and two that are joined by a cable for each link."""

from __future__ import annotations

from collections.abc import Sequence

from estimator_service.core.elementwise import smaller
from estimator_service.core.sizing import materials, sentences
from linkbound.domain.network_parts import Cable, Nic
from linkbound.domain.sizing import SizeClusterRequest, SizeOption

ONE_NODE = "One node has no other to connect to: it needs neither a switch nor a cable."
NO_SWITCH = "Two nodes need no switch: {count} between them, {rate} each."


def nothing_to_buy() -> SizeOption:
    """The bill of a single node, which is empty (`docs/formulas.md`, Sizing)."""
    return SizeOption(
        switch="",
        display_name="nothing",
        switch_count=0,
        leaf_switch_count=0,
        spine_switch_count=0,
        cables=(),
        node_ports_used=0,
        node_ports_free=0,
        oversubscription_ratio=1.0,
        worst_case_bits_per_second=0,
        list_price_usd=0.0,
        reasons=(ONE_NODE,),
    )


def direct_option(request: SizeClusterRequest, nic: Nic, cables: Sequence[Cable]) -> SizeOption | None:
    """Two nodes, a cable for each link: the slowest that is fast enough; None without one (`docs/formulas.md`, Sizing).

    The rate that each link keeps is min(r, B_nic / links).
    """
    links = request.links_per_node or 1
    cable = min(_fitting(request.rate_bits_per_second, links, nic, cables), key=_preference, default=None)
    if cable is None:
        return None
    rate = cable.rate_bits_per_second
    kept = rate if nic.total_bits_per_second is None else smaller(rate, nic.total_bits_per_second / links)
    return SizeOption(
        switch="",
        display_name="a direct connection",
        switch_count=0,
        leaf_switch_count=0,
        spine_switch_count=0,
        cables=(materials.cable_line(cable, links),),
        node_ports_used=0,
        node_ports_free=0,
        oversubscription_ratio=1.0,
        worst_case_bits_per_second=int(kept),
        list_price_usd=None if cable.list_price_usd is None else cable.list_price_usd * links,
        verify=sentences.to_verify_directly(nic, cable),
        reasons=(
            NO_SWITCH.format(count="1 cable" if links == 1 else f"{links} cables", rate=sentences.rate_in_words(rate)),
            *sentences.of_host(nic, links, rate),
            *sentences.of_faster_ports(rate, request.rate_bits_per_second),
        ),
        sources=nic.sources,
    )


def _fitting(rate_bits_per_second: int, links: int, nic: Nic, cables: Sequence[Cable]) -> list[Cable]:
    return [
        cable
        for cable in cables
        if cable.link_count == 1
        and cable.rate_bits_per_second >= rate_bits_per_second
        and nic.nic_id not in cable.failed_nics
        and any(
            ports.takes(cable.switch_connector, cable.rate_bits_per_second)
            and ports.takes(cable.far_connector, cable.rate_bits_per_second)
            and ports.port_count >= links
            for ports in nic.port_groups
        )
    ]


def _preference(cable: Cable) -> tuple[int, bool, bool, float, str]:
    """The slowest first; then a product before a class of cables, one with a price before one without."""
    price = cable.list_price_usd
    return (cable.rate_bits_per_second, not cable.part_number, price is None, price or 0.0, cable.cable_id)
