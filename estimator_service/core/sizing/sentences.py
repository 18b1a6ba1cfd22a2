"""What an option says in words: why it stands where it stands, and what a person at the machines has to verify."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from estimator_service.core.sizing.fabric import Fabric, oversubscription_ratio
from estimator_service.core.sizing.materials import capacity_share_fraction, worst_case_bits_per_second
from estimator_service.core.sizing.ports import ServingPorts, used_ports
from linkbound.domain.network_parts import Cable, Nic, Pitfall, Switch
from linkbound.domain.words import counted

SPREAD = (
    "Traffic spreads evenly over the links between switches: RoCE has few flows, and a hash can put several on one."
)
GIGABIT = 10**9


def rate_in_words(bits_per_second: float) -> str:
    """A rate in Gb/s, as in `100 Gb/s` (`docs/formulas.md`, Sizing)."""
    return f"{bits_per_second / GIGABIT:.6g} Gb/s"


def to_verify(switch: Switch, nic: Nic, fabric: Fabric, cables: Sequence[Cable]) -> tuple[str, ...]:
    """What has to be verified by hand: breakout, link-up, capacity, and what went wrong for others.

    `cables` are all of the catalogue; one that did not link up with `nic` is named (`docs/formulas.md`, Sizing).
    """
    rate = fabric.node_ports[0].mode.rate_bits_per_second
    used = used_ports(fabric.node_ports, fabric.fullest_link_count)
    known = [*(ports.cable for ports in used), *_failed(nic, used, cables)]
    pitfalls = (*switch.pitfalls, *nic.pitfalls, *(pitfall for cable in known for pitfall in cable.pitfalls))
    return tuple(
        dict.fromkeys(
            (
                *_of_ports(switch, nic, used),
                _of_capacity(switch, fabric),
                *((SPREAD,) if fabric.uplinks is not None else ()),
                *_about(pitfalls, rate),
            )
        )
    )


def to_verify_directly(nic: Nic, cable: Cable) -> tuple[str, ...]:
    """What has to be verified by hand where two nodes are joined by `cable` (`docs/formulas.md`, Sizing)."""
    rate = cable.rate_bits_per_second
    pitfalls = _about((*nic.pitfalls, *cable.pitfalls), rate)
    return tuple(dict.fromkeys((_of_link_up(nic, rate, cable), *pitfalls)))


def of_host(nic: Nic, links_per_node: int, rate_bits_per_second: int) -> tuple[str, ...]:
    """What all links of a node carry together, where that is less than each alone (`docs/formulas.md`, Sizing)."""
    total = nic.total_bits_per_second
    if total is None or total >= links_per_node * rate_bits_per_second:
        return ()
    return (f"A node carries no more than {rate_in_words(total)} over all its links.",)


def of_faster_ports(rate_bits_per_second: int, asked_bits_per_second: int) -> tuple[str, ...]:
    """How many times faster the links are than asked for, where they are (`docs/formulas.md`, Sizing)."""
    if rate_bits_per_second <= asked_bits_per_second:
        return ()
    ratio = rate_bits_per_second / asked_bits_per_second
    return (f"Its links run at {rate_in_words(rate_bits_per_second)}, {ratio:.3g} times the rate asked for.",)


def reasons(switch: Switch, nic: Nic, fabric: Fabric, asked_bits_per_second: int) -> tuple[str, ...]:
    """Why an option stands where it stands (`docs/formulas.md`, Sizing)."""
    faster = of_faster_ports(fabric.node_ports[0].mode.rate_bits_per_second, asked_bits_per_second)
    return (*_reasons(switch, nic, fabric), *faster)


def refusal(switch: Switch, node_count: int, links_per_node: int, largest: int, rate_bits_per_second: int) -> str:
    """Why a switch cannot do it: too few ports, also over two tiers (`docs/formulas.md`, Sizing)."""
    links = f" with {links_per_node} links each" if links_per_node > 1 else ""
    return (
        f"{switch.display_name} connects at most {counted(largest, 'node')}{links} at"
        f" {rate_in_words(rate_bits_per_second)}, leaves and spines included; {node_count} are asked for."
    )


def no_port(switch: Switch, nic: Nic, rate_bits_per_second: int, links_per_node: int) -> str:
    """Why a switch cannot do it: nothing in common with the adapter (`docs/formulas.md`, Sizing)."""
    links = f"{links_per_node} links of " if links_per_node > 1 else ""
    return (
        f"{switch.display_name} has no port, with a cable of the catalogue, for {links}{nic.display_name} at"
        f" {rate_in_words(rate_bits_per_second)} or more."
    )


def too_fast(nic: Nic, rate_bits_per_second: int) -> str | None:
    """Why no switch can do it: the adapter has no such rate; None where it has (`docs/formulas.md`, Sizing)."""
    if any(not ports.rates_bits_per_second for ports in nic.port_groups):
        return None
    fastest = max(rate for ports in nic.port_groups for rate in ports.rates_bits_per_second)
    if fastest >= rate_bits_per_second:
        return None
    rates = f"{rate_in_words(fastest)}; {rate_in_words(rate_bits_per_second)} are asked for"
    return f"{nic.display_name} runs a link at no more than {rates}."


def _of_ports(switch: Switch, nic: Nic, used: Sequence[ServingPorts]) -> Iterator[str]:
    for ports in used:
        rate = rate_in_words(ports.mode.rate_bits_per_second)
        if ports.mode.link_count > 1:
            yield f"{switch.display_name} runs {_ports(ports)} as {ports.mode.link_count} x {rate} at the same time."
        yield _of_link_up(nic, ports.mode.rate_bits_per_second, ports.cable)


def _of_link_up(nic: Nic, rate_bits_per_second: int, cable: Cable) -> str:
    rate = rate_in_words(rate_bits_per_second)
    return f"{nic.display_name} links up at {rate} with the cable bought: {cable.description}."


def _ports(ports: ServingPorts) -> str:
    return counted(ports.port_count, f"{ports.group.connector} port")


def _of_capacity(switch: Switch, fabric: Fabric) -> str:
    share = capacity_share_fraction(switch, fabric)
    if share is None:
        return f"{switch.display_name} forwards at full rate with all {fabric.fullest_link_count} links busy at once."
    capacity = rate_in_words(switch.switching_bits_per_second or 0)
    return (
        f"{switch.display_name} forwards at full rate with all links busy at once: {share * 100:.0f} % of {capacity},"
        " one direction."
    )


def _failed(nic: Nic, used: Sequence[ServingPorts], cables: Sequence[Cable]) -> Iterator[Cable]:
    for cable in cables:
        alike = any(
            cable.switch_connector == ports.group.connector
            and cable.link_count == ports.mode.link_count
            and cable.rate_bits_per_second == ports.mode.rate_bits_per_second
            for ports in used
        )
        if alike and nic.nic_id in cable.failed_nics:
            yield cable


def _about(pitfalls: Sequence[Pitfall], rate_bits_per_second: int) -> Iterator[str]:
    return (pitfall.text for pitfall in pitfalls if pitfall.concerns(rate_bits_per_second))


def _reasons(switch: Switch, nic: Nic, fabric: Fabric) -> Iterator[str]:
    rate = fabric.node_ports[0].mode.rate_bits_per_second
    total = fabric.node_link_count + fabric.free_link_count
    links = f"{fabric.node_link_count} of {total} node links at {rate_in_words(rate)} in use"
    if fabric.uplinks is None:
        yield f"One switch: {links}."
    else:
        uplinks = f"{fabric.uplinks.port_count} x {rate_in_words(fabric.uplinks.mode.rate_bits_per_second)}"
        leaf_count = len(fabric.nodes_of_leaves)
        if fabric.spine_count:
            spines = counted(fabric.spine_count, "spine")
            yield f"{leaf_count} leaves and {spines}: {links}, {uplinks} from each leaf."
        else:
            yield f"2 switches side by side: {links}, {uplinks} between them."
    worst = worst_case_bits_per_second(switch, nic, fabric)
    if worst < rate:
        yield f"When all nodes talk across it at once, each link keeps {rate_in_words(worst)}."
    if oversubscription_ratio(fabric) <= 1:
        yield "Nothing is oversubscribed."
    yield from of_host(nic, fabric.links_per_node, rate)
    price = switch.list_price_usd
    yield "No list price is known for the switch." if price is None else f"The switch lists at {price:,.0f} USD."
