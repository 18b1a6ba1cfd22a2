"""Views answer the same wherever the rows are: sealed runs through the service, its files, and their files alone."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from ingest_service.service import Ingest
from ingest_service.settings import StoreSettings
from linkbound.client.ingest import IngestClient
from linkbound.domain.paging import PageRequest
from linkbound.domain.run import SealRunRequest
from tests.integration.sql_page import PAGE, SqlExample, answer_of, sql_examples, table_of
from tests.integration.sql_store import SetClock, build
from tests.new_store import laid

pytestmark = pytest.mark.storage

EXAMPLES = sql_examples(PAGE.read_text(encoding="utf-8"))
examples = pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: str(EXAMPLES.index(example) + 1))


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a store whose runs are all sealed, with a snapshot."""
    folder = tmp_path_factory.mktemp("sealed")
    path = build(folder)
    with Ingest.open(StoreSettings(path=laid(path)), SetClock()) as ingest:
        for run in ingest.list_runs(PageRequest()).entries:
            ingest.seal_run(SealRunRequest(run=run.run_id))
        ingest.publish_snapshot()
    with duckdb.connect(str(path), read_only=True) as connection:
        assert connection.execute("SELECT count(*) FROM hot.counter_samples").fetchall() == [(0,)]
    return folder


@examples
@pytest.mark.parametrize("name", ["linkbound.duckdb", "snapshot.duckdb"])
def test_a_file_of_the_service_answers_for_sealed_runs(sealed: Path, name: str, example: SqlExample) -> None:
    with duckdb.connect(str(sealed / name), read_only=True) as connection:
        assert answer_of(connection, example.query) == example.answer


@examples
def test_the_files_of_sealed_runs_answer_alone(
    sealed: Path, example: SqlExample, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(sealed / "sealed")
    with duckdb.connect() as connection:
        connection.execute(Path("views.sql").read_text(encoding="utf-8"))
        assert answer_of(connection, example.query) == example.answer


@examples
def test_the_service_answers_for_sealed_runs(sealed: Path, example: SqlExample) -> None:
    with IngestClient("local:", data_directory=sealed) as client:
        answer = client.query_sql(example.query).read_all()
    assert table_of(answer.schema.names, [tuple(row.values()) for row in answer.to_pylist()]) == example.answer
