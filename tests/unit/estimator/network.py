"""The shipped switches, cables and adapters, and small ones that are easy to count by hand."""

from __future__ import annotations

from estimator_service.catalog.directory import SHIPPED_DIRECTORY, Catalog
from linkbound.domain.network_parts import Cable, NetworkParts, Nic, NicPortGroup, PortGroup, PortMode, Switch

CATALOG = Catalog(SHIPPED_DIRECTORY)
GIGABIT = 10**9
SOURCES = ("counted by hand",)


def shipped_parts(*switch_ids: str, nic: str = "dgx-spark") -> NetworkParts:
    """Parts of the catalogue; every switch where none is named."""
    return NetworkParts(
        switches=tuple(map(CATALOG.switches.get, switch_ids or CATALOG.switches.ids)),
        cables=tuple(map(CATALOG.cables.get, CATALOG.cables.ids)),
        nic=CATALOG.nics.get(nic),
    )


def small_switch(port_count: int, *, gigabits: int = 400, splits: tuple[int, ...] = (1, 2, 4)) -> Switch:
    """A switch of equal ports that can be split into `splits` links."""
    modes = tuple(PortMode(link_count=count, rate_bits_per_second=gigabits * GIGABIT // count) for count in splits)
    return Switch(
        switch_id="small",
        display_name="Small",
        port_groups=(PortGroup(connector="Q", port_count=port_count, modes=modes),),
        sources=SOURCES,
    )


def cables_for(switch: Switch) -> tuple[Cable, ...]:
    """One class of cables for each mode of each port, to a node and to another switch."""
    return tuple(
        Cable(
            cable_id=f"{group.connector.lower()}-{mode.link_count}x{mode.rate_bits_per_second}",
            description="a cable",
            switch_connector=group.connector,
            far_connector=group.connector,
            link_count=mode.link_count,
            rate_bits_per_second=mode.rate_bits_per_second,
            sources=SOURCES,
        )
        for group in switch.port_groups
        for mode in group.modes
    )


def parts_of(switch: Switch) -> NetworkParts:
    """A switch with cables for all its modes, and an adapter that takes everything."""
    nic = Nic(nic_id="any", display_name="any", port_groups=(NicPortGroup(port_count=16),), sources=SOURCES)
    return NetworkParts(switches=(switch,), cables=cables_for(switch), nic=nic)
