"""Bills of materials: the study's table, what stands around it, and what is refused."""

from __future__ import annotations

import attrs
import pytest

from estimator_service.core.sizing.cluster import size_cluster
from estimator_service.core.sizing.ports import node_cable
from estimator_service.service import default_estimator
from linkbound.domain.errors import NotFoundError
from linkbound.domain.sizing import ClusterSizing, SizeClusterRequest, SizeOption
from tests.unit.estimator.network import CATALOG, GIGABIT, parts_of, shipped_parts, small_switch


def sized(
    node_count: int,
    gigabits: int,
    *switches: str,
    nic: str = "dgx-spark",
    ratio: float | None = None,
    links_per_node: int | None = None,
) -> ClusterSizing:
    request = SizeClusterRequest(
        node_count=node_count,
        rate_bits_per_second=gigabits * GIGABIT,
        oversubscription_ratio=ratio,
        links_per_node=links_per_node,
    )
    return size_cluster(request, shipped_parts(*switches, nic=nic))


def only(answer: ClusterSizing) -> SizeOption:
    (option,) = answer.options
    return option


# Study 1, 2.3: nodes on one switch.
@pytest.mark.parametrize(
    ("switch", "gigabits", "largest", "cables"),
    [("crs812", 200, 6, 4), ("crs812", 100, 8, 2), ("crs804", 200, 8, 4), ("crs804", 100, 16, 4)],
)
def test_the_study_s_table(switch: str, gigabits: int, largest: int, cables: int) -> None:
    option = only(sized(largest, gigabits, switch))
    assert (option.switch_count, option.leaf_switch_count, option.spine_switch_count) == (1, 1, 0)
    assert (option.node_ports_used, option.node_ports_free) == (largest, 0)
    assert sum(line.count for line in option.cables) == cables
    assert option.oversubscription_ratio == 1
    assert option.worst_case_bits_per_second == gigabits * GIGABIT
    more = sized(largest + 1, gigabits, switch)
    assert all(option.switch_count > 1 for option in more.options)


def test_four_nodes_at_200_take_the_two_400g_ports_of_a_crs812() -> None:
    option = only(sized(4, 200, "crs812"))
    assert [(line.count, line.links_per_cable) for line in option.cables] == [(2, 2)]
    assert option.node_ports_free == 2


def test_the_share_of_the_switching_capacity() -> None:
    assert only(sized(8, 200, "crs804")).capacity_share_fraction == 1
    assert only(sized(16, 100, "crs804")).capacity_share_fraction == 1
    assert only(sized(8, 100, "crs812")).capacity_share_fraction == 0.5


def test_a_price_where_every_part_has_one() -> None:
    option = only(sized(8, 200, "crs804"))
    # One switch at 1,295 USD and four breakout cables at 138.
    assert option.list_price_usd == 1295 + 4 * 138
    assert only(sized(16, 100, "crs804")).list_price_usd is None


def test_a_cable_that_did_not_link_up_is_named_and_not_bought() -> None:
    option = only(sized(8, 100, "crs812"))
    assert all("FS QDD" not in line.description for line in option.cables)
    assert any("FS QDD-400G-4QPC015" in sentence for sentence in option.verify)
    elsewhere = only(sized(8, 200, "crs804"))
    assert not any("FS QDD" in sentence for sentence in elsewhere.verify)


def test_pitfalls_are_those_of_the_rate() -> None:
    assert any("autonegotiation off" in sentence for sentence in only(sized(4, 200, "crs804")).verify)
    assert not any("autonegotiation off" in sentence for sentence in only(sized(4, 100, "crs804")).verify)


@pytest.mark.parametrize(("gigabits", "switch"), [(10, "crs312"), (1, "sn2201")])
def test_the_copper_port_of_a_spark_has_no_rdma_to_verify(gigabits: int, switch: str) -> None:
    verify = " ".join(only(sized(8, gigabits, switch)).verify)
    assert f"DGX Spark links up at {gigabits} Gb/s with the cable bought: twisted pair" in verify
    assert not any(word in verify for word in ("ConnectX", "RoCE", "ib_write_bw"))


def test_one_port_is_not_called_ports() -> None:
    assert "runs 1 QSFP56-DD port as 4 x 100 Gb/s" in "\n".join(only(sized(4, 100, "crs804")).verify)


def test_what_to_verify_covers_breakout_link_up_and_capacity() -> None:
    verify = " ".join(only(sized(16, 100, "crs804")).verify)
    assert "runs 4 QSFP56-DD ports as 4 x 100 Gb/s" in verify
    assert "links up at 100 Gb/s with the cable bought" in verify
    assert "forwards at full rate with all links busy at once: 100 % of 1600 Gb/s" in verify
    assert len(set(only(sized(16, 100, "crs804")).verify)) == len(only(sized(16, 100, "crs804")).verify)


def test_more_nodes_than_one_switch_takes_leaves_and_spines() -> None:
    option = only(sized(16, 200, "crs804"))
    # Two ports of a leaf carry four nodes at 200, two go to one spine each.
    assert (option.switch_count, option.leaf_switch_count, option.spine_switch_count) == (6, 4, 2)
    counts = {line.links_per_cable: line.count for line in option.cables}
    assert counts == {2: 8, 1: 8}
    assert option.oversubscription_ratio == 1
    assert any("evenly over the links between switches" in sentence for sentence in option.verify)
    assert not sized(17, 200, "crs804").options


def test_oversubscription_joins_two_switches_side_by_side_and_says_what_a_link_keeps() -> None:
    option = only(sized(12, 200, "crs804", ratio=3))
    assert (option.switch_count, option.leaf_switch_count, option.spine_switch_count) == (2, 2, 0)
    assert option.oversubscription_ratio == 3
    assert option.worst_case_bits_per_second == 200 * GIGABIT // 3
    assert sum(line.count for line in option.cables if line.links_per_cable == 1) == 1
    assert any("66.6667 Gb/s" in sentence for sentence in option.reasons)


def test_an_uplink_is_never_slower_than_a_link_of_a_node() -> None:
    """A CRS812 has eight ports of 50 Gb/s, which would hold one flow of a 200 Gb/s node at 50."""
    answer = sized(7, 200, "crs812")
    assert answer.options == ()
    (refusal,) = answer.refused
    assert refusal.endswith("connects at most 6 nodes at 200 Gb/s, leaves and spines included; 7 are asked for.")


def test_uplinks_may_be_other_ports_than_those_of_nodes() -> None:
    option = only(sized(96, 1, "sn2201"))
    assert (option.leaf_switch_count, option.spine_switch_count) == (2, 0)
    # 48 nodes at 1 Gb/s over one uplink of 100.
    assert option.oversubscription_ratio == pytest.approx(0.48)
    assert [line.count for line in option.cables] == [96, 1]


def test_the_best_option_has_fewest_switches_then_a_price_then_spare_links() -> None:
    assert [option.switch for option in sized(8, 100).options][:2] == ["crs804", "crs812"]
    options = sized(16, 200).options
    assert [option.switch_count for option in options] == sorted(option.switch_count for option in options)
    without_price = [option.node_ports_free for option in options if option.switch_count == 1]
    assert without_price == sorted(without_price)


def test_ports_may_be_faster_than_the_rate_asked_for() -> None:
    option = only(sized(32, 100, "sn3700"))
    assert option.worst_case_bits_per_second == 200 * GIGABIT
    assert sized(2, 10, "crs804").options[1].worst_case_bits_per_second == 10 * GIGABIT


def test_a_rate_that_the_adapter_has_not_is_one_refusal() -> None:
    answer = sized(8, 400)
    assert answer.options == ()
    assert answer.refused == ("DGX Spark runs a link at no more than 200 Gb/s; 400 Gb/s are asked for.",)
    assert {option.switch for option in sized(8, 400, nic="generic").options} == {"crs804", "sn5400", "sn5600"}


def test_two_links_of_a_spark_carry_no_more_than_one() -> None:
    option = only(sized(4, 200, "crs804", links_per_node=2))
    assert (option.node_ports_used, option.switch_count) == (8, 1)
    assert option.worst_case_bits_per_second == 100 * GIGABIT
    assert any("no more than 200 Gb/s over all its links" in reason for reason in option.reasons)
    assert not sized(4, 200, "crs804", links_per_node=3).options


def test_all_links_of_a_node_are_on_one_leaf() -> None:
    (option,) = size_cluster(
        SizeClusterRequest(node_count=5, rate_bits_per_second=200 * GIGABIT, links_per_node=3),
        parts_of(small_switch(6)),
    ).options
    # Three ports of a leaf carry six links, so two nodes; three go to three spines. Nodes: 2, 2 and 1.
    assert (option.leaf_switch_count, option.spine_switch_count) == (3, 3)
    assert (option.node_ports_used, option.oversubscription_ratio) == (15, 1)
    # Two links in a cable: 3, 3 and 2 of them.
    assert sorted(line.count for line in option.cables) == [8, 9]


# The study's own pair: "2 nodes, QSFP direct".
@pytest.mark.parametrize(("gigabits", "links", "kept"), [(200, 1, 200), (100, 1, 100), (200, 2, 100), (10, 1, 10)])
def test_two_nodes_are_joined_by_a_cable_for_each_link_first(gigabits: int, links: int, kept: int) -> None:
    first, *others = sized(2, gigabits, links_per_node=links if links > 1 else None).options
    assert (first.switch, first.switch_count, first.node_ports_used, first.node_ports_free) == ("", 0, 0, 0)
    (line,) = first.cables
    assert (line.count, line.links_per_cable) == (links, 1)
    assert first.worst_case_bits_per_second == kept * GIGABIT
    assert "Two nodes need no switch" in first.reasons[0]
    assert first.verify
    assert all(option.switch and option.switch_count for option in others)


def test_the_cable_between_two_sparks_is_the_one_that_is_listed_for_them() -> None:
    (line,) = sized(2, 200).options[0].cables
    assert line.description.startswith("Amphenol NJAAKK-N911")


def test_no_direct_cable_where_none_fits_or_a_switch_is_named() -> None:
    assert sized(2, 400).options == ()
    assert all(option.switch for option in sized(3, 200).options)
    named = SizeClusterRequest(node_count=2, rate_bits_per_second=200 * GIGABIT, switch="crs804")
    answer = size_cluster(named, shipped_parts("crs804"))
    assert [option.switch for option in answer.options] == ["crs804"]
    assert any("need no switch" in sentence for sentence in answer.assumptions)


def test_a_cable_that_did_not_link_up_joins_no_two_nodes() -> None:
    parts = shipped_parts()
    failed = tuple(attrs.evolve(cable, failed_nics=(parts.nic.nic_id,)) for cable in parts.cables)
    request = SizeClusterRequest(node_count=2, rate_bits_per_second=200 * GIGABIT)
    assert size_cluster(request, attrs.evolve(parts, cables=failed)).options == ()


def test_one_node_needs_nothing() -> None:
    option = only(sized(1, 200))
    assert (option.switch, option.switch_count, option.cables, option.list_price_usd) == ("", 0, (), 0)
    assert "One node" in option.reasons[0]


def test_rings_without_a_switch_are_said_to_be_left_out() -> None:
    told = [count for count in range(1, 9) if any("Rings" in said for said in sized(count, 200).assumptions)]
    assert told == [3, 4]


def test_switches_with_ports_of_the_rate_come_before_faster_ones() -> None:
    assert sized(9, 1).options[0].switch == "sn2201"
    rates = [option.worst_case_bits_per_second for option in sized(9, 100).options if option.switch_count == 1]
    assert rates == sorted(rates)


def test_nodes_at_10_gigabit_get_a_switch_of_10_gigabit() -> None:
    """A Spark takes 10 Gb/s by its RJ45 port; switches of 100 Gb/s would do, and come after."""
    twelve, more = sized(12, 10).options[0], sized(13, 10).options[0]
    assert (twelve.switch, twelve.node_ports_free, twelve.worst_case_bits_per_second) == ("crs312", 0, 10 * GIGABIT)
    assert [line.description for line in twelve.cables] == ["twisted pair, Cat 6A, 10GBASE-T"]
    assert (more.switch, more.switch_count) == ("xs748t", 1)


def test_an_option_says_why_it_stands_before_the_next_one() -> None:
    order = [(option.switch, option.reasons[-1]) for option in sized(9, 10).options]
    assert order[0][1] == "It comes before NETGEAR XS748T, with no known price either and more free links: 35."
    assert order[1][1] == (
        "It comes before MikroTik CRS804-4DDQ, whose links are further from the rate asked for: 100 Gb/s."
    )
    assert order[2][1] == "It comes before NVIDIA SN3700C, for which no list price is known."
    assert order[-2][1] == "It comes before MikroTik CRS812-8DS-2DQ-2DDQ, of which it takes 6 switches."
    assert "It comes before" not in order[-1][1]
    assert sized(8, 100).options[0].reasons[-1] == (
        "It comes before MikroTik CRS812-8DS-2DQ-2DDQ, with the same price but fewer free links: 0."
    )


def test_the_cheaper_of_two_says_what_the_other_one_lists_at() -> None:
    cheap, dear = (
        attrs.evolve(small_switch(4), switch_id=name, display_name=name, list_price_usd=price)
        for name, price in (("b", 900.0), ("a", 1200.0))
    )
    request = SizeClusterRequest(node_count=8, rate_bits_per_second=200 * GIGABIT)
    first, second = size_cluster(request, attrs.evolve(parts_of(dear), switches=(dear, cheap))).options
    assert (first.switch, first.reasons[-1]) == ("b", "It comes before a, which lists at 1,200 USD.")
    assert second.reasons[-1] == "The switch lists at 1,200 USD."


@pytest.mark.parametrize(("node_count", "gigabits", "ratio"), [(45, 10, 10), (9, 25, 4)])
def test_links_that_are_faster_than_asked_say_how_many_times(node_count: int, gigabits: int, ratio: int) -> None:
    first = sized(node_count, gigabits).options[0]
    assert f"Its links run at 100 Gb/s, {ratio} times the rate asked for." in first.reasons
    assert not any("times the rate" in reason for reason in sized(9, 100).options[0].reasons)


def test_a_switch_without_a_known_capacity_says_so() -> None:
    (option,) = size_cluster(
        SizeClusterRequest(node_count=8, rate_bits_per_second=200 * GIGABIT), parts_of(small_switch(4))
    ).options
    assert option.capacity_share_fraction is None
    assert any("with all 8 links busy" in sentence for sentence in option.verify)


def test_too_little_capacity_slows_every_link() -> None:
    switch = attrs.evolve(small_switch(4), switching_bits_per_second=800 * GIGABIT)
    (option,) = size_cluster(
        SizeClusterRequest(node_count=8, rate_bits_per_second=200 * GIGABIT), parts_of(switch)
    ).options
    assert option.capacity_share_fraction == 2
    assert option.worst_case_bits_per_second == 100 * GIGABIT


def test_the_catalogue_loads_and_names_its_sources() -> None:
    assert {
        "crs312",
        "crs804",
        "crs812",
        "xs748t",
        "sn2201",
        "sn3700",
        "sn3700c",
        "sn4600c",
        "sn5400",
        "sn5600",
    } <= set(CATALOG.switches.ids)
    parts = shipped_parts()
    nics = tuple(map(CATALOG.nics.get, CATALOG.nics.ids))
    assert all(switch.sources for switch in parts.switches)
    assert all(cable.sources for cable in parts.cables)
    assert all(nic.sources for nic in nics)
    assert {nic.nic_id for nic in nics} == {"dgx-spark", "generic"}


def test_every_capacity_is_the_sum_of_the_data_ports() -> None:
    for switch in shipped_parts().switches:
        ports = sum(
            group.port_count * max(mode.link_count * mode.rate_bits_per_second for mode in group.modes)
            for group in switch.port_groups
            # The 10 Gb/s ports of the CRS8xx are for management; those of the others are their data ports.
            if group.connector != "RJ45" or not switch.switch_id.startswith("crs8")
        )
        assert switch.switching_bits_per_second == ports


def test_every_port_of_the_catalogue_has_a_cable() -> None:
    parts = shipped_parts(nic="generic")
    for switch in parts.switches:
        for group in switch.port_groups:
            for mode in group.modes:
                assert node_cable(group, mode, parts.nic, parts.cables, 1) is not None, (switch.switch_id, group, mode)


def test_published_facts_of_the_switches() -> None:
    ports = {
        switch.switch_id: {group.connector: group.port_count for group in switch.port_groups}
        for switch in shipped_parts().switches
    }
    assert ports["crs804"] == {"QSFP56-DD": 4, "RJ45": 2}
    assert ports["crs812"] == {"QSFP56-DD": 2, "QSFP56": 2, "SFP56": 8, "RJ45": 2}
    assert ports["crs312"] == {"RJ45": 12}
    assert ports["xs748t"] == {"RJ45": 44}
    assert ports["sn2201"] == {"RJ45": 48, "QSFP28": 4}
    assert ports["sn5600"] == {"OSFP": 64}
    (group,) = CATALOG.switches.get("sn5400").port_groups
    assert {mode.rate_bits_per_second // GIGABIT: mode.link_count * group.port_count for mode in group.modes} == {
        400: 64,
        200: 128,
        100: 256,
    }


def test_names_that_do_not_exist_have_near_ones() -> None:
    estimator = default_estimator()
    request = SizeClusterRequest(node_count=8, rate_bits_per_second=100 * GIGABIT)
    with pytest.raises(NotFoundError) as caught:
        estimator.size_cluster(attrs.evolve(request, switch="crs840"))
    assert caught.value.reason == "SWITCH_NOT_FOUND"
    assert "crs804" in caught.value.near_names
    with pytest.raises(NotFoundError) as caught:
        estimator.size_cluster(attrs.evolve(request, nic="dgx-sparc"))
    assert (caught.value.reason, caught.value.near_names) == ("NIC_NOT_FOUND", ("dgx-spark",))
