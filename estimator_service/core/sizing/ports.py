"""Which ports of a switch can serve nodes, at which rate, with which cable."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import frozen

from linkbound.domain.network_parts import Cable, Nic, PortGroup, PortMode, Switch


@frozen(kw_only=True)
class ServingPorts:
    """`port_count` ports that are run in `mode` with one `cable` each."""

    group: PortGroup
    mode: PortMode
    cable: Cable
    port_count: int

    @property
    def link_count(self) -> int:
        """Links of all the ports."""
        return self.port_count * self.mode.link_count


def link_total(ports: Sequence[ServingPorts]) -> int:
    """Links of all ports: sum of c m, c ports of m links each (`docs/formulas.md`, Sizing)."""
    return sum(group.link_count for group in ports)


def node_rates(
    switch: Switch, nic: Nic, cables: Sequence[Cable], rate_bits_per_second: int, links_per_node: int
) -> tuple[int, ...]:
    """Link rates of at least the one asked for that switch, adapter and a cable have in common, slowest first.

    (`docs/formulas.md`, Sizing)
    """
    rates = {
        mode.rate_bits_per_second
        for group in switch.port_groups
        for mode in group.modes
        if mode.rate_bits_per_second >= rate_bits_per_second
        and node_cable(group, mode, nic, cables, links_per_node) is not None
    }
    return tuple(sorted(rates))


def node_ports(
    switch: Switch, nic: Nic, cables: Sequence[Cable], rate_bits_per_second: int, links_per_node: int
) -> tuple[ServingPorts, ...]:
    """Ports that serve nodes at exactly this rate, most links in a port first: fewest cables for the same nodes.

    (`docs/formulas.md`, Sizing)
    """
    found: list[ServingPorts] = []
    for group in switch.port_groups:
        for mode in sorted(group.modes, key=lambda mode: -mode.link_count):
            cable = node_cable(group, mode, nic, cables, links_per_node)
            if mode.rate_bits_per_second == rate_bits_per_second and cable is not None:
                found.append(ServingPorts(group=group, mode=mode, cable=cable, port_count=group.port_count))
                break
    return tuple(sorted(found, key=lambda ports: -ports.mode.link_count))


def uplink_ports(switch: Switch, cables: Sequence[Cable]) -> tuple[ServingPorts, ...]:
    """Ports that join two switches of a kind, each unsplit and at its fastest (`docs/formulas.md`, Sizing)."""
    return tuple(_uplinks(switch, cables))


def used_ports(ports: Sequence[ServingPorts], link_count: int) -> tuple[ServingPorts, ...]:
    """The first of `ports` that carry `link_count` links; the last one may carry fewer than it could.

    (`docs/formulas.md`, Sizing)
    """
    used: list[ServingPorts] = []
    for group in ports:
        needed = min(group.port_count, -(-link_count // group.mode.link_count))
        if needed:
            used.append(ServingPorts(group=group.group, mode=group.mode, cable=group.cable, port_count=needed))
            link_count = max(0, link_count - used[-1].link_count)
    return tuple(used)


def node_cable(
    group: PortGroup, mode: PortMode, nic: Nic, cables: Sequence[Cable], links_per_node: int
) -> Cable | None:
    """The cable between a port in this mode and the adapter; None where there is none (`docs/formulas.md`, Sizing).

    Products that linked up come before classes of cables, one with a price before one without.
    """
    return _best(
        cable
        for cable in cables
        if _is_of(cable, group, mode)
        and nic.nic_id not in cable.failed_nics
        and any(
            ports.takes(cable.far_connector, mode.rate_bits_per_second) and ports.port_count >= links_per_node
            for ports in nic.port_groups
        )
    )


def _uplinks(switch: Switch, cables: Sequence[Cable]) -> Iterator[ServingPorts]:
    for group in switch.port_groups:
        unsplit = [mode for mode in group.modes if mode.link_count == 1]
        if not unsplit:
            continue
        mode = max(unsplit, key=lambda mode: mode.rate_bits_per_second)
        cable = _best(
            cable for cable in cables if _is_of(cable, group, mode) and cable.far_connector == group.connector
        )
        if cable is not None:
            yield ServingPorts(group=group, mode=mode, cable=cable, port_count=group.port_count)


def _is_of(cable: Cable, group: PortGroup, mode: PortMode) -> bool:
    return (
        cable.switch_connector == group.connector
        and cable.link_count == mode.link_count
        and cable.rate_bits_per_second == mode.rate_bits_per_second
    )


def _best(cables: Iterator[Cable]) -> Cable | None:
    return min(cables, key=_preference, default=None)


def _preference(cable: Cable) -> tuple[bool, bool, float, str]:
    """Products with a price first, then classes; a product without a price says less than its class."""
    price = cable.list_price_usd
    return (price is None, bool(cable.part_number) and price is None, price or 0.0, cable.cable_id)
