"""Without --json the first line is the answer."""

import pytest

from tests.unit.cli.command import DECODE, MEMORY, PREFILL, TP, TRAINING, Command

ON_SPARK = "a pass takes at least 10.30 ms on dgx-spark memory"
FASTER_TP = [*TP[:-6], "--link", "100g", "--to-link", "200g", "--tp-sizes", "2,8"]
TP_FROM_ONE = [
    *("estimate", "tp", "--model", "glm-5.3", "--prompt-tokens", "8192", "--baseline-tp", "1"),
    *("--baseline-ttft", "6.36", "--link", "200g", "--to-link", "100g", "--tp-sizes", "1,2"),
]
ON_TP8 = "prompt tokens of glm-5.3 on TP8"


@pytest.mark.parametrize(
    ("arguments", "first_line"),
    [
        (
            [*PREFILL, "--to-link", "109g", "--baseline-ttft", "6.36"],
            f"at most +0.92 s (+14.5 %) until the first token: 8,192 {ON_TP8}, 200 Gb/s to 109 Gb/s",
        ),
        (
            [*PREFILL, "--requests", "4", "--to-link", "109g"],
            f"at most +3.69 s until the last first token: 4 x 8,192 {ON_TP8}, 200 Gb/s to 109 Gb/s",
        ),
        (
            [*PREFILL[:-1], "109g", "--to-link", "200g"],
            f"up to 0.92 s less until the first token: 8,192 {ON_TP8}, 109 Gb/s to 200 Gb/s",
        ),
        (
            [*PREFILL[:-1], "109g", "--to-link", "200g", "--baseline-ttft", "7.24"],
            f"up to 0.92 s (12.8 %) less until the first token: 8,192 {ON_TP8}, 109 Gb/s to 200 Gb/s",
        ),
        (
            [*PREFILL, "--to-link", "200g"],
            f"no change until the first token: 8,192 {ON_TP8}, 200 Gb/s to 200 Gb/s",
        ),
        (
            PREFILL,
            "at least 1.11 s of network time, 27.66 GB sent per rank: 8,192 prompt tokens of glm-5.3 on TP8, 200 Gb/s",
        ),
        (
            [*DECODE, "--draft-tokens", "4", "--to-link", "100g"],
            f"at most +0.729 ms (+7.1 %) per pass, and {ON_SPARK}: 1 x glm-5.3 on TP8, 200 Gb/s to 100 Gb/s",
        ),
        (
            [*DECODE[:-1], "100g", "--draft-tokens", "4", "--to-link", "200g"],
            f"up to 0.729 ms (7.1 %) less per pass, and {ON_SPARK}: 1 x glm-5.3 on TP8, 100 Gb/s to 200 Gb/s",
        ),
        (DECODE, f"{ON_SPARK}: 1 x glm-5.3 on TP8, 200 Gb/s"),
        ([*DECODE, "--hardware", ""], "a pass takes at least 145.89 us: 1 x glm-5.3 on TP8, 200 Gb/s"),
        (TP, "TTFT: at most +2.9 % at TP2, at most +8.3 % at TP4, at most +17.4 % at TP8, at most +31.1 % at TP16"),
        (FASTER_TP, "TTFT: up to 3.5 % less at TP2, up to 17.4 % less at TP8"),
        (TP_FROM_ONE, "TTFT: no change at TP1, at most +16.6 % at TP2"),
        ([*TP[:-1], "3,8,128"], "TTFT: at most +17.4 % at TP8; TP3, TP128 cannot be run"),
        ([*TP[:-1], "3,5"], "TTFT: no projection, TP3, TP5 cannot be run"),
        (
            [*PREFILL, "--ranks-per-node", "8", "--pp", "2", "--inner-link", "nvlink4"],
            f"at least 61.85 ms of network time, 201.33 MB sent per node: 8,192 {ON_TP8} x PP2, 200 Gb/s",
        ),
        (TRAINING, "a step takes 19.36 s to 21.65 s on 4 nodes"),
        (MEMORY, "fits: 17.11 GB to spare on the fullest rank"),
        (["models", "show", "glm-5.3"], "GLM-5.3 (NVFP4): 157 all-reduces per pass, hidden size 6,144"),
    ],
)
def test_the_answer_comes_first(arguments: list[str], first_line: str, linkbound: Command) -> None:
    outcome = linkbound(*arguments)
    assert (outcome.exit_code, outcome.err) == (0, "")
    assert outcome.out.splitlines()[0] == first_line


@pytest.mark.parametrize("command", [PREFILL, DECODE, TP, TRAINING])
def test_it_says_which_rate_was_used_or_what_is_left_out(command: list[str], linkbound: Command) -> None:
    lines = linkbound(*command).out.splitlines()
    assert any(line.startswith("left out  ") for line in lines)
    assert command is TP or any(line.startswith("link  ") and "given rate" in line for line in lines)


@pytest.mark.parametrize(
    ("named", "bare"),
    [
        (["models", "show", "models/glm-5.3"], ["models", "show", "glm-5.3"]),
        ([*PREFILL, "--model", "models/glm-5.3"], PREFILL),
        ([*DECODE, "--model", "models/glm-5.3", "--hardware", "hardware/dgx-spark"], DECODE),
        ([*TP, "--model", "models/glm-5.3"], TP),
    ],
)
def test_a_resource_name_is_as_good_as_an_id(named: list[str], bare: list[str], linkbound: Command) -> None:
    assert linkbound(*named) == linkbound(*bare)


def test_decode_names_the_hardware(linkbound: Command) -> None:
    lines = [" ".join(line.split()) for line in linkbound(*DECODE).out.splitlines()]
    assert "hardware dgx-spark" in lines
    assert "pass at least 10.30 ms on dgx-spark memory" in lines


def test_columns_tell_a_change_in_its_direction(linkbound: Command) -> None:
    rows = [line.split("  ") for line in linkbound(*FASTER_TP).out.splitlines()]
    (row,) = [[cell.strip() for cell in row if cell] for row in rows if row[0] == " 8"]
    assert row[5:7] == ["up to 1.11 s less", "up to 17.4 % less"]
    outcome = linkbound(*PREFILL[:7], "1k,8k", "--link", "109g", "--to-link", "200g", "--baseline-ttft", "7.24")
    assert any(line.endswith("up to 0.92 s less  up to 12.8 % less") for line in outcome.out.splitlines())


def test_a_size_that_sends_nothing_has_no_bytes_ratio(linkbound: Command) -> None:
    outcome = linkbound(*TP_FROM_ONE)
    assert (outcome.exit_code, outcome.err) == (0, "")
    rows = [line.split() for line in outcome.out.splitlines()]
    assert ["1", "0", "B", "-", "1.00", "6.36", "s", "no", "change", "no", "change", "yes"] in rows


def test_several_prompt_sizes_are_one_table(linkbound: Command) -> None:
    outcome = linkbound(*PREFILL[:7], "1k,8k,64k", *PREFILL[8:], "--to-link", "109g")
    rows = [line.split() for line in outcome.out.splitlines()]
    assert ["8,192", "27.66", "GB", "1.11", "s", "at", "most", "+0.92", "s"] in rows
    assert outcome.out.startswith("at most +7.39 s until the first token: glm-5.3 on TP8, up to 65,536 prompt tokens")


def test_the_list_of_models_is_a_table(linkbound: Command) -> None:
    lines = linkbound("models", "list").out.splitlines()
    (row,) = [line for line in lines if line.startswith("glm-5.3 ")]
    assert row.split()[-6:] == ["6,144", "157", "743.38", "B", "40.00", "B"]


def test_help_and_version(linkbound: Command) -> None:
    from linkbound import __version__

    assert linkbound("--version").out == f"linkbound, version {__version__}\n"
    help_text = linkbound("--help").out
    for name in ("estimate", "models", "demo", "serve", "health", "runs", "compare"):
        assert f"  {name} " in help_text


def test_the_help_of_serve_lists_the_environment(linkbound: Command) -> None:
    help_text = linkbound("serve", "--help").out
    assert "LINKBOUND_SERVER_TOKEN_FILE" in help_text
    assert "LINKBOUND_INGEST_PORT" in help_text
