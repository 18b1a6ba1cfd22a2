"""`linkbound traffic` over a store of this process: rates over windows, and what requests sent."""

from __future__ import annotations

import pytest

from linkbound import IngestClient, RequestRecord, SampleColumns, SeriesDescriptor
from tests.unit.cli.command import SETTINGS, Command

pytestmark = pytest.mark.storage

MS = 10**6


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    return Command(capsys)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A run of two devices of a port that send 25 MB a millisecond for a second, and of one request."""
    folder = tmp_path_factory.mktemp("data")
    series = [
        SeriesDescriptor(
            metric=metric,
            node="spark-1",
            device=device,
            port=1,
            unit_bytes=4 if metric == "port_xmit_data" else 0,
            counter_bits=64 if metric == "port_xmit_data" else 0,
            physical_port="qsfp0",
        )
        for device, metric in (("a", "port_xmit_data"), ("b", "port_xmit_data"), ("a", "temperature"))
    ]
    times = tuple(range(0, 1001 * MS, MS))
    values = tuple(time_ns // MS * 3_125_000 for time_ns in times)
    with IngestClient("local:", data_directory=folder) as ingest:
        ingest.create_run("steady")
        with ingest.writer("steady", "sampler", series) as writer:
            writer.write([SampleColumns(series_index=index, time_ns=times, value=values) for index in range(3)])
        request = RequestRecord(
            subject="P1",
            round_index=0,
            request_index=0,
            prompt_tokens=1000,
            output_tokens=64,
            send_ns=100 * MS,
            ttft_ns=200 * MS,
            last_token_ns=500 * MS,
            node="spark-1",
        )
        ingest.append("steady", writer_id="driver", sequence_number=1, records=[request])
        ingest.create_run("empty")
    return str(folder)


def test_windows_as_a_table(command: Command, data: str) -> None:
    outcome = command("traffic", "steady", "--window", "1ms,2.5ms", "--window", "1s", "--data", data)
    assert outcome.exit_code == 0
    lines = outcome.out.splitlines()
    assert lines[0].split() == ["node", "port", "counter", "window", "peak", "99", "%", "mean", "covered"]
    assert [line.split()[:6] for line in lines[2:5]] == [
        ["spark-1", "qsfp0", "port_xmit_data", width, "200", "Gb/s"] for width in ("1ms", "2.5ms", "1s")
    ]
    assert "25 GB in 1.00 s" in lines[-1]
    assert "2,002 readings every 1.00 ms" in lines[-1]
    assert "sum of a/1 and b/1" in lines[-1]


def test_windows_as_json(command: Command, data: str) -> None:
    outcome = command("traffic", "steady", "--window", "100ms", "--points", "4", "--json", "--data", data)
    [port] = outcome.answer["ports"]
    assert (port["node"], port["physical_port"], port["devices"]) == ("spark-1", "qsfp0", ["a/1", "b/1"])
    [window] = port["windows"]
    assert window["window"] == "0.100s"
    assert window["peak_bits_per_second"] == window["mean_bits_per_second"] == pytest.approx(200e9)
    assert window["covered_fraction"] == 1.0
    assert len(window["points"]) == 4


def test_phases(command: Command, data: str) -> None:
    outcome = command("traffic", "steady", "--phases", "--data", data)
    assert outcome.exit_code == 0
    cells = outcome.out.splitlines()[2].split()
    assert cells == (
        [
            "P1",
            "0",
            "0",
            "qsfp0",
            "port_xmit_data",
            "1,000",
            "5",
            "GB",
            "200",
            "Gb/s",
            "5,000,000",
            "B",
            "7.5",
            "GB",
            "200",
            "Gb/s",
            "0",
            "5,000,000",
            "B",
        ]
    )
    [row] = command("traffic", "steady", "--phases", "--json", "--data", data).answer["phase_traffic"]
    assert row["prefill_bytes_per_prompt_token"] == pytest.approx(5e6)
    assert command("traffic", "steady", "--phases", "--node", "spark-2", "--data", data).out == "no requests\n"


def test_a_run_without_counters(command: Command, data: str) -> None:
    assert command("traffic", "empty", "--data", data).out == "no counter of bytes\n"
    assert command("traffic", "empty", "--phases", "--data", data).out == "no requests\n"
    assert command("traffic", "empty", "--json", "--data", data).answer == {"ports": []}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["missing"], "RUN: "),
        (["steady", "--window", "0.5ms"], "--window: "),
        (["steady", "--window", "often"], "--window: "),
        (["steady", "--points", "10001"], "--points: "),
        (["steady", "--metric", "temperature"], "--metric: temperature counts no bytes"),
        (["steady", "--phases", "--window", "1ms"], "--phases: "),
        (["steady", "--subject", "P1"], "--subject: "),
    ],
)
def test_what_is_wrong_is_named(command: Command, data: str, arguments: list[str], words: str) -> None:
    outcome = command("traffic", *arguments, "--data", data)
    assert (outcome.exit_code, outcome.out) == (2, "")
    assert words in outcome.err
