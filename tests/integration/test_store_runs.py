"""Runs in a real DuckDB file: created once, listed newest first, sealed, deleted."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import attrs
import duckdb
import pytest

from ingest_service.service import Ingest
from linkbound.domain.errors import AlreadyExistsError, FailedPreconditionError, InvalidArgumentError, NotFoundError
from linkbound.domain.estimate import Basis, Constraint, Effect, Estimate
from linkbound.domain.metric import Metric, Spread
from linkbound.domain.paging import PageRequest
from linkbound.domain.prediction import Baseline, PredictedValue, Prediction, TransferModel
from linkbound.domain.records import ListRequestRecordsRequest, RequestRecord
from linkbound.domain.run import CreateRunRequest, RunRowCounts, RunState, SealRunRequest, Setting
from tests.integration.store_content import (
    RUN,
    appended,
    batch,
    opened,
    request_record,
    rows,
    stream,
    with_run,
)
from tests.new_store import START

PREDICTION = Prediction(
    estimator_version="0.1.0",
    values=(
        PredictedValue(
            metric=Metric.EXTRA_LAST_TTFT_SECONDS,
            subject="P6: 4 × 16K",
            estimate=Estimate(
                lower=0.0,
                expected=0.1 + 0.2,
                upper=7.3888,
                lower_basis=Basis.FORMULA,
                expected_basis=Basis.CALIBRATED,
                upper_basis=Basis.MIXED,
                binding_constraint=Constraint.NETWORK_BANDWIDTH,
                effects_left_out=(Effect.ENGINE_SCHEDULE, Effect.COMPUTE_OVERLAP),
            ),
            transfer=TransferModel(
                fixed_seconds=-8.85,
                sent_bytes_per_rank=221_257_924_608,
                assumed_bytes_per_second=13.625e9,
                assumed_source="given rate",
            ),
            baseline=Baseline(value=Spread(mean=45.82, minimum=45.36, maximum=46.52, round_count=3), run="study-200g"),
            assumptions=("ring all-reduce", "nothing overlapped"),
        ),
        PredictedValue(
            metric=Metric.EXTRA_TTFT_SECONDS,
            subject="P1",
            estimate=Estimate(lower=-0.0),
            baseline=Baseline(value=Spread(mean=0.96)),
        ),
        PredictedValue(
            metric=Metric.TRAINING_TOKENS_PER_SECOND, subject="nanochat", missing_inputs=("model size", "batch size")
        ),
        PredictedValue(metric=Metric.BUS_BANDWIDTH_BYTES_PER_SECOND, subject="a", estimate=Estimate(lower=5e-324)),
    ),
)
REQUEST = CreateRunRequest(
    run_id=RUN,
    display_name="GLM-5.3 über 109 Gb/s",
    source="study, section 8.4",
    settings=(Setting(key="link", value="109g"), Setting(key="engine", value="vLLM 'nightly'")),
    prediction=PREDICTION,
)


@pytest.fixture
def ingest(tmp_path: Path) -> Iterator[Ingest]:
    with opened(tmp_path) as store:
        yield store


def test_a_run_comes_back_as_it_was_created(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        created = store.create_run(REQUEST)
        assert created.state is RunState.OPEN
        assert created.create_time > START
        assert created.seal_time is None
        assert (created.display_name, created.source) == (REQUEST.display_name, REQUEST.source)
        assert created.settings == tuple(sorted(REQUEST.settings, key=lambda s: s.key))
        assert created.prediction == attrs.evolve(PREDICTION, store_time=created.create_time)
        assert store.get_run(RUN).run == created
    with opened(tmp_path) as store:
        assert store.get_run(RUN).run == created
        assert store.get_run(RUN).row_counts == RunRowCounts()


def test_a_store_time_in_the_request_is_not_believed(ingest: Ingest) -> None:
    claimed = attrs.evolve(PREDICTION, store_time=START - timedelta(days=9))
    run = ingest.create_run(attrs.evolve(REQUEST, prediction=claimed))
    assert run.prediction is not None
    assert run.prediction.store_time == run.create_time


def test_the_prediction_is_there_for_sql(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        store.create_run(REQUEST)
    assert rows(
        tmp_path,
        "SELECT metric, subject, upper, effects_left_out, baseline_mean, missing_inputs FROM predicted_values"
        " WHERE value_index IN (0, 2) ORDER BY value_index",
    ) == [
        ("EXTRA_LAST_TTFT_SECONDS", "P6: 4 × 16K", 7.3888, ["ENGINE_SCHEDULE", "COMPUTE_OVERLAP"], 45.82, []),
        ("TRAINING_TOKENS_PER_SECOND", "nanochat", None, None, None, ["model size", "batch size"]),
    ]


def test_a_prediction_made_later_stands_beside_the_frozen_one(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        created = store.create_run(REQUEST)
    with duckdb.connect(str(tmp_path / "linkbound.duckdb")) as connection:
        connection.execute(
            "INSERT INTO hot.predictions"
            " SELECT * REPLACE (1 AS prediction_index, true AS made_after_the_fact) FROM predictions"
        )
        connection.execute(
            "INSERT INTO hot.predicted_values"
            " SELECT * REPLACE (1 AS prediction_index, 'other' AS subject) FROM predicted_values"
        )
    with opened(tmp_path) as store:
        assert store.get_run(RUN).run.prediction == created.prediction
        store.delete_run(RUN)
        assert store.create_run(attrs.evolve(REQUEST, prediction=None)).prediction is None
    assert rows(tmp_path, "SELECT * FROM predicted_values") == []


def test_creating_it_again_with_the_same_content_answers_the_first(ingest: Ingest) -> None:
    created = ingest.create_run(REQUEST)
    assert ingest.create_run(REQUEST) == created


def test_other_content_under_the_id_is_refused(ingest: Ingest) -> None:
    created = ingest.create_run(REQUEST)
    with pytest.raises(AlreadyExistsError) as caught:
        ingest.create_run(attrs.evolve(REQUEST, prediction=None))
    assert caught.value.reason == "RUN_EXISTS"
    assert caught.value.resource.name == RUN
    assert ingest.get_run(RUN).run == created


def test_a_sealed_run_is_still_what_its_creation_is_answered_with(ingest: Ingest) -> None:
    ingest.create_run(REQUEST)
    sealed = ingest.seal_run(SealRunRequest(run=RUN))
    assert ingest.create_run(REQUEST) == sealed


@pytest.mark.parametrize(
    ("asked", "near"), [("study-109", (RUN,)), ("study109g", (RUN,)), ("something", ()), ("x" * 64, ())]
)
def test_an_unknown_run_names_the_near_ones(ingest: Ingest, asked: str, near: tuple[str, ...]) -> None:
    with_run(with_run(ingest), "other")
    for call in (
        lambda: ingest.get_run(asked),
        lambda: ingest.delete_run(asked),
        lambda: ingest.seal_run(SealRunRequest(run=asked)),
        lambda: ingest.compare_run(asked),
        lambda: ingest.list_request_records(ListRequestRecordsRequest(run=asked)),
        lambda: ingest.append(appended(1, run=asked)).result(),
        lambda: ingest.open_stream(stream(run=asked)),
    ):
        with pytest.raises(NotFoundError) as caught:
            call()
        assert caught.value.reason == "RUN_NOT_FOUND"
        assert caught.value.near_names == near


@pytest.mark.parametrize("asked", ["", "UPPER", "a/b", "x" * 65, "ü", "'; DROP TABLE runs; --"])
def test_what_is_not_an_id_is_refused_as_such(ingest: Ingest, asked: str) -> None:
    for call in (ingest.get_run, ingest.delete_run, ingest.compare_run):
        with pytest.raises(InvalidArgumentError) as caught:
            call(asked)
        assert [v.field for v in caught.value.field_violations] == ["run"]


def test_runs_are_listed_newest_first_page_by_page(ingest: Ingest) -> None:
    names = [f"run-{index}" for index in range(7)]
    for name in names:
        ingest.create_run(attrs.evolve(REQUEST, run_id=name))
    listed: list[str] = []
    token = ""
    page_sizes = []
    while True:
        page = ingest.list_runs(PageRequest(page_size=3, page_token=token))
        assert all(run.prediction is None for run in page.entries)
        assert all(run.settings[0] == Setting(key="engine", value="vLLM 'nightly'") for run in page.entries)
        listed += [run.run_id for run in page.entries]
        page_sizes.append(len(page.entries))
        token = page.next_page_token
        if not token:
            break
    assert listed == names[::-1]
    assert page_sizes == [3, 3, 1]


def test_runs_of_the_same_instant_are_all_listed(tmp_path: Path) -> None:
    with opened(tmp_path, lambda: START) as store:
        for name in ("a", "b", "c"):
            with_run(store, name)
        first = store.list_runs(PageRequest(page_size=2))
        second = store.list_runs(PageRequest(page_size=2, page_token=first.next_page_token))
    assert [run.run_id for run in first.entries + second.entries] == ["c", "b", "a"]
    assert second.next_page_token == ""


def test_a_run_that_comes_between_two_pages_shifts_nothing(ingest: Ingest) -> None:
    for name in ("a", "b", "c"):
        with_run(ingest, name)
    first = ingest.list_runs(PageRequest(page_size=1))
    with_run(ingest, "d")
    second = ingest.list_runs(PageRequest(page_size=1, page_token=first.next_page_token))
    assert [run.run_id for run in first.entries + second.entries] == ["c", "b"]


def test_no_runs_are_an_empty_page(ingest: Ingest) -> None:
    assert ingest.list_runs(PageRequest()).entries == ()


def test_a_foreign_page_token_is_refused(ingest: Ingest) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        ingest.list_runs(PageRequest(page_token="nonsense"))
    assert caught.value.field_violations[0].field == "page_token"


def listed_by_pages(ingest: Ingest, page_size: int, subject: str = "") -> list[RequestRecord]:
    found: list[RequestRecord] = []
    token = ""
    while True:
        request = ListRequestRecordsRequest(run=RUN, subject=subject, page_size=page_size, page_token=token)
        page = ingest.list_request_records(request)
        assert len(page.entries) <= page_size
        found += page.entries
        token = page.next_page_token
        if not token:
            return found


@pytest.mark.parametrize("page_size", [1, 2, 3, 4, 7, 1000])
def test_records_are_listed_in_their_order_page_by_page(ingest: Ingest, page_size: int) -> None:
    with_run(with_run(ingest), "other")
    keys = [("P2", 0, 0), ("P1", 1, 0), ("P1", -1, 0), ("P1", 0, 1), ("P1", 0, 0)]
    records = [
        attrs.evolve(request_record(subject), round_index=round_index, request_index=request_index)
        for subject, round_index, request_index in keys
    ]
    # One of them four times more: three by the same writer, and all told apart by what they hold.
    again = [attrs.evolve(records[3], prompt_tokens=index + 1) for index in range(4)]
    ingest.append(appended(1, *records, *again[:3])).result()
    ingest.append(attrs.evolve(appended(1, again[3]), writer_id="a-writer")).result()
    ingest.append(appended(1, request_record(), run="other")).result()
    by_bench = [attrs.evolve(one, writer_id="bench") for one in (*records, *again[:3])]
    by_other = attrs.evolve(again[3], writer_id="a-writer")
    expected = [by_bench[2], by_bench[4], by_bench[3], *by_bench[5:], by_other, by_bench[1], by_bench[0]]
    assert listed_by_pages(ingest, page_size) == expected
    assert listed_by_pages(ingest, page_size, "P1") == expected[:-1]
    assert listed_by_pages(ingest, page_size, "P2") == expected[-1:]
    assert listed_by_pages(ingest, page_size, "P3") == []


def test_a_token_of_runs_is_none_of_records(ingest: Ingest) -> None:
    with_run(with_run(ingest), "other")
    token = ingest.list_runs(PageRequest(page_size=1)).next_page_token
    with pytest.raises(InvalidArgumentError) as caught:
        ingest.list_request_records(ListRequestRecordsRequest(run=RUN, page_token=token))
    assert caught.value.field_violations[0].field == "page_token"


def filled(ingest: Ingest, run: str) -> None:
    """A run with five rows in two tables, by two writers."""
    ingest.create_run(attrs.evolve(REQUEST, run_id=run))
    ingest.append(appended(1, request_record(), request_record("P2"), run=run)).result()
    ingest.open_stream(stream(run=run)).submit(batch(1)).result()


def test_sealing_checks_the_rows_and_then_nothing_can_be_appended(ingest: Ingest) -> None:
    filled(ingest, RUN)
    with pytest.raises(FailedPreconditionError) as caught:
        ingest.seal_run(SealRunRequest(run=RUN, expected_row_count=6))
    assert caught.value.reason == "ROW_COUNT_MISMATCH"
    assert caught.value.metadata == {"run": RUN, "expectedRowCount": "6", "storedRowCount": "5"}
    assert ingest.get_run(RUN).run.state is RunState.OPEN

    sealed = ingest.seal_run(SealRunRequest(run=RUN, expected_row_count=5))
    assert sealed.state is RunState.SEALED
    assert sealed.seal_time is not None
    assert sealed.seal_time > sealed.create_time
    assert ingest.seal_run(SealRunRequest(run=RUN)) == sealed
    assert ingest.get_run(RUN).run == sealed

    with pytest.raises(FailedPreconditionError) as caught:
        ingest.append(appended(2)).result()
    assert caught.value.reason == "RUN_SEALED"
    with pytest.raises(FailedPreconditionError) as caught:
        ingest.open_stream(stream())
    assert caught.value.reason == "RUN_SEALED"
    assert ingest.append(appended(1, request_record(), request_record("P2"))).result().committed_sequence_number == 1


def test_appends_submitted_before_the_seal_are_in_the_run(ingest: Ingest) -> None:
    with_run(ingest)
    futures = [ingest.append(appended(number)) for number in range(1, 21)]
    ingest.seal_run(SealRunRequest(run=RUN, expected_row_count=20))
    assert all(future.result(0).committed_sequence_number >= number for number, future in enumerate(futures, 1))


def test_deleting_leaves_nothing_of_the_run_and_all_of_the_others(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        filled(store, "gone")
        filled(store, "kept")
        assert store.delete_run("gone") == RunRowCounts(request_record_count=2, sample_count=3)
        with pytest.raises(NotFoundError):
            store.get_run("gone")
        assert store.get_run("kept").row_counts == RunRowCounts(request_record_count=2, sample_count=3)
        assert store.get_run("kept").run.prediction is not None
    tables = rows(
        tmp_path,
        "SELECT table_name FROM duckdb_columns() WHERE schema_name = 'hot' AND column_name = 'run_id'"
        " AND table_name != 'run_changes'",
    )
    assert len(tables) == 17
    for (table,) in tables:
        assert rows(tmp_path, f"SELECT count(*) FROM hot.{table} WHERE run_id = 'gone'") == [(0,)]
    assert rows(tmp_path, "SELECT count(*) FROM counter_samples") == [(3,)]


def test_a_deleted_run_can_be_created_anew_and_numbers_start_again(ingest: Ingest) -> None:
    filled(ingest, RUN)
    ingest.delete_run(RUN)
    ingest.create_run(attrs.evolve(REQUEST, display_name="again"))
    assert ingest.get_run(RUN).row_counts == RunRowCounts()
    assert ingest.append(appended(1, writer="sampler")).result().committed_sequence_number == 1
    assert ingest.open_stream(stream(writer="bench")).submit(batch(1)).result().committed_sequence_number == 1
