"""`estimate layouts` and `estimate recommend`, and the options of a layout."""

import pytest

from tests.unit.cli.command import DECODE, PREFILL, Command

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
        ([*RECOMMEND, "--nodes", "0"], "--nodes"),
    ],
)
def test_what_cannot_be_is_named(linkbound: Command, arguments: list[str], named: str) -> None:
    outcome = linkbound(*arguments)
    assert outcome.exit_code == 2
    assert named in outcome.err
