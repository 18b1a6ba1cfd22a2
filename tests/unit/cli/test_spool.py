"""`linkbound spool`: looking into what agents left, and delivering it."""

import os
from pathlib import Path

import pytest

from linkbound import IngestClient, SampleColumns, SeriesDescriptor, Spool, TrainingStep, UnavailableError
from tests.unit.cli.command import Command

NOBODY_LISTENS = "127.0.0.1:1"
SERIES = [SeriesDescriptor(metric="port_xmit_data", node="n1")]


def leave_samples(spool: Path, writer_id: str = "sampler") -> None:
    """An agent that ends while there is no service."""

    def write() -> None:
        with (
            IngestClient(NOBODY_LISTENS) as client,
            client.writer("r1", writer_id, SERIES, spool=spool, linger_seconds=0, timeout_seconds=0.1) as writer,
        ):
            for number in range(3):
                writer.write([SampleColumns(series_index=0, time_ns=(number, number), value=(1, 2))])

    with pytest.raises(UnavailableError):
        write()


def leave_records(spool: Path) -> None:
    with (
        pytest.raises(UnavailableError),
        IngestClient(NOBODY_LISTENS) as client,
        client.record_writer("r1", "bench", spool=spool, timeout_seconds=0.1) as writer,
    ):
        writer.write([TrainingStep(subject="s", node_count=1, step_seconds=1.0)])


def test_an_empty_directory_has_no_spools(tmp_path: Path, linkbound: Command) -> None:
    assert linkbound("spool", "show", str(tmp_path)).out == "0 spools\n"
    assert linkbound("spool", "show", str(tmp_path), "--json").answer == {"spools": []}
    assert linkbound("spool", "send", str(tmp_path)).out == "nothing to send\n"


def test_what_agents_left_is_shown(tmp_path: Path, linkbound: Command) -> None:
    leave_samples(tmp_path)
    leave_records(tmp_path)
    bench, sampler = linkbound("spool", "show", str(tmp_path), "--json").answer["spools"]
    assert (bench["writer_id"], bench["batch_count"], bench["row_count"]) == ("bench", 1, 1)
    assert sampler == {
        "run": "runs/r1",
        "writer_id": "sampler",
        "path": str(tmp_path / "r1" / "sampler.spool"),
        "batch_count": 3,
        "undelivered_batch_count": 3,
        "row_count": 6,
        "size_bytes": sampler["size_bytes"],
        "first_number": None,
        "damaged_file_count": 0,
        "holder_pid": None,
    }
    shown = linkbound("spool", "show", str(tmp_path))
    assert shown.out.startswith("2 spools\n")
    assert [line.split()[:4] for line in shown.out.splitlines()[-2:]] == [
        ["r1", "bench", "1", "1"],
        ["r1", "sampler", "3", "3"],
    ]


def test_a_spool_that_is_in_use_is_shown_and_not_sent(tmp_path: Path, linkbound: Command) -> None:
    data, spool = tmp_path / "data", tmp_path / "spool"
    with IngestClient(data_directory=data) as client:
        client.create_run("r1")
        with client.writer("r1", "sampler", SERIES, spool=Spool(spool), linger_seconds=0) as writer:
            writer.write([SampleColumns(series_index=0, time_ns=(1,), value=(1,))])
            writer.flush()
            (shown,) = linkbound("spool", "show", str(spool), "--json").answer["spools"]
            assert (shown["holder_pid"], shown["first_number"], shown["row_count"]) == (os.getpid(), 1, 1)
            assert f"process {os.getpid()}" in linkbound("spool", "show", str(spool)).out
            assert linkbound("spool", "send", str(spool), "--target", NOBODY_LISTENS).out == "nothing to send\n"


def test_what_agents_left_is_delivered(tmp_path: Path, linkbound: Command) -> None:
    data, spool = str(tmp_path / "data"), tmp_path / "spool"
    leave_samples(spool)
    leave_records(spool)
    with IngestClient(data_directory=data) as client:
        client.create_run("r1")
    sent = linkbound("spool", "send", str(spool), "--data", data)
    assert (sent.exit_code, sent.out) == (0, "r1 bench: 1 row delivered\nr1 sampler: 6 rows delivered\n")
    assert linkbound("spool", "send", str(spool), "--data", data).out == "nothing to send\n"
    with IngestClient(data_directory=data) as client:
        counts = client.get_run("r1").row_counts
    assert (counts.sample_count, counts.training_step_count) == (6, 1)


def test_what_cannot_be_delivered_is_told_and_stays(tmp_path: Path, linkbound: Command) -> None:
    data, spool = str(tmp_path / "data"), tmp_path / "spool"
    leave_samples(spool)
    for _ in range(2):
        refused = linkbound("spool", "send", str(spool), "--data", data)
        assert refused.exit_code == 2
        assert refused.out == "r1 sampler: 6 rows not delivered\n"
        assert "run 'r1' does not exist" in refused.err
        assert refused.err.endswith("linkbound: 1 spool of 1 not delivered\n")


def test_damaged_files_are_counted(tmp_path: Path, linkbound: Command) -> None:
    leave_samples(tmp_path)
    (path,) = (tmp_path / "r1" / "sampler.spool").glob("*.segment")
    path.write_bytes(b"\0" * 50)
    assert linkbound("spool", "show", str(tmp_path)).out.endswith("1 file cannot be read\n")
