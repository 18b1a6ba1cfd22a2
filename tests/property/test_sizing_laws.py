"""Laws of sizing: enough ports, no more than the ratio, monotone, and no fewer switches by an exhaustive search."""

from __future__ import annotations

import math
from itertools import product

import attrs
from hypothesis import assume, given
from hypothesis import strategies as st

from estimator_service.core.sizing.cluster import size_cluster
from estimator_service.core.sizing.fabric import smallest_fabric
from estimator_service.core.sizing.ports import link_total, node_ports, node_rates, uplink_ports, used_ports
from linkbound.domain.network_parts import NetworkParts, PortGroup, PortMode, Switch
from linkbound.domain.sizing import SizeClusterRequest, SizeOption
from tests.unit.estimator.network import GIGABIT, SOURCES, parts_of, shipped_parts, small_switch

SHIPPED = shipped_parts(nic="generic")
RATIOS = st.sampled_from([1.0, 1.5, 2.0, 3.0, 16.0])
NODE_COUNTS = st.integers(1, 4096)
RATES = st.sampled_from([1, 10, 25, 50, 100, 150, 200, 400, 800])
CLOSE = 1 + 1e-12


@st.composite
def groups(draw: st.DrawFn, name: str) -> PortGroup:
    gigabits = draw(st.sampled_from([100, 200, 400, 800]))
    splits = draw(st.sets(st.sampled_from([2, 4]), max_size=2))
    modes = tuple(
        PortMode(link_count=count, rate_bits_per_second=gigabits * GIGABIT // count) for count in (1, *sorted(splits))
    )
    return PortGroup(connector=name, port_count=draw(st.integers(1, 12)), modes=modes)


@st.composite
def switches(draw: st.DrawFn) -> Switch:
    first, second = draw(groups("A")), draw(groups("B"))
    return Switch(
        switch_id="drawn",
        display_name="Drawn",
        port_groups=(first, second) if draw(st.booleans()) else (first,),
        switching_bits_per_second=draw(st.none() | st.integers(10**11, 10**14)),
        list_price_usd=draw(st.none() | st.floats(1, 1e5)),
        sources=SOURCES,
    )


PARTS = switches().map(parts_of)


def options(
    parts: NetworkParts, node_count: int, gigabits: int, ratio: float = 1.0, links_per_node: int = 1
) -> tuple[SizeOption, ...]:
    request = SizeClusterRequest(
        node_count=node_count,
        rate_bits_per_second=gigabits * GIGABIT,
        oversubscription_ratio=ratio,
        links_per_node=links_per_node,
    )
    return size_cluster(request, parts).options


def fewest_switches(parts: NetworkParts, node_count: int, gigabits: int, ratio: float = 1.0) -> float:
    found = options(parts, node_count, gigabits, ratio)
    return min((option.switch_count for option in found), default=math.inf)


@given(parts=PARTS | st.just(SHIPPED), node_count=NODE_COUNTS, gigabits=RATES, ratio=RATIOS, links=st.integers(1, 4))
def test_there_are_cables_for_every_link(
    parts: NetworkParts, node_count: int, gigabits: int, ratio: float, links: int
) -> None:
    by_id = {switch.switch_id: switch for switch in parts.switches}
    for option in options(parts, node_count, gigabits, ratio, links):
        if not option.switch:
            assert sum(line.count for line in option.cables) == (0 if node_count == 1 else links)
            assert node_count <= 2
            continue
        ports = sum(group.port_count for group in by_id[option.switch].port_groups)
        assert option.node_ports_used == node_count * links
        assert option.node_ports_free >= 0
        assert sum(line.count for line in option.cables) <= ports * option.switch_count
        assert sum(line.count * line.links_per_cable for line in option.cables) >= option.node_ports_used


@given(switch=switches(), node_count=NODE_COUNTS, ratio=RATIOS, links=st.integers(1, 4))
def test_no_port_of_a_leaf_or_of_a_spine_is_used_twice(
    switch: Switch, node_count: int, ratio: float, links: int
) -> None:
    parts = parts_of(switch)
    for rate in node_rates(switch, parts.nic, parts.cables, 1, links):
        for_nodes = node_ports(switch, parts.nic, parts.cables, rate, links)
        for_switches = uplink_ports(switch, parts.cables)
        fabric = smallest_fabric(for_nodes, for_switches, node_count, links, ratio)
        if fabric is None:
            continue
        assert sum(fabric.nodes_of_leaves) == node_count
        assert max(fabric.nodes_of_leaves) - min(fabric.nodes_of_leaves) <= 1
        taken = {
            id(ports.group): ports.port_count for ports in used_ports(fabric.node_ports, fabric.fullest_link_count)
        }
        assert link_total(used_ports(fabric.node_ports, fabric.fullest_link_count)) >= fabric.fullest_link_count
        if fabric.uplinks is not None:
            group = fabric.uplinks.group
            taken[id(group)] = taken.get(id(group), 0) + fabric.uplinks.port_count
            assert fabric.uplinks.mode.rate_bits_per_second >= rate
            if fabric.spine_count:
                assert fabric.uplinks.port_count % fabric.spine_count == 0
                assert len(fabric.nodes_of_leaves) * fabric.uplinks.port_count <= fabric.spine_count * group.port_count
        assert all(taken.get(id(group), 0) <= group.port_count for group in switch.port_groups)


@given(parts=PARTS | st.just(SHIPPED), node_count=NODE_COUNTS, gigabits=RATES, ratio=RATIOS)
def test_nothing_is_oversubscribed_beyond_the_ratio(
    parts: NetworkParts, node_count: int, gigabits: int, ratio: float
) -> None:
    for option in options(parts, node_count, gigabits, ratio):
        if node_count == 1:
            assert option.worst_case_bits_per_second == 0
            continue
        assert 0 < option.oversubscription_ratio <= ratio * CLOSE
        share = option.capacity_share_fraction or 0.0
        contention = max(1.0, option.oversubscription_ratio, share)
        assert option.worst_case_bits_per_second * contention >= gigabits * GIGABIT * (1 - 1e-9) - contention
        if option.leaf_switch_count == 1:
            assert (option.oversubscription_ratio, option.spine_switch_count) == (1, 0)
        assert option.switch_count == option.leaf_switch_count + option.spine_switch_count


@given(PARTS | st.just(SHIPPED), st.integers(1, 4095), RATES, RATIOS)
def test_more_nodes_never_need_fewer_switches(
    parts: NetworkParts, node_count: int, gigabits: int, ratio: float
) -> None:
    assert fewest_switches(parts, node_count, gigabits, ratio) <= fewest_switches(
        parts, node_count + 1, gigabits, ratio
    )


@given(PARTS | st.just(SHIPPED), NODE_COUNTS, RATES, RATES, RATIOS)
def test_a_faster_link_never_needs_fewer_switches(
    parts: NetworkParts, node_count: int, first: int, second: int, ratio: float
) -> None:
    slow, fast = sorted((first, second))
    assert fewest_switches(parts, node_count, slow, ratio) <= fewest_switches(parts, node_count, fast, ratio)


@given(PARTS | st.just(SHIPPED), NODE_COUNTS, RATES, RATIOS, RATIOS)
def test_more_oversubscription_never_needs_more_switches(
    parts: NetworkParts, node_count: int, gigabits: int, first: float, second: float
) -> None:
    strict, loose = sorted((first, second))
    assert fewest_switches(parts, node_count, gigabits, loose) <= fewest_switches(parts, node_count, gigabits, strict)


@given(switches(), NODE_COUNTS, RATES, RATIOS)
def test_the_order_of_port_groups_does_not_matter(switch: Switch, node_count: int, gigabits: int, ratio: float) -> None:
    turned = attrs.evolve(switch, port_groups=switch.port_groups[::-1])
    first, second = (options(parts_of(entry), node_count, gigabits, ratio) for entry in (switch, turned))
    assert [option.switch_count for option in first] == [option.switch_count for option in second]
    assert [option.node_ports_used for option in first] == [option.node_ports_used for option in second]


@given(st.permutations(SHIPPED.switches), NODE_COUNTS, RATES)
def test_the_order_of_switches_does_not_matter(order: list[Switch], node_count: int, gigabits: int) -> None:
    shuffled = attrs.evolve(SHIPPED, switches=tuple(order))
    assert options(shuffled, node_count, gigabits) == options(SHIPPED, node_count, gigabits)


def exhaustive(port_count: int, node_count: int, ratio: float) -> float:
    """Fewest switches of `port_count` ports of 400 Gb/s, each two links for nodes at 200, by trying every fabric.

    Written from what a fabric is: every leaf has the same number of links to every spine, no port is used twice.
    """
    if node_count <= 2:
        return 0
    if node_count <= 2 * port_count:
        return 1
    best = math.inf
    for leaves, spines, width in product(range(2, node_count + 1), range(port_count + 1), range(1, port_count + 1)):
        uplinks = width if spines == 0 else spines * width
        if (spines == 0) != (leaves == 2) or uplinks >= port_count:
            continue
        if spines and leaves * width > port_count:
            continue
        fullest = -(-node_count // leaves)
        fits = fullest <= 2 * (port_count - uplinks) and fullest * 200 <= ratio * uplinks * 400
        if fits:
            best = min(best, leaves + spines)
    return best


@given(st.integers(1, 8), st.integers(1, 40), st.sampled_from([1.0, 2.0, 3.0]))
def test_an_exhaustive_search_finds_nothing_smaller(port_count: int, node_count: int, ratio: float) -> None:
    parts = parts_of(small_switch(port_count))
    assert fewest_switches(parts, node_count, 200, ratio) == exhaustive(port_count, node_count, ratio)


@given(st.integers(2, 12), RATIOS)
def test_a_refusal_names_the_largest_cluster(port_count: int, ratio: float) -> None:
    parts = parts_of(small_switch(port_count))
    request = SizeClusterRequest(node_count=4096, rate_bits_per_second=200 * GIGABIT, oversubscription_ratio=ratio)
    (refusal,) = size_cluster(request, parts).refused
    largest = int(refusal.split(" at most ")[1].split()[0])
    assume(largest < 4096)
    assert fewest_switches(parts, largest, 200, ratio) < math.inf
    assert fewest_switches(parts, largest + 1, 200, ratio) == math.inf
