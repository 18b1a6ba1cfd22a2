"""`linkbound runs` on sealed runs, in this process and against a service."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.command_line import serving
from tests.integration.sealing.content import COUNTS, filled, sealed_names
from tests.integration.store_content import RUN, opened, with_run
from tests.unit.cli.command import SETTINGS, Command

pytestmark = pytest.mark.storage


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    return Command(capsys)


@pytest.fixture(params=["local", "remote"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[list[str]]:
    """The options that lead to a store with one full run and an empty one, in `tmp_path`."""
    with opened(tmp_path) as store:
        with_run(filled(store), "empty-one")
    if request.param == "local":
        yield ["--data", str(tmp_path)]
    else:
        with serving("--only", "ingest", "--data", str(tmp_path)) as addresses:
            yield ["--target", addresses["ingest"]]


def test_a_run_is_sealed_shown_compared_and_deleted(where: list[str], tmp_path: Path, command: Command) -> None:
    compared = command("compare", RUN, *where)
    sealed = command("runs", "seal", RUN, "--expected-rows", str(COUNTS.total_row_count), *where)
    assert sealed.exit_code == 0, sealed.err
    files = tmp_path / "sealed" / f"run_id={RUN}"
    assert sealed.out.startswith(f"{RUN}: sealed, created ")
    assert f"files  {files}" in sealed.out
    answer = command("runs", "seal", RUN, "--json", *where).answer["run"]
    assert answer["sealed_path"] == str(files)
    assert int(answer["sealed_size_bytes"]) == sum(path.stat().st_size for path in files.glob("*.parquet"))

    listed = command("runs", "list", *where).out.splitlines()
    states = {line.split()[0]: line.split()[1] for line in listed[2:]}
    assert states == {RUN: "sealed", "empty-one": "open"}
    shown = command("runs", "show", RUN, *where).out
    assert str(files) in shown
    assert f"{COUNTS.sample_count:,}" in shown
    assert str(files) not in command("runs", "show", "empty-one", *where).out
    assert command("compare", RUN, *where) == compared

    deleted = command("runs", "delete", RUN, *where)
    assert deleted.out == f"{RUN}: deleted with {COUNTS.total_row_count} rows\n"
    assert sealed_names(tmp_path) == set()
