"""Engine calibrations of the catalogue: what is shipped, what is stored, and what a broken file says."""

import json
from pathlib import Path

import pytest
from attrs import evolve

from estimator_service.catalog.directory import SHIPPED_DIRECTORY, Catalog
from estimator_service.catalog.engine_files import engine_calibration_text, read_engine_calibration
from estimator_service.catalog.files import CatalogError
from estimator_service.service import Estimator, default_estimator
from linkbound.domain.catalog import ImportModelRequest
from linkbound.domain.engine import EnginePoint, EngineRequest, EngineTable, FitEngineCalibrationRequest
from linkbound.domain.errors import AlreadyExistsError, FailedPreconditionError, InvalidArgumentError, NotFoundError
from linkbound.domain.paging import PageRequest
from tests.golden.engine_tables import measured_engine
from tests.unit.architecture.configs import SMALL

SHIPPED = sorted((SHIPPED_DIRECTORY / "engine_calibrations").glob("*.toml"))
STUDY = measured_engine("engine_study.toml")
RECORDING = measured_engine("engine_recording.toml")
MODELS = Catalog(SHIPPED_DIRECTORY).models


@pytest.fixture
def estimator(tmp_path: Path) -> Estimator:
    return default_estimator(lambda: tmp_path)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_shipped_engine_calibration_says_where_its_times_come_from(path: Path) -> None:
    calibration = read_engine_calibration(path, MODELS.get)
    assert calibration.engine_calibration_id == path.stem
    assert calibration.sources
    assert calibration.terms


def test_the_first_study_is_shipped_over_both_links() -> None:
    found = {path.stem: read_engine_calibration(path, MODELS.get).table for path in SHIPPED}
    for name, measured in (("200g", STUDY.seen), ("109g", STUDY.unseen)):
        table = found[f"glm-5.3-dgx-spark-8-{name}"]
        # How many drafts were accepted is not known; the copy beside the tests puts it at none.
        assert table.scheduler.accepted_draft_tokens_per_pass is None
        assert evolve(table, scheduler=measured.scheduler) == measured
        assert evolve(table.scheduler, engine="", accepted_draft_tokens_per_pass=0.0) == measured.scheduler


@pytest.mark.parametrize("table", [STUDY.seen, RECORDING.seen], ids=["study", "recording"])
def test_a_file_that_is_written_is_read_as_it_was(table: EngineTable, estimator: Estimator, tmp_path: Path) -> None:
    fit = estimator.fit_engine_calibration(
        FitEngineCalibrationRequest(table=table, engine_calibration="rack-7", sources=('"quoted" \\ ünïcode',))
    )
    copy = tmp_path / "rack-7.toml"
    copy.write_text(engine_calibration_text(fit), "utf-8")
    assert read_engine_calibration(copy, MODELS.get) == fit


def test_a_named_fit_is_stored_and_found_by_another_estimator(estimator: Estimator, tmp_path: Path) -> None:
    request = FitEngineCalibrationRequest(table=RECORDING.seen, engine_calibration="rack-7", sources=("a rack",))
    stored = estimator.fit_engine_calibration(request)
    assert (stored.engine_calibration_id, stored.sources) == ("rack-7", ("a rack",))
    assert estimator.get_engine_calibration("rack-7") == stored
    assert default_estimator(lambda: tmp_path).get_engine_calibration("rack-7") == stored
    listed = estimator.list_engine_calibrations(PageRequest()).entries
    assert [entry.engine_calibration_id for entry in listed] == sorted(["rack-7", *(path.stem for path in SHIPPED)])


def test_a_fit_without_a_name_is_not_stored(estimator: Estimator, tmp_path: Path) -> None:
    fit = estimator.fit_engine_calibration(FitEngineCalibrationRequest(table=STUDY.seen))
    assert fit.engine_calibration_id == ""
    assert list(tmp_path.rglob("*.toml")) == []


def test_the_same_times_again_are_the_engine_calibration_that_exists(estimator: Estimator) -> None:
    request = FitEngineCalibrationRequest(table=STUDY.seen, engine_calibration="rack-7")
    assert estimator.fit_engine_calibration(request) == estimator.fit_engine_calibration(request)


def test_other_times_do_not_take_a_name(estimator: Estimator) -> None:
    estimator.fit_engine_calibration(FitEngineCalibrationRequest(table=STUDY.seen, engine_calibration="rack-7"))
    for name in ("rack-7", SHIPPED[0].stem):
        other = FitEngineCalibrationRequest(table=STUDY.unseen, engine_calibration=name, sources=("elsewhere",))
        with pytest.raises(AlreadyExistsError, match=f"engine calibration '{name}' exists") as caught:
            estimator.fit_engine_calibration(other)
        assert caught.value.reason == "ENGINE_CALIBRATION_EXISTS"


def test_without_a_directory_nothing_is_stored() -> None:
    with pytest.raises(FailedPreconditionError) as caught:
        default_estimator().fit_engine_calibration(
            FitEngineCalibrationRequest(table=STUDY.seen, engine_calibration="rack-7")
        )
    assert caught.value.reason == "CATALOG_READ_ONLY"


def test_an_unknown_name_is_answered_with_near_ones() -> None:
    with pytest.raises(NotFoundError, match=r"engine calibration 'glm-5\.3-dgx-spark-8' ") as caught:
        default_estimator().get_engine_calibration("glm-5.3-dgx-spark-8")
    assert caught.value.reason == "ENGINE_CALIBRATION_NOT_FOUND"
    assert SHIPPED[0].stem in caught.value.near_names


def test_an_imported_model_can_be_calibrated_and_is_missed_when_it_is_gone(
    estimator: Estimator, tmp_path: Path
) -> None:
    """The file names a model: without it the entry is told as unreadable, not as one that does not exist."""
    estimator.import_model(ImportModelRequest(model="mine", config_json=json.dumps(SMALL)))
    table = evolve(STUDY.seen, model="mine", layout=evolve(STUDY.seen.layout, tensor_parallel_size=2), bursts=None)
    request = FitEngineCalibrationRequest(table=table, engine_calibration="rack-7")
    assert estimator.fit_engine_calibration(request) == estimator.get_engine_calibration("rack-7")
    (tmp_path / "models" / "mine.toml").unlink()
    (told,) = default_estimator(lambda: tmp_path).list_engine_calibrations(PageRequest()).unreadable
    assert told.name == "engineCalibrations/rack-7"
    assert "model 'mine' does not exist" in told.problem


def test_points_hold_as_many_requests_in_all_as_can_be_replayed_together() -> None:
    many = (EngineRequest(prompt_tokens=1, output_tokens=1),) * 1000
    points = tuple(EnginePoint(label=f"{index}", requests=many, last_ttft_seconds=9.0) for index in range(11))
    with pytest.raises(InvalidArgumentError, match="hold 11000 requests, above 10000"):
        FitEngineCalibrationRequest(table=evolve(STUDY.seen, points=points))


@pytest.mark.parametrize(
    ("broken", "problem"),
    [
        ("", "layout: is missing"),
        ("not toml", "line 1"),
        (SHIPPED[0].read_text("utf-8").replace('"glm-5.3"', '"glm-5.4"'), "model 'glm-5.4' does not exist"),
        (SHIPPED[0].read_text("utf-8").replace("tensor_parallel_size = 8", "tensor_parallel_size = 0"), "0 is not"),
        (SHIPPED[0].read_text("utf-8").replace("1.05", "1.08"), "1.08 is above the largest"),
        (SHIPPED[0].read_text("utf-8").replace('model = "glm-5.3"', 'model_config_json = "[]"'), "config"),
    ],
)
def test_a_broken_file_is_named(broken: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "broken.toml"
    path.write_text(broken, "utf-8")
    with pytest.raises(CatalogError, match=r"broken\.toml") as caught:
        read_engine_calibration(path, MODELS.get)
    assert problem in caught.value.message
