"""A store that one supported DuckDB wrote opens in the other, and its views answer the same.

Both stand beside each other in the environments of the Makefile; a run with either looks at a file of the other.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from tests.integration.sql_page import PAGE, SqlExample, answer_of, sql_examples
from tests.integration.sql_store import build

pytestmark = pytest.mark.storage

ROOT = Path(__file__).parents[2]
EXAMPLES = sql_examples(PAGE.read_text(encoding="utf-8"))
VERSION = "import duckdb; print(duckdb.__version__)"


def other_python() -> tuple[Path, str] | None:
    """The interpreter of an environment with another DuckDB, and its version; None where there is none."""
    for name in (".venv", ".venv-lake"):
        python = ROOT / name / "bin" / "python"
        if python.exists():
            found = subprocess.run([python, "-c", VERSION], capture_output=True, text=True, check=False).stdout.strip()
            if found not in ("", duckdb.__version__):
                return python, found
    return None


@pytest.fixture(scope="module")
def of_the_other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """A store that the other DuckDB wrote, read by this one."""
    other = other_python()
    if other is None:
        pytest.skip(f"no environment with another DuckDB than {duckdb.__version__}: make venv-lake")
    folder = tmp_path_factory.mktemp("other")
    subprocess.run([other[0], "-m", "tests.integration.sql_store", str(folder)], cwd=ROOT, check=True)
    with duckdb.connect(str(folder / "linkbound.duckdb"), read_only=True) as connection:
        yield connection


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: str(EXAMPLES.index(example) + 1))
def test_views_that_the_other_wrote_answer_here(example: SqlExample, of_the_other: duckdb.DuckDBPyConnection) -> None:
    assert answer_of(of_the_other, example.query) == example.answer


def test_the_other_can_go_on_with_a_store_that_was_begun_here(tmp_path: Path) -> None:
    other = other_python()
    if other is None:
        pytest.skip(f"no environment with another DuckDB than {duckdb.__version__}: make venv-lake")
    path = build(tmp_path)
    code = (
        "import sys; from pathlib import Path\n"
        "from ingest_service.service import Ingest, StoreSettings\n"
        "from linkbound.domain.run import CreateRunRequest\n"
        "with Ingest.open(StoreSettings(path=Path(sys.argv[1]))) as ingest:\n"
        "    ingest.create_run(CreateRunRequest(run_id='later'))\n"
    )
    subprocess.run([other[0], "-c", code, str(path)], cwd=ROOT, check=True)
    with duckdb.connect(str(path), read_only=True) as connection:
        assert connection.execute("SELECT count(*) FROM runs WHERE run_id = 'later'").fetchall() == [(1,)]
        assert connection.execute("SELECT count(*) > 0 FROM v_windows_1s").fetchall() == [(True,)]
    assert sys.executable != str(other[0])
