"""`engine-calibrations fit --run`: the requests of a stored run, fitted."""

from pathlib import Path

import pytest

from linkbound import IngestClient
from linkbound.client.local.blocking import STORE_FILE_NAME
from tests.golden.engine_tables import measured_engine
from tests.golden.recorded_requests import recorded_requests
from tests.new_store import laid
from tests.unit.cli.command import SETTINGS, Command

pytestmark = pytest.mark.storage

FIT = ("engine-calibrations", "fit")
SCHEDULER = ("--max-num-batched-tokens", "4096", "--long-prefill-token-threshold", "2048", "--max-num-seqs", "8")


@pytest.fixture
def linkbound(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """The command over a data folder of its own, with the recording as a run without settings, and its config."""
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LINKBOUND_DATA", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    Path("config.json").write_text(measured_engine("engine_recording.toml").seen.model_config_json, "utf-8")
    laid(tmp_path / STORE_FILE_NAME)
    with IngestClient("local:", data_directory=tmp_path) as ingest:
        ingest.create_run("lab")
        ingest.append("lab", writer_id="bench", sequence_number=1, records=recorded_requests())
    return Command(capsys)


def test_a_run_is_fitted_stored_and_predicts(linkbound: Command) -> None:
    engine = ("--model", "./config.json", "--tp", "2", "--measured", "383m", *SCHEDULER)
    answer = linkbound(*FIT, "--run", "runs/lab", *engine, "--name", "lab-400m", "--json").answer
    assert answer["name"] == "engineCalibrations/lab-400m"
    assert [point["label"] for point in answer["table"]["points"]] == ["L1", "L2", "L3", "L4"]
    shown = linkbound("engine-calibrations", "show", "lab-400m").out
    assert "runs/lab, created " in shown
    assert "given: model, layout, link, scheduler; settings of the run: none" in shown
    asked = ("--prompts", "8192", "--outputs", "64", "--engine-calibration", "lab-400m", "--to-link", "191m")
    (request,) = linkbound("estimate", "schedule", *asked, "--json").answer["requests"]
    assert request["ttft_seconds"]["expected"] == pytest.approx(23.716471, rel=0.04)


def test_subjects_are_points_and_the_rest_is_left(linkbound: Command) -> None:
    engine = ("--model", "./config.json", "--tp", "2", "--link", "383m", *SCHEDULER)
    answer = linkbound(*FIT, "--run", "lab", *engine, "--subject", "L2", "--subject", "L3", "--json").answer
    assert [point["label"] for point in answer["table"]["points"]] == ["L2", "L3"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "FILE: is missing, and so is --run"),
        (("config.json", "--run", "lab"), "FILE: is given beside --run"),
        (("config.json", "--tp", "2"), "--run: is missing, and the options of its engine are of it"),
        (("--run", "lab", "--source", "a book"), "--source: is of FILE"),
        (("--run", "lab", "--ranks-per-node", "2"), "--ranks-per-node: needs --tp"),
        (("--run", "lab", "--max-num-seqs", "8"), "--max-num-batched-tokens: is missing, with other settings"),
        (("--run", "lap"), "--run: run 'lap' does not exist"),
        (
            ("--run", "lab"),
            "--model: is missing: give an id of the catalogue or the contents of a config, or create runs",
        ),
        (("--run", "lab"), "\n--tp: is missing: "),
        (("--run", "lab"), "\n--max-num-batched-tokens: is missing: "),
        (("--run", "lab"), "\n--link: is missing: "),
        (("--run", "lab", "--model", "m", "--tp", "2", "--link", "1g"), "--max-num-batched-tokens: is missing: "),
        (
            ("--run", "lab", "--model", "m", "--tp", "2", "--link", "1g", *SCHEDULER, "--subject", "L9"),
            "runs/lab measured no complete round of 'L9'",
        ),
    ],
)
def test_what_is_wrong_is_said_by_what_was_typed(linkbound: Command, arguments: tuple[str, ...], message: str) -> None:
    outcome = linkbound(*FIT, *arguments)
    assert (outcome.exit_code, outcome.out) == (2, "")
    assert message in outcome.err
