from pathlib import Path

import platformdirs
import pytest

from linkbound import DeadlineExceededError, FailedPreconditionError, IngestClient, TrainingStep, UnavailableError
from linkbound.client.local.blocking import LocalBackend, default_data_directory
from linkbound.client.operations import APPEND
from linkbound.domain.records import AppendRequest

STEPS = (TrainingStep(subject="s", node_count=1, step_seconds=1.0),)


class Slow:
    """An application object whose appends never become durable."""

    def append(self, request: AppendRequest) -> object:
        from concurrent.futures import Future

        return Future()


def test_nothing_is_opened_before_the_first_call(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    with IngestClient(data_directory=directory) as client:
        assert not directory.exists()
        assert list(client.list_runs()) == []
        assert (directory / "linkbound.duckdb").exists()


def test_closing_stores_what_was_taken_in_and_frees_the_store(tmp_path: Path) -> None:
    with IngestClient(data_directory=tmp_path) as client:
        client.create_run("r1")
        client.append("r1", writer_id="w", sequence_number=1, records=STEPS)
    with IngestClient(data_directory=str(tmp_path)) as client:
        assert client.get_run("r1").row_counts.training_step_count == 1


def test_a_store_that_is_open_elsewhere_is_unavailable(tmp_path: Path) -> None:
    with IngestClient(data_directory=tmp_path) as first, IngestClient(data_directory=tmp_path) as second:
        first.create_run("r1")
        with pytest.raises(UnavailableError) as caught:
            second.get_run("r1")
        assert caught.value.reason == "STORE_LOCKED"


def test_an_append_that_is_not_durable_in_time_exceeds_its_deadline() -> None:
    request = AppendRequest(run_id="r1", writer_id="w", sequence_number=1, records=STEPS)
    with pytest.raises(DeadlineExceededError, match="append"):
        LocalBackend(Slow).call(APPEND, request, 0.05)


def test_the_default_directory_is_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(platformdirs, "user_data_path", lambda name: tmp_path / name)
    assert default_data_directory() == tmp_path / "linkbound"
    with IngestClient() as client:
        client.create_run("r1")
    assert (tmp_path / "linkbound" / "linkbound.duckdb").exists()


def test_without_the_services_extra_the_missing_module_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    for name in [name for name in sys.modules if name == "duckdb" or name.startswith("ingest_service")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with IngestClient() as client, pytest.raises(FailedPreconditionError, match=r"linkbound\[services\]") as caught:
        client.get_run("r1")
    assert (caught.value.reason, caught.value.metadata) == ("SERVICES_EXTRA_MISSING", {"module": "duckdb"})
