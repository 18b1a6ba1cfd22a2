"""Calibrations against public tables of measured times, beside plain interpolation and a two-parameter fit."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from estimator_service.core.collective_time import calibrated_seconds
from estimator_service.service import default_estimator
from linkbound.domain.paging import PageRequest
from tests.golden.collective_accuracy import (
    Group,
    Points,
    accuracy,
    accuracy_row,
    alpha_beta,
    every_third,
    log_log,
    median_error_of,
    small_and_large,
    spark_groups,
    table_groups,
)

OWN = table_groups(Path(__file__).parent / "collective_times.csv")
PAGE = (Path(__file__).parents[2] / "docs" / "accuracy.md").read_text("utf-8")
LARGEST_MEDIAN_ERROR = 0.04
LARGEST_MEDIAN_ERROR_OF_TWO_POINTS = 0.10
SMALLEST_SHARE_INSIDE = 0.9


@pytest.fixture(scope="module")
def published() -> list[Group]:
    folder = os.environ.get("LINKBOUND_REFERENCE_DATA")
    if not folder:
        pytest.skip("LINKBOUND_REFERENCE_DATA is not set: the published tables are not swept")
    return table_groups(Path(folder) / "collectives" / "aiconfigurator_comm_public.csv")


@pytest.fixture(scope="module")
def spark() -> list[Group]:
    folder = os.environ.get("LINKBOUND_REFERENCE_DATA")
    if not folder:
        pytest.skip("LINKBOUND_REFERENCE_DATA is not set: the series on DGX Spark are not swept")
    return spark_groups(Path(folder) / "public_data.csv")


def hold_tables(groups: list[Group]) -> None:
    left = accuracy(groups, every_third)
    assert left.median_error <= LARGEST_MEDIAN_ERROR
    assert left.median_error < median_error_of(groups, every_third, log_log)
    assert left.median_error < median_error_of(groups, every_third, alpha_beta)
    assert left.inside >= SMALLEST_SHARE_INSIDE


def hold_two_points(groups: list[Group]) -> None:
    left = accuracy(groups, small_and_large)
    assert left.median_error <= LARGEST_MEDIAN_ERROR_OF_TWO_POINTS
    assert left.median_error < median_error_of(groups, small_and_large, alpha_beta)
    assert left.inside >= SMALLEST_SHARE_INSIDE


def test_a_table_of_every_third_size() -> None:
    assert len(OWN) == 24
    hold_tables(OWN)


def test_a_small_and_a_large_message() -> None:
    hold_two_points(OWN)


def test_the_published_tables(published: list[Group]) -> None:
    assert len(published) > 300
    hold_tables(published)
    hold_two_points(published)


@pytest.mark.parametrize("half", [0, 1], ids=["chosen-on", "confirmed-on"])
def test_each_half_of_the_published_tables(published: list[Group], half: int) -> None:
    groups = [group for group in published if group.half == half]
    assert len(groups) > 150
    hold_tables(groups)
    hold_two_points(groups)


def test_the_published_tables_with_the_series_on_spark(published: list[Group], spark: list[Group]) -> None:
    assert len(spark) == 8
    hold_tables([*published, *spark])


def test_the_page_states_what_is_measured(published: list[Group], spark: list[Group]) -> None:
    halves = [[group for group in published if group.half == half] for half in (0, 1)]
    table: tuple[str, Callable[[Group], Points]] = ("every third size", every_third)
    two: tuple[str, Callable[[Group], Points]] = ("16 KB and 64 MB", small_and_large)
    rows = [
        accuracy_row(label, given, groups, choose)
        for given, choose in (table, two)
        for label, groups in (("chosen on", halves[0]), ("confirmed on", halves[1]), ("all tables", published))
    ]
    rows.append(accuracy_row("DGX Spark", table[0], spark, table[1]))
    rows.append(accuracy_row("tables and Spark", table[0], [*published, *spark], table[1]))
    missing = [row for row in rows if row not in PAGE]
    assert missing == []


def test_the_page_states_what_the_own_file_gives() -> None:
    assert accuracy_row("own file", "every third size", OWN, every_third) in PAGE
    assert accuracy_row("own file", "16 KB and 64 MB", OWN, small_and_large) in PAGE


def test_every_shipped_calibration_holds_its_own_points() -> None:
    entries = default_estimator().list_calibrations(PageRequest()).entries
    assert {"dgx-spark-pair", "dgx-spark-4-ring", "dgx-spark-8-switch"} <= {entry.calibration_id for entry in entries}
    for entry in entries:
        assert entry.sources
        for point in entry.table.points:
            assert calibrated_seconds(entry, point.message_bytes).contains(point.seconds)


def test_the_latencies_that_are_known_of_dgx_spark() -> None:
    """10 KiB in BF16: about 66 us on a pair and 100 us on a ring of four, within a framework."""
    estimator = default_estimator()
    for name, microseconds in (("dgx-spark-pair", 66), ("dgx-spark-4-ring", 100)):
        answer = calibrated_seconds(estimator.get_calibration(name), 10_240)
        assert answer.expected is not None
        assert abs(answer.expected * 1e6 - microseconds) < 1
