"""What a served estimator imports is in its catalogue directory, for every process over it."""

import json
from pathlib import Path
from typing import Any

from structlog.testing import capture_logs

from estimator_service.service import default_estimator
from estimator_service.transport.catalog_servicer import CatalogServicer
from linkbound.domain.paging import PageRequest
from linkbound.estimator.v1.catalog_service_pb2 import ListModelsRequest
from tests.integration.command_line import linkbound, serving
from tests.unit.architecture.configs import SMALL, SMALL_MOE

NO_CONTEXT: Any = None
"""The methods of the catalogue take nothing from the call."""


def test_an_import_outlives_the_server_and_is_shared_with_local(tmp_path: Path) -> None:
    config, data = tmp_path / "config.json", tmp_path / "data"
    config.write_text(json.dumps(SMALL))
    with serving("--only", "estimator", "--data", str(data)) as addresses:
        target = ["--target", addresses["estimator"]]
        imported = linkbound("models", "import", str(config), "--name", "mine", *target, "--json")
        assert imported.exit_code == 0, imported.err
        shown = linkbound("models", "show", "mine", *target, "--json")
        assert shown.answer == imported.answer
    assert [path.name for path in (data / "catalog" / "models").iterdir()] == ["mine.toml"]
    assert linkbound("models", "show", "mine", "--data", str(data), "--json").answer == imported.answer
    config.write_text(json.dumps(SMALL_MOE))
    with serving("--only", "estimator", "--data", str(data)) as addresses:
        target = ["--target", addresses["estimator"]]
        assert linkbound("models", "show", "mine", *target, "--json").answer == imported.answer
        refused = linkbound("models", "import", str(config), "--name", "mine", *target)
        assert (refused.exit_code, "exists with other content" in refused.err) == (2, True)


def test_the_directory_can_be_set_apart_from_the_data(tmp_path: Path) -> None:
    config, catalogue = tmp_path / "config.json", tmp_path / "shared"
    config.write_text(json.dumps(SMALL))
    settings = {"LINKBOUND_CATALOG_DIRECTORY": str(catalogue)}
    with serving("--only", "estimator", "--data", str(tmp_path / "data"), settings=settings) as addresses:
        target = ["--target", addresses["estimator"]]
        assert linkbound("models", "import", str(config), "--name", "mine", *target).exit_code == 0
    assert [path.name for path in (catalogue / "models").iterdir()] == ["mine.toml"]


async def test_a_broken_file_is_told_to_the_caller_and_in_the_log(tmp_path: Path) -> None:
    """Who asks may not be who owns the files."""
    models = tmp_path / "models"
    models.mkdir()
    (models / "broken.toml").write_text("= nothing")
    servicer = CatalogServicer(default_estimator(lambda: tmp_path))
    with capture_logs() as log:
        answer = await servicer.ListModels(ListModelsRequest(page_size=1000), NO_CONTEXT)
    assert len(answer.models) == len(default_estimator().list_models(PageRequest(page_size=1000)).entries)
    (unreadable,) = answer.unreadable
    assert unreadable.name == "models/broken"
    (line,) = log
    assert line == {
        "event": "catalog_entry_unreadable",
        "log_level": "warning",
        "name": "models/broken",
        "problem": unreadable.problem,
    }
    assert str(models / "broken.toml") in unreadable.problem
