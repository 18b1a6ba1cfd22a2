"""Calibrations of the catalogue: what is shipped, what is stored, and what a broken file says."""

from pathlib import Path

import pytest

from estimator_service.catalog.calibration_files import calibration_text, read_calibration
from estimator_service.catalog.directory import SHIPPED_DIRECTORY
from estimator_service.catalog.files import CatalogError
from estimator_service.service import Estimator, default_estimator
from linkbound.domain.calibration import CollectivePoint, CollectiveTable, CollectiveTiming, FitCalibrationRequest
from linkbound.domain.collective import CollectiveKind
from linkbound.domain.errors import AlreadyExistsError, FailedPreconditionError, InvalidArgumentError, NotFoundError
from linkbound.domain.paging import PageRequest

SHIPPED = sorted((SHIPPED_DIRECTORY / "calibrations").glob("*.toml"))
TABLE = CollectiveTable(
    kind=CollectiveKind.REDUCE_SCATTER,
    rank_count=16,
    ranks_per_node=8,
    points=(
        CollectivePoint(message_bytes=2**20, seconds=1 / 3e4),
        CollectivePoint(message_bytes=1024, seconds=2e-5),
        CollectivePoint(message_bytes=1024, seconds=3e-5),
    ),
    timing=CollectiveTiming.IN_FRAMEWORK,
)


@pytest.fixture
def estimator(tmp_path: Path) -> Estimator:
    return default_estimator(lambda: tmp_path)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_shipped_calibration_says_where_its_times_come_from(path: Path) -> None:
    calibration = read_calibration(path)
    assert calibration.calibration_id == path.stem
    assert calibration.sources
    assert calibration.table.timing is not CollectiveTiming.UNSPECIFIED


def test_calibrations_are_shipped() -> None:
    assert len(SHIPPED) >= 5


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_file_that_is_written_is_read_as_it_was(path: Path, tmp_path: Path) -> None:
    calibration = read_calibration(path)
    copy = tmp_path / path.name
    copy.write_text(calibration_text(calibration), "utf-8")
    assert read_calibration(copy) == calibration


def test_a_named_fit_is_stored_and_found_by_another_estimator(estimator: Estimator, tmp_path: Path) -> None:
    request = FitCalibrationRequest(table=TABLE, calibration="rack-7", sources=('"quoted" \\ ünïcode',))
    stored = estimator.fit_calibration(request)
    assert stored.calibration_id == "rack-7"
    assert estimator.get_calibration("rack-7") == stored
    assert default_estimator(lambda: tmp_path).get_calibration("rack-7") == stored
    assert "rack-7" in {entry.calibration_id for entry in estimator.list_calibrations(PageRequest()).entries}


def test_a_fit_without_a_name_is_not_stored(estimator: Estimator, tmp_path: Path) -> None:
    assert estimator.fit_calibration(FitCalibrationRequest(table=TABLE)).calibration_id == ""
    assert list(tmp_path.rglob("*.toml")) == []


def test_the_same_times_again_are_the_calibration_that_exists(estimator: Estimator) -> None:
    request = FitCalibrationRequest(table=TABLE, calibration="rack-7")
    assert estimator.fit_calibration(request) == estimator.fit_calibration(request)


def test_other_times_do_not_take_a_name(estimator: Estimator) -> None:
    estimator.fit_calibration(FitCalibrationRequest(table=TABLE, calibration="rack-7"))
    for name in ("rack-7", "dgx-spark-pair"):
        with pytest.raises(AlreadyExistsError) as caught:
            estimator.fit_calibration(FitCalibrationRequest(table=TABLE, calibration=name, sources=("elsewhere",)))
        assert caught.value.reason == "CALIBRATION_EXISTS"


def test_without_a_directory_nothing_is_stored() -> None:
    with pytest.raises(FailedPreconditionError) as caught:
        default_estimator().fit_calibration(FitCalibrationRequest(table=TABLE, calibration="rack-7"))
    assert caught.value.reason == "CATALOG_READ_ONLY"


def test_an_unknown_name_is_answered_with_near_ones() -> None:
    with pytest.raises(NotFoundError) as caught:
        default_estimator().get_calibration("dgx-spark-pear")
    assert caught.value.reason == "CALIBRATION_NOT_FOUND"
    assert "dgx-spark-pair" in caught.value.near_names


@pytest.mark.parametrize("name", ["", "Rack 7", "../rack"])
def test_a_name_is_an_id(name: str) -> None:
    if name:
        with pytest.raises(InvalidArgumentError):
            FitCalibrationRequest(table=TABLE, calibration=name)
    with pytest.raises((InvalidArgumentError, NotFoundError)):
        default_estimator().get_calibration(name)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "not toml",
        'kind = "ALL_REDUCE"\nrank_count = 2\n',
        'kind = "NONE"\nrank_count = 2\npoints = [[1, 1e-6], [2, 1e-6]]\n',
        'kind = "ALL_REDUCE"\nrank_count = 2\npoints = [[1, 1e-6]]\n',
        'kind = "ALL_REDUCE"\nrank_count = 2\npoints = [[1, 1e-6], [2]]\n',
        'kind = "ALL_REDUCE"\nrank_count = 2\npoints = [[1, "x"], [2, 1e-6]]\n',
        'kind = "ALL_REDUCE"\nrank_count = 2\npoints = 5\n',
        "kind = 5\nrank_count = 2\npoints = [[1, 1e-6], [2, 1e-6]]\n",
        'kind = "ALL_REDUCE"\nrank_count = 2\nspeed = 3\npoints = [[1, 1e-6], [2, 1e-6]]\n',
        'kind = "ALL_REDUCE"\nrank_count = 2\npoints = [[1, 1e-6], [2, 1e-6]]\nsources = [5]\n',
    ],
)
def test_a_broken_file_is_named(content: str, tmp_path: Path) -> None:
    path = tmp_path / "broken.toml"
    path.write_text(content, "utf-8")
    with pytest.raises(CatalogError, match=r"broken\.toml"):
        read_calibration(path)
