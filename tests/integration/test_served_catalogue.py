"""What a served estimator imports is in its catalogue directory, for every process over it."""

import json
from pathlib import Path

from tests.integration.command_line import linkbound, serving
from tests.unit.architecture.configs import SMALL, SMALL_MOE


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
