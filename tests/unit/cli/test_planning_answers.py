"""`size`, `estimate target`, `plan check` and `links`: readable and as JSON, with good and with bad input."""

from typing import Any

import pytest

from linkbound.domain.link_presets import LINK_PRESETS
from tests.unit.cli.command import PREFILL, Command

SIZE = ["size", "--nodes", "8", "--rate", "100g"]
TARGET = [
    *("estimate", "target", "--model", "glm-5.3", "--tp", "8", "--prompt-tokens", "32k", "--target-ttft", "30"),
    *("--baseline-ttft", "27.02", "--link", "200g"),
]
PLAN = [
    *("plan", "check", "--model", "glm-5.3", "--nodes", "16", "--link", "100g", "--reference-link", "200g"),
    *("--tp", "8", "--prompt-tokens", "32k", "--target-ttft", "30", "--baseline-ttft", "27.02"),
    *("--switch", "crs804", "--counter-interval", "1ms"),
]
OPTION_KEYS = {
    *("switch", "switch_count", "cables", "node_ports_used", "node_ports_free", "oversubscription_ratio", "verify"),
    *("display_name", "leaf_switch_count", "spine_switch_count", "worst_case_bits_per_second", "reasons", "sources"),
}


def test_size_lists_options_best_first(linkbound: Command) -> None:
    answer = linkbound(*SIZE, "--json").answer
    options = answer["options"]
    assert [option["switch"] for option in options][:2] == ["switches/crs804", "switches/crs812"]
    assert all(set(option) >= OPTION_KEYS for option in options)
    assert [option["switch_count"] for option in options] == sorted(option["switch_count"] for option in options)
    assert options[0]["node_ports_used"] == 8
    assert options[0]["cables"][0]["count"] == 2
    assert "list_price_usd" not in options[0]["cables"][0]


@pytest.mark.parametrize(
    ("nodes", "rate", "switch", "free"),
    [("4", "200g", "crs812", 2), ("8", "100g", "crs812", 0), ("8", "200g", "crs804", 0), ("16", "100g", "crs804", 0)],
)
def test_the_study_s_switches(nodes: str, rate: str, switch: str, free: int, linkbound: Command) -> None:
    (option,) = linkbound("size", "--nodes", nodes, "--rate", rate, "--switch", switch, "--json").answer["options"]
    assert (option["switch_count"], option["node_ports_used"], option["node_ports_free"]) == (1, int(nodes), free)


def test_a_named_link_stands_for_its_line_rate(linkbound: Command) -> None:
    by_name = linkbound("size", "--nodes", "8", "--rate", "spark-1f", "--json").answer
    assert by_name == linkbound("size", "--nodes", "8", "--rate", "200g", "--json").answer


def test_size_for_people(linkbound: Command) -> None:
    outcome = linkbound(*SIZE)
    assert outcome.out.splitlines()[0].startswith("1 x MikroTik CRS804-4DDQ and 2 cables (breakout DAC")
    assert "verify by hand" in outcome.out
    nothing = linkbound("size", "--nodes", "8", "--rate", "400g")
    assert nothing.exit_code == 0
    assert nothing.out.splitlines()[0] == "no switch connects 8 nodes at this rate"


def test_target(linkbound: Command) -> None:
    answer = linkbound(*TARGET, "--json").answer
    interval = answer["slowest_bits_per_second"]
    assert round(interval["lower"] / 1e9, 1) == 29.5
    assert round(interval["upper"] / 1e9, 1) == 119.5
    verdicts = {entry["preset"]: entry["verdict"] for entry in answer["presets"]}
    assert verdicts["spark-1f"] == "VERDICT_MAYBE"
    assert verdicts["spark-2f"] == "VERDICT_YES"
    assert verdicts["10gbe-tcp"] == "VERDICT_NO"


@pytest.mark.parametrize(
    ("arguments", "first_line"),
    [
        (TARGET, "a TTFT of 30.00 s is kept from 119.52 Gb/s on, and cannot be kept below 29.5 Gb/s"),
        (TARGET[:10], "a TTFT of 30.00 s needs at least 29.5 Gb/s, and no rate is known to be enough"),
        (
            [*TARGET[:9], "25", *TARGET[10:]],
            "a TTFT of 25.00 s needs at least 367.97 Gb/s, and no rate is known to be enough",
        ),
        ([*TARGET[:9], "20", *TARGET[10:]], "no link keeps a TTFT of 20.00 s"),
        (
            ["estimate", "target", "--model", "glm-5.3", "--tp", "1", *TARGET[6:]],
            "every link keeps a TTFT of 30.00 s",
        ),
        (
            ["estimate", "target", "--model", "glm-5.3", "--tp", "1", *TARGET[6:10]],
            "every link is fast enough for a TTFT of 30.00 s: nothing is sent between nodes",
        ),
    ],
)
def test_the_target_s_answer_comes_first(arguments: list[str], first_line: str, linkbound: Command) -> None:
    assert linkbound(*arguments).out.splitlines()[0] == first_line


@pytest.mark.parametrize(
    ("options", "first_line"),
    [
        (["--pp", "2"], "a TTFT of 30.00 s is kept from"),
        (["--ranks-per-node", "8", "--inner-link", "nvlink4"], "every link keeps a TTFT of 30.00 s"),
    ],
)
def test_a_target_of_other_layouts(options: list[str], first_line: str, linkbound: Command) -> None:
    assert linkbound(*TARGET, *options).out.startswith(first_line)


def test_a_target_with_shared_experts_sends_otherwise(linkbound: Command) -> None:
    spread = ["--dp", "8", "--ep", "all-to-all"]
    alone, other = (
        linkbound(*TARGET[:5], size, *TARGET[6:10], *options, "--json").answer
        for size, options in (("8", []), ("1", spread))
    )
    assert alone["slowest_bits_per_second"]["lower"] != other["slowest_bits_per_second"]["lower"]
    assert any("dispatched" in sentence for sentence in other["assumptions"])


def test_a_target_of_several_ranks_in_a_node_needs_the_link_between_them(linkbound: Command) -> None:
    outcome = linkbound(*TARGET, "--ranks-per-node", "4")
    assert outcome.exit_code == 2
    assert "--inner-link" in outcome.err


def test_plan(linkbound: Command) -> None:
    items = linkbound(*PLAN, "--json").answer["items"]
    topics = [item["topic"] for item in items]
    assert topics[:6] == [
        "tensor_parallel_size",
        "prompt_length",
        "ttft_target",
        "link_loss",
        "link_up",
        "counters",
    ]
    assert topics[6:] == ["memory", "switch_capacity"]
    assert {item["status"] for item in items} <= {
        "PLAN_STATUS_OK",
        "PLAN_STATUS_CONCERN",
        "PLAN_STATUS_MISSING",
        "PLAN_STATUS_VERIFY_BY_HAND",
    }
    readable = linkbound(*PLAN).out
    assert "[concern] Is there a TTFT target for long prompts?" in readable
    assert "30.00 s; over 100 Gb/s TTFT is 27.02 s to 31.45 s" in readable


def test_two_nodes_need_a_cable_and_one_needs_nothing(linkbound: Command) -> None:
    pair = linkbound("size", "--nodes", "2", "--rate", "200g")
    assert pair.out.splitlines()[0].startswith("no switch, 1 cable (Amphenol")
    option = linkbound("size", "--nodes", "2", "--rate", "200g", "--json").answer["options"][0]
    assert (option["switch"], option["switch_count"]) == ("", 0)
    alone = linkbound("size", "--nodes", "1", "--rate", "200g").out
    assert alone.splitlines()[0] == "no switch and no cable: there is one node"
    assert "One node has no other to connect to" in alone


@pytest.mark.parametrize(("nodes", "words"), [("2", "Two nodes need no switch"), ("1", "One node has no other")])
def test_a_plan_of_nodes_without_a_switch(nodes: str, words: str, linkbound: Command) -> None:
    items = linkbound("plan", "check", "--nodes", nodes, "--link", "200g", "--json").answer["items"]
    (switch,) = [item for item in items if item["topic"] == "switch_capacity"]
    assert switch["status"] == "PLAN_STATUS_OK"
    assert words in switch["answers"][0]


@pytest.mark.parametrize(
    ("command", "option", "mark"),
    [
        (("plan", "check"), "--link", "[required]"),
        (("estimate", "prefill"), "--link", "[required]"),
        (("estimate", "tp"), "--to-link", "[required]"),
        (("estimate", "recommend"), "--reference-link", "[required]"),
        (("estimate", "sweep"), "--link", "[required without --link-rates]"),
    ],
)
def test_help_marks_the_links_that_are_required(
    command: tuple[str, ...], option: str, mark: str, linkbound: Command
) -> None:
    text = " ".join(linkbound(*command, "--help").out.split())
    of_option = text.partition(f" {option} LINK ")[2].partition(" --")[0]
    assert mark in (of_option if "without" not in mark else text)


def test_a_plan_of_almost_nothing(linkbound: Command) -> None:
    outcome = linkbound("plan", "check", "--nodes", "4", "--link", "spark-1f")
    assert outcome.exit_code == 0
    assert outcome.out.splitlines()[0] == "7 missing, 1 verify by hand"


def test_links(linkbound: Command) -> None:
    entries = linkbound("links", "--json").answer["links"]
    assert [entry["name"] for entry in entries] == [preset.name for preset in LINK_PRESETS]
    spark: dict[str, Any] = next(entry for entry in entries if entry["name"] == "spark-1f")
    assert spark["link"]["effective_bits_per_second"] == 109_000_000_000
    assert spark["link"]["rate_source"] == "RATE_SOURCE_MEASURED"
    assert spark["source"]
    readable = linkbound("links").out
    assert all(preset.name in readable for preset in LINK_PRESETS)


def with_link(*options: str) -> list[str]:
    return [*PREFILL[:-1], *options]


def test_a_name_stands_where_a_rate_does(linkbound: Command) -> None:
    link = linkbound(*with_link("spark-2f", "--to-link", "spark-1f"), "--json").answer
    assert link["link"]["rate_source"] == "RATE_SOURCE_WIRE_EFFICIENCY"
    assert link["to_link"]["effective_bits_per_second"] == 109_000_000_000


def test_what_refines_a_name_is_used(linkbound: Command) -> None:
    link = linkbound(*with_link("spark-2f", "--roce-mtu", "4096"), "--json").answer["link"]
    assert round(link["effective_bits_per_second"] / 1e9, 1) == 196.1
    assert link["roce_mtu_bytes"] == 4096


@pytest.mark.parametrize(
    ("options", "transport", "mtus"),
    [
        (("100g", "--ethernet-mtu", "9000"), "LINK_TRANSPORT_TCP", (0, 9000)),
        (("100g", "--transport", "tcp"), "LINK_TRANSPORT_TCP", (0, 1500)),
        (("100g", "--transport", "infiniband"), "LINK_TRANSPORT_INFINIBAND", (4096, 0)),
        (("100g", "--transport", "fabric"), "LINK_TRANSPORT_FABRIC", (0, 0)),
        (("100gbe", "--transport", "RoCE"), "LINK_TRANSPORT_ROCE", (1024, 0)),
        (("spark-1f", "--ethernet-mtu", "9000"), "LINK_TRANSPORT_TCP", (0, 9000)),
    ],
)
def test_transports(options: tuple[str, ...], transport: str, mtus: tuple[int, int], linkbound: Command) -> None:
    link = linkbound(*with_link(*options), "--json").answer["link"]
    assert link["link"]["transport"] == transport
    assert (link["roce_mtu_bytes"], link["ethernet_mtu_bytes"]) == mtus


def test_sockets_do_not_keep_what_was_measured_with_rdma(linkbound: Command) -> None:
    link = linkbound(*with_link("spark-1f", "--transport", "tcp"), "--json").answer["link"]
    assert "measured_bits_per_second" not in link["link"]
    assert link["rate_source"] == "RATE_SOURCE_PCIE"


def test_a_bare_rate_is_as_before(linkbound: Command) -> None:
    link = linkbound(*with_link("200g"), "--json").answer["link"]
    assert link["link"] == {"line_rate_bits_per_second": 200_000_000_000, "transport": "LINK_TRANSPORT_UNSPECIFIED"}
    assert (link["effective_bits_per_second"], link["roce_mtu_bytes"]) == (200_000_000_000, 1024)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["size", "--rate", "100g"], "--nodes: is missing"),
        (["size", "--nodes", "0", "--rate", "100g"], "--nodes: 0 is not a whole number from 1 to 4096"),
        (["size", "--nodes", "8", "--rate", "100m"], "--rate: 100 Mb/s is not a rate from 1 Gb/s to 1 Tb/s"),
        (["size", "--nodes", "8", "--rate", "nvlink4"], "--rate: 3.6 Tb/s is not a rate from 1 Gb/s to 1 Tb/s"),
        (["size", "--nodes", "8", "--rate", "fast"], "--rate: 'fast' is not a rate such as 200g"),
        ([*SIZE, "--switch", "crs840"], "--switch: switch 'crs840' does not exist; did you mean crs804"),
        ([*SIZE, "--nic", "DGX Spark"], "--nic: nic 'DGX Spark' does not exist; did you mean dgx-spark"),
        ([*SIZE, "--oversubscription", "0.5"], "--oversubscription: 0.5 is not a number from 1 to 16"),
        ([*SIZE, "--links-per-node", "99"], "--links-per-node: 99 is not a whole number from 1 to 16"),
        (TARGET[:8], "--target-ttft: is missing"),
        ([*TARGET[:-2]], "--link: is missing"),
        ([*TARGET[:10], *TARGET[12:]], "--baseline-ttft: is missing"),
        ([*TARGET, "--tp", "7"], "--tp: glm-5.3 cannot be cut over 7 ranks"),
        ([*TARGET, "--baseline-ttft", "1"], "--baseline-ttft: 1.0 s is below"),
        (["plan", "check", "--nodes", "4"], "--link: is missing"),
        (["plan", "check", "--link", "100g"], "--nodes: is missing"),
        ([*PLAN, "--model", "glm53"], "--model: model 'glm53' does not exist; did you mean glm-5.3"),
        ([*PLAN, "--hardware", "dgx-sparc"], "--hardware: hardware 'dgx-sparc' does not exist"),
        ([*PLAN, "--reference-roce-mtu", "1500"], "--reference-roce-mtu: 1500 is not one of 256"),
        (with_link("sparc-1f"), "--link: 'sparc-1f' is not a rate such as 200g"),
        (with_link("100g", "--transport", "udp"), "--transport: 'udp' is not one of roce, tcp, infiniband, fabric"),
        (with_link("100g", "--ethernet-mtu", "100"), "--ethernet-mtu: 100 is not a whole number from 576 to 16384"),
        (with_link("nvlink4", "--roce-mtu", "1024"), "--roce-mtu: 1024 is of RoCE or InfiniBand"),
        (
            with_link("100g", "--ethernet-mtu", "1500", "--transport", "roce"),
            "--ethernet-mtu: 1500 is of TCP sockets; the link is RoCE",
        ),
        ([*PREFILL, "--to-ethernet-mtu", "9000"], "--to-ethernet-mtu: needs --to-link"),
    ],
)
def test_bad_input(arguments: list[str], message: str, linkbound: Command) -> None:
    outcome = linkbound(*arguments)
    assert outcome.exit_code == 2
    assert outcome.out == ""
    assert message in outcome.err
    assert "Traceback" not in outcome.err


@pytest.mark.parametrize(("given", "missing"), [("--link", "--baseline-ttft"), ("--baseline-ttft", "--link")])
def test_half_a_baseline_is_told_by_the_options(linkbound: Command, given: str, missing: str) -> None:
    value = {"--link": "10g", "--baseline-ttft": "6s"}[given]
    target = ("estimate", "target", "--model", "glm-5.3", "--tp", "8", "--prompt-tokens", "8k", "--target-ttft", "9s")
    refused = linkbound(*target, given, value)
    assert refused.exit_code == 2
    assert refused.err.startswith(f"linkbound: {missing}: is missing; ")
    assert "_" not in refused.err
