"""The command against services, and `serve` itself."""

import json
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from linkbound import CollectiveResult, IngestClient, Metric, MetricAggregate, PredictedValue, Prediction, Spread
from linkbound.domain.estimate import Estimate
from tests.integration.command_line import COMMAND, LIMIT_SECONDS, environment, linkbound, serving, start
from tests.unit.cli.command import SETTINGS, Command

ESTIMATES = [
    ["estimate", "prefill", "--model", "glm-5.3", "--tp", "8", "--prompt-tokens", "1k,8k", "--link", "200g"],
    [
        *("estimate", "prefill", "--model", "glm-5.3", "--tp", "8", "--prompt-tokens", "8k", "--link", "200g"),
        *("--to-link", "109g", "--baseline-ttft", "6.36", "--max-num-batched-tokens", "4096"),
    ],
    ["estimate", "decode", "--model", "glm-5.3", "--tp", "8", "--link", "200g", "--draft-tokens", "4"],
    [
        *("estimate", "tp", "--model", "glm-5.3", "--prompt-tokens", "8k", "--baseline-tp", "8", "--link", "200g"),
        *("--baseline-ttft", "6.36", "--to-link", "100g", "--tp-sizes", "2,4,8,16"),
    ],
    [
        *("estimate", "training", "--nodes", "4", "--gradient-bytes", "15231233024"),
        *("--bandwidth", "1.18GB/s", "--compute-step-seconds", "2.289"),
    ],
    ["models", "list"],
    ["models", "show", "gpt-oss-120b"],
]
TLS_FOLDER = Path(__file__).parents[1] / "congruence" / "tls"
REFUSED = [
    ["estimate", "prefill", "--model", "glm-5.3", "--tp", "7", "--prompt-tokens", "1", "--link", "200g"],
    ["estimate", "prefill", "--model", "glm53", "--tp", "8", "--prompt-tokens", "1", "--link", "200g"],
    ["models", "show", "nope"],
]

pytestmark = pytest.mark.storage


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command within this process, where a start costs nothing; the services are processes of their own."""
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    return Command(capsys)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Both services in one process, as `linkbound serve` runs them."""
    with serving("--data", str(tmp_path_factory.mktemp("data"))) as addresses:
        yield addresses


@pytest.mark.parametrize("arguments", ESTIMATES, ids=lambda arguments: " ".join(arguments[:2]))
def test_a_service_answers_what_this_process_answers(
    arguments: list[str], pair: dict[str, str], command: Command
) -> None:
    for options in ([], ["--json"]):
        local = command(*arguments, *options)
        remote = command(*arguments, *options, "--target", pair["estimator"])
        assert local.exit_code == 0, local.err
        assert remote == local


@pytest.mark.parametrize("arguments", REFUSED, ids=lambda arguments: " ".join(arguments[:4]))
def test_a_service_refuses_in_the_same_words(
    arguments: list[str], pair: dict[str, str], command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = command(*arguments)
    monkeypatch.setenv("LINKBOUND_ESTIMATOR", pair["estimator"])
    remote = command(*arguments)
    assert (local.exit_code, local.out) == (2, "")
    assert remote.exit_code == 2
    # A call over the network has a request id, which finds it in the log of the service.
    assert remote.err.strip().partition(" (request ")[0] == local.err.strip()


def fill(ingest: IngestClient, run: str) -> None:
    """A run with one value inside its interval, one outside, and one without a prediction."""
    metric = Metric.TTFT_SECONDS
    ingest.create_run(
        run,
        display_name="two tests",
        source="this test",
        settings={"engine": "none"},
        prediction=Prediction(
            estimator_version="0.1.0",
            values=(
                PredictedValue(metric=metric, subject="P1", estimate=Estimate(lower=0.5, upper=1.0)),
                PredictedValue(metric=metric, subject="P2", estimate=Estimate(lower=0.5, upper=1.0)),
                PredictedValue(metric=metric, subject="P3", missing_inputs=("a baseline",)),
            ),
        ),
    )
    records = [
        MetricAggregate(metric=metric, subject="P1", value=Spread(mean=0.75, minimum=0.5, maximum=0.875)),
        MetricAggregate(metric=metric, subject="P2", value=Spread(mean=1.5)),
        MetricAggregate(metric=metric, subject="P3", value=Spread(mean=2.5)),
    ]
    ingest.append(run, writer_id="test", sequence_number=1, records=records)


def check_a_life_of_a_run(run: str, where: list[str], command: Command) -> None:
    """Lists, shows, compares, seals and deletes `run`, which `fill` filled."""

    def answer(*arguments: str) -> dict[str, Any]:
        outcome = command(*arguments, *where, "--json")
        assert outcome.exit_code == 0, outcome.err
        return outcome.answer

    (listed,) = [entry for entry in answer("runs", "list")["runs"] if entry["name"] == f"runs/{run}"]
    assert listed["state"] == "RUN_STATE_OPEN"
    assert "prediction" not in listed
    shown = answer("runs", "show", run)
    assert shown["run"]["settings"] == {"engine": "none"}
    assert len(shown["run"]["prediction"]["values"]) == 3
    assert shown["row_counts"]["metric_aggregate_count"] == 3
    check_comparison(run, answer("compare", run)["rows"], command("compare", run, *where).out)
    refused = command("runs", "seal", run, "--expected-rows", "4", *where)
    assert (refused.exit_code, refused.out) == (2, "")
    assert {"3", "4"} <= set(re.findall(r"\d+", refused.err))
    assert answer("runs", "seal", run, "--expected-rows", "3")["run"]["state"] == "RUN_STATE_SEALED"
    assert command("runs", "show", run, *where).out.startswith(f"{run}: sealed, created ")
    assert answer("runs", "delete", run)["row_counts"]["metric_aggregate_count"] == 3
    gone = command("compare", run, *where)
    assert gone.exit_code == 2
    assert gone.err.startswith(f"linkbound: RUN: run {run!r} does not exist")


def check_comparison(run: str, rows: list[dict[str, Any]], text: str) -> None:
    assert [(row["subject"], row["measured"], row.get("inside_interval")) for row in rows] == [
        ("P1", 0.75, True),
        ("P2", 1.5, False),
        ("P3", 2.5, None),
    ]
    assert (rows[0]["measured_min"], rows[0]["measured_max"]) == (0.5, 0.875)
    assert rows[2]["missing_inputs"] == ["a baseline"]
    assert text.startswith(f"{run}: 1 of 2 measured values lie inside their predicted interval\n")
    assert f"OUTSIDE_INTERVAL  {run}: P2" in text


def test_a_run_of_a_service(pair: dict[str, str], command: Command) -> None:
    with IngestClient(pair["ingest"]) as ingest:
        fill(ingest, "remote")
    check_a_life_of_a_run("remote", ["--target", pair["ingest"]], command)


def test_a_run_in_this_process(tmp_path: Path, command: Command) -> None:
    with IngestClient("local:", data_directory=tmp_path) as ingest:
        fill(ingest, "local")
    check_a_life_of_a_run("local", ["--data", str(tmp_path)], command)


def test_the_data_folder_of_the_environment_is_used(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    with IngestClient("local:", data_directory=tmp_path) as ingest:
        ingest.create_run("here")
        ingest.append(
            "here",
            writer_id="test",
            sequence_number=1,
            records=[CollectiveResult(subject="pair", rank_count=2, bus_bandwidth_bytes_per_second=22e9)],
        )
    monkeypatch.setenv("LINKBOUND_DATA", str(tmp_path))
    assert "here" in command("runs", "list").out
    assert command("runs", "list", "--data", str(tmp_path / "empty")).out == "no runs\n"


def test_health(pair: dict[str, str], command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, address in pair.items():
        assert command("health", "--target", address).exit_code == 0
        monkeypatch.setenv(f"LINKBOUND_{name.upper()}", address)
    outcome = command("health")
    assert outcome.exit_code == 0
    assert outcome.out.splitlines() == [f"{name} at {address}: serving" for name, address in pair.items()]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A certificate of its own for the name `linkbound.test`, and its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed: no certificate to test with")
    folder = tmp_path_factory.mktemp("tls")
    certificate_file, key_file = str(folder / "certificate.pem"), str(folder / "key.pem")
    request = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=linkbound.test"]
    request += ["-addext", "subjectAltName=DNS:linkbound.test", "-out", certificate_file, "-keyout", key_file]
    subprocess.run(request, check=True, capture_output=True)
    return certificate_file, key_file


def test_health_of_a_server_with_tls_needs_what_the_dockerfiles_say(
    certificate: tuple[str, str], command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate_file, key_file = certificate
    settings = {
        "LINKBOUND_SERVER_TLS_CERTIFICATE_FILE": certificate_file,
        "LINKBOUND_SERVER_TLS_KEY_FILE": key_file,
    }
    with serving("--only", "estimator", settings=settings) as addresses:
        arguments = ["health", "--target", addresses["estimator"], "--timeout"]
        assert command(*arguments, "500ms").exit_code == 3
        monkeypatch.setenv("LINKBOUND_TLS_CA_FILE", certificate_file)
        assert command(*arguments, "500ms").exit_code == 3
        monkeypatch.setenv("LINKBOUND_TLS_SERVER_NAME", "linkbound.test")
        assert command(*arguments, "60s").exit_code == 0


def test_a_token_comes_from_the_environment_or_a_file(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    token_file = tmp_path / "token"
    token_file.write_text("a-long-enough-token-for-a-test\n")
    with serving("--only", "estimator", settings={"LINKBOUND_SERVER_TOKEN_FILE": str(token_file)}) as addresses:
        arguments = ["models", "show", "glm-5.3", "--target", addresses["estimator"]]
        without = command(*arguments)
        monkeypatch.setenv("LINKBOUND_TOKEN", "another-token-of-some-length")
        wrong = command(*arguments)
        monkeypatch.setenv("LINKBOUND_TOKEN_FILE", str(token_file))
        right = command(*arguments)
    for refused in (without, wrong):
        assert (refused.exit_code, refused.out) == (1, "")
        assert "token" in refused.err
    assert right.exit_code == 0, right.err


def test_tls_files_come_from_the_environment(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = str(TLS_FOLDER / "certificate.pem")
    settings = {
        "LINKBOUND_SERVER_TLS_CERTIFICATE_FILE": certificate,
        "LINKBOUND_SERVER_TLS_KEY_FILE": str(TLS_FOLDER / "key.pem"),
    }
    with serving("--only", "estimator", settings=settings) as addresses:
        arguments = ["models", "show", "glm-5.3", "--target", addresses["estimator"]]
        in_the_clear = command(*arguments)
        monkeypatch.setenv("LINKBOUND_TLS_CA_FILE", certificate)
        encrypted = command(*arguments)
    assert in_the_clear.exit_code == 3
    assert encrypted.exit_code == 0, encrypted.err


def test_a_store_that_another_process_holds_is_3_and_names_it(tmp_path: Path) -> None:
    with serving("--only", "ingest", "--data", str(tmp_path)):
        outcome = linkbound("runs", "list", "--data", str(tmp_path))
        second = linkbound("serve", "--only", "ingest", "--ingest-port", "0", "--data", str(tmp_path))
    for refused in (outcome, second):
        assert (refused.exit_code, refused.out) == (3, "")
        assert "is in use by" in refused.err
        assert "process" in refused.err


def test_a_port_that_is_taken_is_3(pair: dict[str, str], tmp_path: Path) -> None:
    port = pair["ingest"].rpartition(":")[2]
    outcome = linkbound("serve", "--only", "ingest", "--ingest-port", port, "--data", str(tmp_path))
    assert outcome.exit_code == 3
    assert "the port is taken" in outcome.err
    assert "Traceback" not in outcome.err
    # Nor what gRPC itself has to say of it.
    assert "add_port" not in outcome.err
    assert not any(line.startswith(("E0", "E1", "I0", "I1", "W0", "W1")) for line in outcome.err.splitlines())


def test_serve_says_where_as_json(tmp_path: Path) -> None:
    process = start(
        *("serve", "--json", "--estimator-port", "0", "--ingest-port", "0", "--data", str(tmp_path)),
        *("--until-stdin-closes",),
        stdin=subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        lines: list[str] = []
        while not lines or lines[-1] != "}\n":
            lines.append(process.stdout.readline())
            assert lines[-1], process.stderr and process.stderr.read()
        services = json.loads("".join(lines))["services"]
        assert sorted(entry["service"] for entry in services) == ["estimator", "ingest"]
        for entry in services:
            assert linkbound("health", "--target", entry["target"]).exit_code == 0
        # The end of standard input is the end of the servers.
        process.communicate(timeout=LIMIT_SECONDS)
        assert process.returncode == 0
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("redirection", "problem"),
    [("< /dev/null", "is a file that never ends"), ("< /dev/zero", "is a file that never ends"), ("<&-", "is closed")],
)
@pytest.mark.parametrize("count", ["1", "2"])
def test_a_standard_input_that_cannot_end_is_refused_before_anything_serves(
    redirection: str, problem: str, count: str, tmp_path: Path
) -> None:
    command = [COMMAND, "serve", "--only", "estimator", "--estimator-port", "0", "--until-stdin-closes"]
    result = subprocess.run(
        ["/bin/sh", "-c", f'"$@" {redirection}', "sh", *command, "--processes", count, "--data", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env=environment(),
        timeout=LIMIT_SECONDS,
    )
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == f"linkbound: --until-stdin-closes: standard input {problem}; it takes a pipe\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_serve_cleanly(number: signal.Signals, tmp_path: Path) -> None:
    process = start("serve", "--only", "ingest", "--ingest-port", "0", "--data", str(tmp_path))
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("ingest serving on 127.0.0.1:")
        process.send_signal(number)
        _, err = process.communicate(timeout=LIMIT_SECONDS)
        assert process.returncode == 0, err
    finally:
        process.kill()
        process.communicate()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["linkbound.duckdb"]
