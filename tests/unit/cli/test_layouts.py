"""`estimate layouts` and `estimate recommend`, and the options of a layout."""

import json
from pathlib import Path

import pytest

from tests.unit.architecture.configs import PUBLISHED
from tests.unit.cli.command import DECODE, PREFILL, TP, Command

LAYOUTS = [
    *("estimate", "layouts", "--model", "llama-3.1-70b", "--nodes", "8", "--link", "10g"),
    *("--prompt-tokens", "8k", "--requests", "32"),
]
RECOMMEND = [
    *("estimate", "recommend", "--model", "glm-5.3", "--nodes", "16", "--link", "100g", "--reference-link", "200g"),
    *("--prompt-tokens", "8192", "--baseline-tp", "8", "--baseline-ttft", "6.36"),
]
WITHIN = ["--ranks-per-node", "4", "--inner-link", "450GB/s"]


def test_layouts_have_the_keys_of_the_surface(linkbound: Command) -> None:
    answer = linkbound(*LAYOUTS, "--json").answer
    assert len(answer["layouts"]) == 4
    for one in answer["layouts"]:
        assert {"tensor_parallel_size", "pipeline_parallel_size", "sent_bytes_per_rank", "bubble_fraction"} <= set(one)
        assert {"network_seconds", "pass_seconds", "feasible", "reasons"} <= set(one)
        assert one["tensor_parallel_size"] * one["pipeline_parallel_size"] == 8
    chosen = [answer["layouts"][answer[choice]["index"]] for choice in ("single_stream", "batched")]
    assert [one["pipeline_parallel_size"] for one in chosen] == [1, 8]
    assert all(answer[choice]["reasons"] for choice in ("single_stream", "batched"))


def test_layouts_as_text(linkbound: Command) -> None:
    outcome = linkbound(*LAYOUTS)
    assert outcome.exit_code == 0
    assert outcome.out.startswith("one request alone: TP8; all requests in flight: PP8\n")
    assert "TP4 x PP2" in outcome.out


def test_layouts_of_a_mixture_spread_its_experts_too(linkbound: Command) -> None:
    answer = linkbound("estimate", "layouts", "--model", "glm-5.3", *LAYOUTS[4:], "--json").answer
    spread = {one["layout"]["expert_parallelism"] for one in answer["layouts"]}
    assert len(spread) == 4


def test_a_recommendation(linkbound: Command) -> None:
    answer = linkbound(*RECOMMEND, "--hardware", "", "--json").answer
    options = [(one["instance_count"], one["layout"]["tensor_parallel_size"]) for one in answer["options"]]
    assert options[:2] == [(2, 8), (1, 16)]
    losses = [round(one["extra_ttft_fraction"]["upper"] * 100) for one in answer["options"][:2]]
    assert losses == [17, 31]


def test_a_recommendation_as_text(linkbound: Command) -> None:
    outcome = linkbound(*RECOMMEND, "--hardware", "")
    assert outcome.out.startswith("2 x TP8: at most +1.11 s (+17.4 %)\n")


def test_nodes_that_stay_idle_are_counted(linkbound: Command) -> None:
    twelve = ["--nodes", "12"]
    assert linkbound(*RECOMMEND, *twelve).out.startswith("1 x TP8, 4 nodes idle: at most +1.11 s (+17.4 %)\n")
    best = linkbound(*RECOMMEND, *twelve, "--json").answer["options"][0]
    assert (best["instance_count"], best["idle_node_count"], best["feasible"]) == (1, 4, True)


def test_where_nothing_fits_it_says_why(linkbound: Command) -> None:
    out = linkbound(*RECOMMEND[:-4], "--nodes", "3").out
    assert out.startswith("no size of the model fits these nodes: TP2 comes closest: a rank needs 230.2 GB")
    assert "The smallest instance that holds the model is PP5, on 5 nodes." in out


FACTS = {
    "model_type": "strange",
    "hidden_size": 1024,
    "num_hidden_layers": 8,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "vocab_size": 32000,
}
"""A model of which nobody can say what it holds."""


def test_memory_that_is_not_known_is_not_said_to_be_enough(linkbound: Command, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(FACTS))
    of_facts = {
        "layouts": [*LAYOUTS[:3], str(path), *LAYOUTS[4:]],
        "recommend": [*RECOMMEND[:3], str(path), *RECOMMEND[4:-4]],
        "tp": [*TP[:3], str(path), *TP[4:], "--hardware", "dgx-spark"],
    }
    answers = {"layouts": "layouts", "recommend": "options", "tp": "projections"}
    for command, arguments in of_facts.items():
        rows = linkbound(*arguments, "--json").answer[answers[command]]
        not_known = [row for row in rows if row["reasons"] == ["no source states what a rank keeps in memory"]]
        assert not_known
        assert all("feasible" not in row for row in not_known)
        assert all(row["feasible"] is False for row in rows if row not in not_known)
        out = linkbound(*arguments).out
        assert "not known: no source states what a rank keeps in memory" in out
        assert " yes\n" not in out
    assert ", whether it fits is not known: " in linkbound(*of_facts["recommend"]).out.splitlines()[0]


@pytest.mark.parametrize("is_known", [False, True])
def test_a_layout_is_chosen_with_a_word_on_whether_it_fits(
    linkbound: Command, tmp_path: Path, *, is_known: bool
) -> None:
    path = tmp_path / "config.json"
    known = PUBLISHED["llama-2-7b"]["config"]
    path.write_text(json.dumps(known if is_known else {**known, "quantization_config": {"quant_method": "weirdo"}}))
    for arguments, choice_count in ((LAYOUTS, 2), (RECOMMEND[:-4], 1)):
        answer = linkbound(*arguments[:3], str(path), *arguments[4:])
        first, *_ = answer.out.splitlines()
        assert first.count(", whether it fits is not known") == (0 if is_known else choice_count)


@pytest.mark.parametrize("command", ["layouts", "recommend"])
def test_a_link_to_change_to_is_not_offered(linkbound: Command, command: str) -> None:
    offered = linkbound("estimate", command, "--help").out
    assert "--link LINK" in offered
    assert "--measured RATE" in offered
    assert "--to-" not in offered


def test_layouts_that_no_figure_tells_apart_are_named(linkbound: Command) -> None:
    arguments = [
        *("estimate", "layouts", "--model", "glm-5.3", "--nodes", "8", "--link", "200g"),
        *("--prompt-tokens", "8k", "--requests", "16", "--calibration", "dgx-spark-8-switch"),
    ]
    out = linkbound(*arguments).out
    assert out.splitlines()[0] == (
        "one request alone: TP8 (or TP8, experts by all-reduce); all requests in flight: TP2 x PP4 (or 3 others)"
    )
    assert "Which of TP2 x PP4 and TP4 x PP2; PP8 or DP8, experts by all-to-all is ahead" in out
    mixture = [
        *("estimate", "layouts", "--model", "mixtral-8x7b", "--nodes", "8", "--link", "200g"),
        *("--prompt-tokens", "8k", "--requests", "16", "--output-tokens", "2000"),
    ]
    assert linkbound(*mixture).out.splitlines()[0] == (
        "one request alone: TP8; all requests in flight: TP8 (or TP4 x PP2; TP8, experts by all-reduce)"
    )
    rows = {line.partition("  ")[0]: line for line in reversed(out.splitlines())}
    assert "  measured  " in rows["TP8"]
    assert "  left out  " in rows["TP4 x PP2"]
    assert "The calibration covers TP8 and TP8, experts by all-reduce alone" in out
    assert "  latency  " not in linkbound(*arguments[:-2]).out


def test_what_the_ranks_of_a_node_send_together_is_not_said_of_one(linkbound: Command) -> None:
    several = ["--ranks-per-node", "8", "--inner-link", "nvlink4"]
    prefill = linkbound(*PREFILL, "--pp", "2", *several).out
    assert "sent bytes, one node" in prefill
    assert "sent, one node" in prefill
    assert "sent bytes, one rank" not in prefill
    decode = linkbound(*DECODE, "--pp", "2", *several).out
    assert "sent bytes per pass, one node" in decode
    assert "traffic, one node" in decode
    layouts = linkbound(*LAYOUTS, *several).out
    assert "sent, one node" in layouts
    assert "a node sends" in layouts
    assert "sent for a prompt, one node" in linkbound(*RECOMMEND[:-4], *several).out
    for out in (linkbound(*PREFILL).out, linkbound(*DECODE).out, linkbound(*LAYOUTS).out):
        assert "one node" not in out


def test_a_calibrated_pass_shows_what_reads_and_transfers_take_together(linkbound: Command) -> None:
    calibrated = [*DECODE, "--to-link", "100g", "--calibration", "dgx-spark-8-switch"]
    lines = [" ".join(line.split()) for line in linkbound(*calibrated).out.splitlines()]
    assert "reads of a pass at least 10.30 ms" in lines
    assert "both, in turn about 31.24 ms; arithmetic and the engine come on top" in lines
    assert "extra pass time over the pass about +0.4 % (at most +1.4 %)" in lines
    answer = linkbound(*calibrated, "--json").answer
    assert answer["extra_pass_fraction"]["expected"] < answer["extra_pass_fraction"]["upper"]
    assert "expected" not in answer["pass_seconds"]
    assert "in turn" not in linkbound(*DECODE).out


def test_a_link_within_nodes_that_nothing_uses_is_named(linkbound: Command) -> None:
    for command in (PREFILL, DECODE, LAYOUTS, RECOMMEND):
        assert "The link within a node is not used" in linkbound(*command, "--inner-link", "nvlink4").out


def test_without_a_baseline_losses_are_times(linkbound: Command) -> None:
    answer = linkbound(*RECOMMEND[:-4], "--json").answer
    assert all("extra_ttft_fraction" not in one and "ttft_seconds" not in one for one in answer["options"])
    assert all("upper" in one["extra_ttft_seconds"] for one in answer["options"])


@pytest.mark.parametrize("command", [PREFILL, DECODE])
def test_the_options_of_a_layout_are_in_the_answer(linkbound: Command, command: list[str]) -> None:
    answer = linkbound(*command, "--pp", "2", *WITHIN, "--rank-links", "100g,150g", "--json").answer
    assert answer["layout"] == {
        "tensor_parallel_size": 8,
        "pipeline_parallel_size": 2,
        "data_parallel_size": 1,
        "expert_parallelism": "EXPERT_PARALLELISM_UNSPECIFIED",
        "sequence_parallel": False,
        "ranks_per_node": 4,
    }
    assert answer["inner_link"]["effective_bits_per_second"] == 3_600_000_000_000
    assert answer["link"]["effective_bits_per_second"] == 100_000_000_000
    assert {row["rank_group"] for row in answer["traffic"]} <= {"RANK_GROUP_TENSOR", "RANK_GROUP_PIPELINE"}
    assert all(row["inner_sent_bytes_per_rank"] for row in answer["traffic"] if "TENSOR" in row["rank_group"])


def test_attention_groups_and_sequence_parallelism(linkbound: Command) -> None:
    groups = linkbound(*PREFILL[:4], "--tp", "1", *PREFILL[6:], "--dp", "8", "--ep", "all-to-all", "--json").answer
    assert {row["kind"] for row in groups["traffic"]} == {"COLLECTIVE_KIND_ALL_TO_ALL"}
    in_sequence = linkbound(*PREFILL, "--sequence-parallel", "--json").answer
    assert in_sequence["all_reduce_count"] == 0
    assert in_sequence["sent_bytes_per_rank"] == linkbound(*PREFILL, "--json").answer["sent_bytes_per_rank"]


def test_a_pass_reads_its_cache_where_there_is_a_context(linkbound: Command) -> None:
    answer = linkbound(*DECODE, "--context", "8k", "--json").answer
    assert answer["cache_bytes_read_per_rank"] > 0
    assert "cache_bytes_read_per_rank" not in linkbound(*DECODE, "--json").answer


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ([*PREFILL, "--ranks-per-node", "4"], "--inner-link"),
        ([*PREFILL, "--pp", "0"], "--pp"),
        ([*PREFILL, "--ep", "all-to-all"], "--dp"),
        ([*DECODE, "--rank-links", "100g,fast"], "--rank-links"),
        ([*DECODE, "--context", "0"], "--context"),
        ([*LAYOUTS, "--to-link", "100g"], "--to-link"),
        ([*LAYOUTS, "--output-tokens", "0"], "--output-tokens"),
        ([*RECOMMEND[:-2]], "--baseline-ttft"),
        ([*RECOMMEND, "--nodes", "0"], "--nodes: 0"),
        ([*LAYOUTS, "--nodes", "4096", "--ranks-per-node", "17", "--inner-link", "400g"], "--nodes: 4096"),
        ([*LAYOUTS, "--ranks-per-node", "65"], "--ranks-per-node: 65"),
        ([*LAYOUTS, "--ranks-per-node", "2"], "--inner-link: is missing"),
        ([*LAYOUTS, "--prompt-tokens", "0"], "--prompt-tokens: 0"),
        ([*LAYOUTS, "--requests", "0"], "--requests: 0"),
        ([*LAYOUTS, "--max-num-batched-tokens", "0"], "--max-num-batched-tokens: 0"),
        ([*LAYOUTS, "--model", "m/"], "--model: "),
        ([*LAYOUTS, "--hardware", "b/"], "--hardware: "),
        ([*LAYOUTS, "--hardware", "dgx-sparc"], "--hardware: "),
        ([*RECOMMEND, "--calibration", "c/"], "--calibration: "),
    ],
)
def test_what_cannot_be_is_named(linkbound: Command, arguments: list[str], named: str) -> None:
    outcome = linkbound(*arguments)
    assert outcome.exit_code == 2
    assert named in outcome.err
