"""`estimate schedule` and `engine-calibrations`."""

from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from estimator_service.catalog.directory import SHIPPED_DIRECTORY
from linkbound import EngineRequest, EstimatorClient
from linkbound.convert.engine import scheduler_settings_to_proto
from linkbound.convert.json import message_to_json
from linkbound.domain.schedule import DEFAULT_SCHEDULER
from tests.unit.cli.command import Command

SCHEDULE = ["estimate", "schedule", "--prompts", "16384,16384", "--outputs", "1024,1024"]
SETTINGS = [
    *("--max-num-batched-tokens", "4096", "--long-prefill-token-threshold", "2048", "--max-num-seqs", "8"),
    *("--draft-tokens", "4", "--accepted", "1", "--engine", "vllm-0.32"),
]
SPARK = "glm-5.3-dgx-spark-8-200g"
CALIBRATED = ["--engine-calibration", SPARK, "--to-link", "109g"]
FILE = SHIPPED_DIRECTORY / "engine_calibrations" / f"{SPARK}.toml"


def line_of(out: str, start: str) -> str:
    (line,) = [line for line in out.splitlines() if line.startswith(start)]
    return line


def test_the_passes_of_two_prompts(linkbound: Command) -> None:
    """16,384 tokens alone take whole passes; together 2,048 each; beside one that generates, 2,048 again."""
    out = linkbound(*SCHEDULE, *SETTINGS, "--arrival-passes", "0,3").out
    assert out.splitlines()[0] == "2 requests in 523 passes: the last first token comes out of pass 10"
    assert line_of(out, "request 0").split(maxsplit=2)[2] == "##++"
    assert line_of(out, "request 1").removeprefix("request 1  ") == " ##++"
    assert "    0 to 2      3   4,096  0:4096" in out.splitlines()
    assert "   5 to 10      6   2,053  0:5 1:2048" in out.splitlines()


def test_the_passes_as_json(linkbound: Command) -> None:
    answer = linkbound(*SCHEDULE, *SETTINGS, "--arrival-passes", "0,3", "--json").answer
    assert list(answer)[:2] == ["passes", "requests"]
    assert answer["passes"][0] == {"scheduled": [{"request": 0, "tokens": 4096}], "repeat": 3}
    assert [(one["request"], one["first_token_pass"]) for one in answer["requests"]] == [(0, 4), (1, 10)]
    assert answer["pass_count"] == 523 == sum(one["repeat"] for one in answer["passes"])
    assert not any("ttft_seconds" in one or "ttft" in one for one in answer["requests"])
    assert answer["scheduler"]["max_num_seqs"] == 8


def test_one_output_is_that_of_every_prompt(linkbound: Command) -> None:
    both = linkbound(*SCHEDULE, *SETTINGS, "--json").answer
    assert linkbound(*SCHEDULE[:-1], "1024", *SETTINGS, "--json").answer == both
    assert linkbound(*SCHEDULE[:3], "16k,16k", *SCHEDULE[4:], *SETTINGS, "--json").answer == both


def test_a_model_and_a_link_bound_each_first_token(linkbound: Command) -> None:
    asked = [*SCHEDULE, *SETTINGS, "--model", "glm-5.3", "--tp", "8", "--link", "200g", "--to-link", "109g"]
    answer = linkbound(*asked, "--json").answer
    for one in answer["requests"]:
        assert one["ttft_seconds"] == one["ttft"]["ttft_seconds"]
        assert "expected" not in one["ttft_seconds"]
        assert one["ttft"]["extra_ttft_seconds"]["upper"] > 0
    assert all("network_seconds" in one for one in answer["passes"])
    out = linkbound(*asked).out
    assert "TTFT, bytes alone" in out
    assert "calibrated" not in out


def test_a_calibration_stands_beside_the_bytes(linkbound: Command) -> None:
    answer = linkbound(*SCHEDULE, *CALIBRATED, "--json").answer
    assert answer["scheduler"]["long_prefill_token_threshold"] == 2048
    for ttft in (answer["last_ttft"], answer["mean_ttft"], *(one["ttft"] for one in answer["requests"])):
        alone, calibrated = ttft["ttft_seconds"], ttft["calibrated_ttft_seconds"]
        assert alone["lower"] <= calibrated["lower"] <= calibrated["expected"] <= calibrated["upper"]
    for one in answer["requests"]:
        assert one["ttft_seconds"] == one["ttft"]["calibrated_ttft_seconds"]
    out = linkbound(*SCHEDULE, *CALIBRATED).out
    assert out.startswith("last TTFT about ")
    assert line_of(out, "request  prompt").split("  ")[-1].strip() == "calibrated"
    assert {line.split()[0] for line in out.splitlines() if line.startswith(("last  ", "mean  "))} == {"last", "mean"}


def test_settings_that_are_typed_go_before_those_of_the_calibration(linkbound: Command) -> None:
    answer = linkbound(*SCHEDULE, *CALIBRATED, "--max-num-seqs", "1", "--json").answer
    assert answer["scheduler"]["max_num_seqs"] == 1
    assert answer["scheduler"]["max_num_batched_tokens"] == 4096
    assert answer["passes"][0]["scheduled"] == [{"request": 0, "tokens": 2048}]


def test_arrivals_that_may_split_widen_intervals(linkbound: Command) -> None:
    def width(*more: str) -> float:
        estimate = linkbound(*SCHEDULE, *CALIBRATED, *more, "--json").answer["mean_ttft"]["calibrated_ttft_seconds"]
        return float(estimate["upper"] - estimate["lower"])

    assert width("--arrivals-may-split") > width()


def test_arrivals_by_time(linkbound: Command) -> None:
    answer = linkbound(*SCHEDULE, *CALIBRATED, "--arrivals", "0,500ms", "--json").answer
    first, second = answer["requests"]
    assert first["first_token_pass"] < second["first_token_pass"]


def test_long_lists_are_cut_and_say_so(linkbound: Command) -> None:
    prompts = ",".join(str(100 + index) for index in range(60))
    out = linkbound("estimate", "schedule", "--prompts", prompts, "--outputs", "5").out
    assert out.count("12 more requests: --json has all") == 2
    assert "0:1 1:1 2:1 3:1 4:1 5:1 and 54 more" in out


BAD: list[tuple[list[str], str]] = [
    ([*SCHEDULE[:-1], "1,2,3"], "--outputs: 3 values for 2 prompts"),
    ([*SCHEDULE, "--arrival-passes", "0"], "--arrival-passes: 1 value for 2 prompts"),
    ([*SCHEDULE, "--arrival-passes", "3,0"], "--arrival-passes: 0 is before that of the request before it, 3"),
    (
        [*SCHEDULE, *CALIBRATED, "--arrivals", "2s,1s"],
        "--arrivals: 1.0 s is before that of the request before it, 2.0 s",
    ),
    ([*SCHEDULE, "--arrivals", "0,1s"], "--arrivals: needs an engine calibration"),
    ([*SCHEDULE, "--arrivals", "0,soon"], "--arrivals: 'soon' is not a duration"),
    ([*SCHEDULE[:3], "0,5", *SCHEDULE[4:]], "--prompts: 0 is not a whole number"),
    ([*SCHEDULE[:3], "x", *SCHEDULE[4:]], "--prompts: 'x' is not"),
    ([*SCHEDULE, "--draft-tokens", "4"], "--accepted: is missing, with 4 draft tokens"),
    ([*SCHEDULE, "--engine", "vllm-9"], "--engine: 'vllm-9' is not an engine whose rules are known: vllm-0.33"),
    ([*SCHEDULE, "--kv-blocks", "100"], "--prompts: 16384 need 1024 blocks"),
    ([*SCHEDULE, "--max-model-len", "1000"], "--prompts: 16384 leave no room"),
    ([*SCHEDULE, "--model", "glm-5.3"], "--tp: is missing, with a model"),
    ([*SCHEDULE, "--model", "glm-5.4", "--tp", "8", "--link", "1g"], "--model: model 'glm-5.4' does not exist"),
    ([*SCHEDULE, "--link", "1g"], "--link: is given without a model"),
    ([*SCHEDULE, "--ranks-per-node", "2"], "--ranks-per-node: needs --tp"),
    ([*SCHEDULE, "--engine-calibration", "spark"], "--engine-calibration: engine calibration 'spark' does not exist"),
    ([*SCHEDULE, "--engine-calibration", SPARK, "--model", "qwen3-32b"], "--model: is not the model of the engine"),
    (["engine-calibrations", "show", "spark"], "ENGINE_CALIBRATION: engine calibration 'spark' does not exist"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD)
def test_bad_input_names_the_option(arguments: list[str], message: str, linkbound: Command) -> None:
    outcome = linkbound(*arguments)
    assert outcome.exit_code == 2
    assert message in outcome.err
    assert outcome.out == ""


def test_of_many_requests_that_are_refused_the_first_are_told(linkbound: Command) -> None:
    prompts = ",".join(str(1000 + index) for index in range(500))
    outcome = linkbound("estimate", "schedule", "--prompts", prompts, "--outputs", "1", "--max-model-len", "900")
    assert (outcome.exit_code, outcome.out) == (2, "")
    lines = outcome.err.splitlines()
    assert lines[0].startswith("linkbound: --prompts: 1000 leave no room")
    assert lines[-1] == "and 480 more"
    assert len(lines) == 21


def test_the_default_settings_are_those_of_every_client(linkbound: Command) -> None:
    """The answer tells the rules that were used, also where none were named."""
    scheduler = linkbound(*SCHEDULE, "--json").answer["scheduler"]
    requests = [EngineRequest(prompt_tokens=16384, output_tokens=1024)] * 2
    with EstimatorClient() as client:
        settings = client.estimate_schedule(requests).summary.scheduler
    assert settings == evolve(DEFAULT_SCHEDULER, engine="vllm-0.33")
    assert scheduler == message_to_json(scheduler_settings_to_proto(settings))
    assert linkbound(*SCHEDULE, "--max-num-seqs", "1", "--json").answer["scheduler"] == {**scheduler, "max_num_seqs": 1}


def test_ten_million_tokens(linkbound: Command) -> None:
    answer = linkbound("estimate", "schedule", "--prompts", "10000000", "--outputs", "10000000", "--json").answer
    assert len(answer["passes"]) < 10
    assert answer["requests"][0]["output_tokens"] == 10_000_000


def test_the_list_of_engine_calibrations(linkbound: Command) -> None:
    out = linkbound("engine-calibrations", "list").out
    assert line_of(out, SPARK).split()[1:5] == ["glm-5.3", "TP8", "200", "Gb/s"]
    names = [
        entry["name"] for entry in linkbound("engine-calibrations", "list", "--json").answer["engine_calibrations"]
    ]
    assert f"engineCalibrations/{SPARK}" in names


def test_an_engine_calibration_is_shown_with_all_that_it_stands_on(linkbound: Command) -> None:
    out = linkbound("engine-calibrations", "show", f"engineCalibrations/{SPARK}").out
    answer = linkbound("engine-calibrations", "show", SPARK, "--json").answer
    assert len(answer["terms"]) == 5
    assert line_of(out, "row  ")
    point = line_of(out, "P5").split()
    assert point[:6] == ["P5", "TTFT", "of", "place", "0", "55.47"]
    left_out = {one["label"]: one["left_out_error_ratio"] for one in answer["residuals"]}
    assert point[-2] == f"{100 * left_out['P5']:+.1f}"
    assert answer["assumptions"][0] in out
    assert answer["sources"][0] in out


def test_a_file_is_fitted_and_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, linkbound: Command) -> None:
    monkeypatch.setenv("LINKBOUND_DATA", str(tmp_path / "data"))
    fit = ["engine-calibrations", "fit", str(FILE)]
    assert "not stored" in linkbound(*fit).out
    answer: dict[str, Any] = linkbound(*fit, "--name", "mine", "--source", "a test", "--json").answer
    assert answer["name"] == "engineCalibrations/mine"
    assert answer["sources"][1:] == ["a test"]
    assert linkbound("engine-calibrations", "show", "mine", "--json").answer == answer
    other = linkbound(*fit, "--name", "mine")
    assert (other.exit_code, other.out) == (2, "")
    assert "engine calibration 'mine' exists with other content" in other.err
    assert linkbound(*SCHEDULE, "--engine-calibration", "mine").exit_code == 0


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"PK\x03\x04", b'{"a": 1}', b'model = "glm-5.3"\n'])
def test_a_file_of_something_else_is_refused(content: bytes, tmp_path: Path, linkbound: Command) -> None:
    path = tmp_path / "other"
    path.write_bytes(content)
    outcome = linkbound("engine-calibrations", "fit", str(path))
    assert (outcome.exit_code, outcome.out) == (2, "")
    assert outcome.err.startswith("linkbound: FILE: ")


RANGE_OF_P2 = "ttft_range_seconds = [{ least = 6.21, largest = 6.56 }]"


@pytest.mark.parametrize(
    ("good", "bad", "place"),
    [
        ('label = "P2"', "label = 2", "points[1].label: "),
        ('label = "P2"', 'label = ""', "points[1].label: "),
        ('label = "P2"', 'label = "P1"', "points[1].label: "),
        ('label = "P2"', 'lable = "P2"', "points[1].lable: "),
        (f"ttft_seconds = [6.36]\n{RANGE_OF_P2}", "ttft_seconds = [1e-6]", "points[1].ttft_seconds"),
        ("ttft_seconds = [6.36]", "ttft_seconds = [-1.0]", "points[1].ttft_seconds[0]: "),
        ("max_num_batched_tokens = 4096", "max_num_batched_tokens = 0", "scheduler.max_num_batched_tokens: "),
        ("[link]\nline_rate_bits_per_second = 200_", "[link]\nline_rate_bits_per_second = -200_", "link.line_rate"),
        ("message_bytes = ", "message_bytes = -", "bursts.points[0].message_bytes: "),
    ],
)
def test_what_is_wrong_in_a_file_is_told_by_its_place_in_the_file(
    good: str, bad: str, place: str, tmp_path: Path, linkbound: Command
) -> None:
    """Whoever finds it: who reads the file, who checks its numbers, or who fits them."""
    content = FILE.read_text("utf-8")
    assert good in content
    path = tmp_path / "broken.toml"
    path.write_text(content.replace(good, bad, 1), "utf-8")
    outcome = linkbound("engine-calibrations", "fit", str(path))
    assert (outcome.exit_code, outcome.out) == (2, "")
    first = outcome.err.splitlines()[0].removeprefix("linkbound: ")
    assert first.startswith(f"FILE: {place}"), outcome.err


def test_what_is_wrong_in_a_file_of_bursts_is_told_by_its_place(tmp_path: Path, linkbound: Command) -> None:
    path = tmp_path / "bursts.toml"
    path.write_text(
        "[link]\nline_rate_bits_per_second = 200_000_000_000\n[bursts]\npoints = ["
        "{ message_bytes = 1, least_bits_per_second = 9, largest_bits_per_second = 9 },"
        "{ message_bytes = 2, least_bits_per_second = 9, largest_bits_per_second = -9 }]\n"
    )
    asked = ["estimate", "schedule", "--prompts", "8k", *TO_BURSTS, str(path)]
    outcome = linkbound(*asked)
    assert (outcome.exit_code, outcome.out) == (2, "")
    assert outcome.err.startswith("linkbound: --to-bursts: bursts.points[1].largest_bits_per_second: -9 is not")


TO_BURSTS = [*("--outputs", "1k", "--engine-calibration", SPARK), "--to-bursts"]
SLOWER = "glm-5.3-dgx-spark-8-109g"


@pytest.mark.parametrize(("prompt", "extra"), [("8k", (0.73, 0.85, 0.98)), ("64k", (5.82, 6.82, 7.83))])
def test_bursts_of_another_calibration_give_the_rows_of_the_first_study(
    linkbound: Command, prompt: str, extra: tuple[float, ...]
) -> None:
    """Source: docs/accuracy.md, The first study: P2 and P5. The link comes with the bursts, or is typed."""
    asked = ["estimate", "schedule", "--prompts", prompt, *TO_BURSTS]
    answer = linkbound(*asked, SLOWER, "--json").answer
    found = answer["requests"][0]["ttft"]["calibrated_extra_ttft_seconds"]
    assert tuple(round(found[end], 2) for end in ("lower", "expected", "upper")) == extra
    link = ["--to-link", "200g", "--to-measured", "109g"]
    by_path = [*asked, str(FILE.with_name(f"{SLOWER}.toml"))]
    for same in ([*asked, SLOWER, *link], by_path):
        again = linkbound(*same, "--json").answer
        assert again["requests"] == answer["requests"]


def test_bursts_that_are_not_there_are_refused(linkbound: Command, tmp_path: Path) -> None:
    asked = ["estimate", "schedule", "--prompts", "8k", *TO_BURSTS]
    link = "[link]\nline_rate_bits_per_second = 200_000_000_000\n"
    bare, alone = tmp_path / "bare.toml", tmp_path / "alone.toml"
    bare.write_text(link)
    point = "message_bytes = 1, least_bits_per_second = 9, largest_bits_per_second = 9"
    alone.write_text(f"[bursts]\npoints = [{{ {point} }}]\n")
    for typed, message in (
        ("nowhere", "--to-bursts: "),
        (str(tmp_path / "nowhere.toml"), "--to-bursts: No such file"),
        (str(bare), "--to-bursts: bursts: is missing"),
        (str(alone), "--to-bursts: are given without a link to change to"),
    ):
        outcome = linkbound(*asked, typed)
        assert (outcome.exit_code, message in outcome.err) == (2, True), outcome.err
    stored = tmp_path / "data"
    kept = [line for line in FILE.read_text().splitlines() if "message_bytes" not in line]
    text = "\n".join(kept)
    start, end = text.index("[bursts]"), text.index("[scheduler]")
    (tmp_path / "none.toml").write_text(text[:start] + text[end:])
    linkbound("engine-calibrations", "fit", str(tmp_path / "none.toml"), "--name", "none", "--data", str(stored))
    outcome = linkbound(*asked, "none", "--data", str(stored))
    assert (outcome.exit_code, "has no bursts" in outcome.err) == (2, True), outcome.err
