"""How many switches of one kind join a number of nodes: one, two side by side, or leaves and spines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import evolve, frozen

from estimator_service.core.elementwise import ceil_quotient
from estimator_service.core.sizing.ports import ServingPorts, link_total


@frozen(kw_only=True)
class Fabric:
    """Leaves that nodes connect to, and the spines that join them; no spine for one leaf, and for two side by side.

    `node_ports` and `uplinks` are those of one leaf, all of them; `nodes_of_leaves` are as even as they can be.
    """

    node_ports: tuple[ServingPorts, ...]
    uplinks: ServingPorts | None
    nodes_of_leaves: tuple[int, ...]
    spine_count: int
    links_per_node: int

    @property
    def switch_count(self) -> int:
        """Switches in all."""
        return len(self.nodes_of_leaves) + self.spine_count

    @property
    def fullest_link_count(self) -> int:
        """Node-facing links in use on the fullest leaf."""
        return self.nodes_of_leaves[0] * self.links_per_node

    @property
    def node_link_count(self) -> int:
        """Node-facing links in use on all leaves."""
        return sum(self.nodes_of_leaves) * self.links_per_node

    @property
    def free_link_count(self) -> int:
        """Node-facing links of the same rate that stay free on all leaves."""
        return len(self.nodes_of_leaves) * link_total(self.node_ports) - self.node_link_count

    @property
    def switch_link_count(self) -> int:
        """Links between switches: those of two leaves side by side are counted once."""
        if self.uplinks is None:
            return 0
        ends = len(self.nodes_of_leaves) * self.uplinks.port_count
        return ends if self.spine_count else ends // 2


def oversubscription_ratio(fabric: Fabric) -> float:
    """Rate of node links over rate of uplinks, fullest leaf: n r / (U u); 1 without (`docs/formulas.md`, Sizing)."""
    if fabric.uplinks is None:
        return 1.0
    node_rate = fabric.node_ports[0].mode.rate_bits_per_second
    uplink_rate = fabric.uplinks.mode.rate_bits_per_second
    return fabric.fullest_link_count * node_rate / (fabric.uplinks.port_count * uplink_rate)


def smallest_fabric(
    node_ports: Sequence[ServingPorts],
    uplink_ports: Sequence[ServingPorts],
    node_count: int,
    links_per_node: int,
    largest_ratio: float,
) -> Fabric | None:
    """The fabric of fewest switches, then fewest links between them; None where two tiers are not enough.

    (`docs/formulas.md`, Sizing)
    """
    if node_count <= link_total(node_ports) // links_per_node:
        return Fabric(
            node_ports=tuple(node_ports),
            uplinks=None,
            nodes_of_leaves=(node_count,),
            spine_count=0,
            links_per_node=links_per_node,
        )
    candidates = _fabrics(node_ports, uplink_ports, node_count, links_per_node, largest_ratio)
    return min(candidates, key=lambda fabric: (fabric.switch_count, fabric.switch_link_count), default=None)


def largest_node_count(
    node_ports: Sequence[ServingPorts],
    uplink_ports: Sequence[ServingPorts],
    links_per_node: int,
    largest_ratio: float,
) -> int:
    """Nodes that one, two or two tiers of switches connect: max over U of P c(U), 2 c(U) and c(0).

    P are the ports of a spine, U the uplinks of a leaf, c(U) its nodes (`docs/formulas.md`, Sizing).
    """
    sizes = [link_total(node_ports) // links_per_node]
    for leaf in _leaves(node_ports, uplink_ports, links_per_node, largest_ratio):
        spine_port_count = next(p.port_count for p in uplink_ports if p.group is leaf.uplinks.group)
        sizes.append(leaf.node_count * max(2, spine_port_count))
    return max(sizes)


@frozen(kw_only=True)
class _Leaf:
    """A leaf with `uplinks`: what is left for nodes, and how many of them the ports and the ratio allow."""

    node_ports: tuple[ServingPorts, ...]
    uplinks: ServingPorts
    node_count: int


def _leaves(
    node_ports: Sequence[ServingPorts],
    uplink_ports: Sequence[ServingPorts],
    links_per_node: int,
    largest_ratio: float,
) -> Iterator[_Leaf]:
    """Every way to give some ports of one leaf to uplinks that are no slower than the links of nodes."""
    for candidates in uplink_ports:
        for count in range(1, candidates.port_count + 1):
            rest = tuple(_without(node_ports, candidates, count))
            if not rest:
                continue
            node_rate = rest[0].mode.rate_bits_per_second
            if candidates.mode.rate_bits_per_second < node_rate:
                # One flow takes one link: a slower one would hold it below the rate of its node.
                continue
            by_ratio = int(largest_ratio * count * candidates.mode.rate_bits_per_second // node_rate)
            node_count = min(link_total(rest), by_ratio) // links_per_node
            if node_count:
                yield _Leaf(node_ports=rest, uplinks=evolve(candidates, port_count=count), node_count=node_count)


def _without(ports: Sequence[ServingPorts], taken: ServingPorts, count: int) -> Iterator[ServingPorts]:
    for group in ports:
        left = group.port_count - count if group.group is taken.group else group.port_count
        if left > 0:
            yield evolve(group, port_count=left)


def _fabrics(
    node_ports: Sequence[ServingPorts],
    uplink_ports: Sequence[ServingPorts],
    node_count: int,
    links_per_node: int,
    largest_ratio: float,
) -> Iterator[Fabric]:
    for leaf in _leaves(node_ports, uplink_ports, links_per_node, largest_ratio):
        leaf_count = max(2, ceil_quotient(node_count, leaf.node_count))
        if leaf_count > node_count:
            continue
        spine_port_count = next(p.port_count for p in uplink_ports if p.group is leaf.uplinks.group)
        spine_count = _spine_count(leaf_count, leaf.uplinks.port_count, spine_port_count)
        if spine_count is not None:
            yield Fabric(
                node_ports=leaf.node_ports,
                uplinks=leaf.uplinks,
                nodes_of_leaves=_evenly(node_count, leaf_count),
                spine_count=spine_count,
                links_per_node=links_per_node,
            )


def _spine_count(leaf_count: int, uplink_count: int, spine_port_count: int) -> int | None:
    """Fewest spines that every leaf reaches with equally many uplinks: U / k for the largest k with k x leaves <= P."""
    if leaf_count == 2:
        return 0
    widths = (k for k in range(spine_port_count // leaf_count, 0, -1) if uplink_count % k == 0)
    width = next(widths, None)
    return None if width is None else uplink_count // width


def _evenly(node_count: int, leaf_count: int) -> tuple[int, ...]:
    each, more = divmod(node_count, leaf_count)
    return (each + 1,) * more + (each,) * (leaf_count - more)
