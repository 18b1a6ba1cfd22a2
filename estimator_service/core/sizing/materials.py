"""The bill of materials of a fabric: cables by kind, prices, share of the switching capacity, the rate that stays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from estimator_service.core.elementwise import larger, smaller
from estimator_service.core.sizing.fabric import Fabric, oversubscription_ratio
from estimator_service.core.sizing.ports import used_ports
from linkbound.domain.network_parts import Cable, Nic, Switch
from linkbound.domain.sizing import CableLine


def cables_of(fabric: Fabric) -> tuple[tuple[Cable, int], ...]:
    """Cables of all leaves and between the switches, each kind once, with counts (`docs/formulas.md`, Sizing)."""
    counts: dict[str, int] = {}
    kinds: dict[str, Cable] = {}
    for cable, count in _cables(fabric):
        kinds[cable.cable_id] = cable
        counts[cable.cable_id] = counts.get(cable.cable_id, 0) + count
    return tuple((kinds[cable_id], count) for cable_id, count in counts.items())


def cable_line(cable: Cable, count: int) -> CableLine:
    """A kind of cable as the bill shows it (`docs/formulas.md`, Sizing)."""
    return CableLine(
        description=cable.description,
        count=count,
        links_per_cable=cable.link_count,
        list_price_usd=cable.list_price_usd,
        sources=cable.sources if cable.part_number else (),
    )


def list_price_usd(switch: Switch, fabric: Fabric, cables: Sequence[tuple[Cable, int]]) -> float | None:
    """Sum of all parts in US dollars; None where one has no price (`docs/formulas.md`, Sizing)."""
    prices = [(switch.list_price_usd, fabric.switch_count), *((cable.list_price_usd, count) for cable, count in cables)]
    known = [price * count for price, count in prices if price is not None]
    return sum(known) if len(known) == len(prices) else None


def capacity_share_fraction(switch: Switch, fabric: Fabric) -> float | None:
    """Rate of all links in use on the fullest leaf over its switching capacity (`docs/formulas.md`, Sizing).

    One direction: (n r + U u) / K. None where the capacity is not known.
    """
    if switch.switching_bits_per_second is None:
        return None
    node_rate = fabric.node_ports[0].mode.rate_bits_per_second
    uplink_rate = 0
    if fabric.uplinks is not None:
        uplink_rate = fabric.uplinks.port_count * fabric.uplinks.mode.rate_bits_per_second
    return (fabric.fullest_link_count * node_rate + uplink_rate) / switch.switching_bits_per_second


def worst_case_bits_per_second(switch: Switch, nic: Nic, fabric: Fabric) -> int:
    """Rate that each link keeps when all nodes talk across the fabric: min(r / max(1, ratio, share), B_nic / links).

    (`docs/formulas.md`, Sizing)
    """
    node_rate = fabric.node_ports[0].mode.rate_bits_per_second
    contention = larger(1.0, oversubscription_ratio(fabric))
    share = capacity_share_fraction(switch, fabric)
    if share is not None:
        contention = larger(contention, share)
    rate = node_rate / contention
    if nic.total_bits_per_second is not None:
        rate = smaller(rate, nic.total_bits_per_second / fabric.links_per_node)
    return int(rate)


def _cables(fabric: Fabric) -> Iterator[tuple[Cable, int]]:
    for node_count in fabric.nodes_of_leaves:
        for ports in used_ports(fabric.node_ports, node_count * fabric.links_per_node):
            yield ports.cable, ports.port_count
    if fabric.uplinks is not None:
        yield fabric.uplinks.cable, fabric.switch_link_count
