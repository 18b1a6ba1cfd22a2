"""`linkbound store verify` finds what happened to the files of sealed runs, in use or not."""

from pathlib import Path

import pytest

from linkbound.domain.run import SealRunRequest
from tests.integration.sealing.content import SEALED_TABLES, filled
from tests.integration.store_content import RUN, opened, with_run
from tests.unit.cli.command import SETTINGS, Command

pytestmark = pytest.mark.storage


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    return Command(capsys)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A store with two sealed runs and an open one."""
    with opened(tmp_path) as store:
        with_run(store, "open-one")
        for name in (RUN, "another"):
            filled(store, name).seal_run(SealRunRequest(run=name))
    return tmp_path


def test_whole_files_are_found_whole(folder: Path, command: Command) -> None:
    outcome = command("store", "verify", "--data", str(folder))
    assert (outcome.exit_code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert lines[0] == f"{folder / 'sealed'}: 2 sealed runs, whole"
    assert [line.split()[0] for line in lines[4:]] == ["another", RUN]
    assert all(line.endswith("whole") for line in lines[4:])
    answer = command("store", "verify", "--data", str(folder), "--json").answer
    assert [run["file_count"] for run in answer["runs"]] == [len(SEALED_TABLES)] * 2
    assert [run["faults"] for run in answer["runs"]] == [[], []]
    assert answer["not_looked_at"] == ""


def test_every_damage_is_named_with_its_file(folder: Path, command: Command) -> None:
    run = folder / "sealed" / f"run_id={RUN}"
    content = bytearray((run / "tokens.parquet").read_bytes())
    content[100] ^= 4
    (run / "tokens.parquet").write_bytes(bytes(content))
    (run / "ledger.parquet").write_bytes(b"x")
    (run / "events.parquet").unlink()
    (folder / "sealed" / "run_id=another" / "manifest.json").write_text("{}")
    outcome = command("store", "verify", "--data", str(folder))
    assert outcome.exit_code == 1
    assert outcome.out.splitlines()[0].endswith("2 sealed runs, 4 faults")
    faults = [
        (fault["path"], fault["description"])
        for found in command("store", "verify", "--data", str(folder), "--json").answer["runs"]
        for fault in found["faults"]
    ]
    assert [path for path, _ in faults] == [
        str(folder / "sealed" / "run_id=another" / "manifest.json"),
        *(str(run / f"{name}.parquet") for name in ("tokens", "events", "ledger")),
    ]
    assert "is no manifest" in faults[0][1]
    assert faults[1][1] == "is damaged: it is not what was sealed"
    assert faults[2][1] == "is missing"
    assert faults[3][1].startswith("has 1 bytes, not ")
    assert all(f"{path} {description}" in outcome.out for path, description in faults)


def test_a_folder_that_is_missing_is_noticed_while_the_store_can_be_opened(folder: Path, command: Command) -> None:
    missing = folder / "sealed" / f"run_id={RUN}"
    missing.rename(folder / "elsewhere")
    answer = command("store", "verify", "--data", str(folder), "--json")
    assert answer.exit_code == 1
    [fault] = [fault for run in answer.answer["runs"] for fault in run["faults"]]
    assert fault == {"path": str(missing / "manifest.json"), "description": "is missing"}


def test_a_store_that_is_in_use_is_checked_too(folder: Path, command: Command) -> None:
    with opened(folder):
        outcome = command("store", "verify", "--data", str(folder))
    assert outcome.exit_code == 0
    assert "2 sealed runs, whole" in outcome.out
    assert outcome.out.splitlines()[-1].startswith("not looked at: whether the folder of a run is missing")


def test_a_folder_without_a_store_has_no_runs(tmp_path: Path, command: Command) -> None:
    outcome = command("store", "verify", "--data", str(tmp_path / "nothing"))
    assert outcome.exit_code == 0
    assert outcome.out.splitlines()[0].endswith("0 sealed runs, whole")
    assert not (tmp_path / "nothing").exists()
