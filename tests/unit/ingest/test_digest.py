"""Equal content has an equal digest, other content another one."""

import hashlib

import attrs
import pytest

from ingest_service.core.digest import digest_of_batch, digest_of_records, digest_of_run, names_of_series
from linkbound.domain.estimate import Effect, Estimate
from linkbound.domain.metric import Metric, Spread
from linkbound.domain.prediction import PredictedValue, Prediction
from linkbound.domain.records import MetricAggregate, RequestRecord, TrainingStep
from linkbound.domain.run import CreateRunRequest, Setting
from linkbound.domain.samples import UNKNOWN_READ_DURATION_NS, SampleBatch, SampleColumns, SeriesDescriptor

RECORD = RequestRecord(subject="P1", round_index=0, request_index=0, prompt_tokens=8, output_tokens=8, send_ns=1)
TX = SeriesDescriptor(metric="tx", node="spark1")
RX = SeriesDescriptor(metric="rx", node="spark1")


def batch(*columns: SampleColumns) -> SampleBatch:
    return SampleBatch(sequence_number=1, columns=columns)


def test_the_digest_stays_what_ledgers_already_hold() -> None:
    text = b"RequestRecord(output_tokens=8,prompt_tokens=8,request_index=0,round_index=0,send_ns=1,subject='P1')"
    expected = hashlib.blake2b(len(text).to_bytes(8, "big") + text, digest_size=16)
    assert digest_of_records([RECORD]) == expected.digest()


@pytest.mark.parametrize(
    "other",
    [
        [attrs.evolve(RECORD, send_ns=2)],
        [attrs.evolve(RECORD, ttft_ns=1)],
        [attrs.evolve(RECORD, send_ns=None)],
        [attrs.evolve(RECORD, send_time_unix_ns=0)],
        [attrs.evolve(RECORD, node="spark1")],
        [attrs.evolve(RECORD, boot_id="spark1")],
        [attrs.evolve(RECORD, subject="P2")],
        [RECORD, RECORD],
        [],
        [TrainingStep(subject="P1", node_count=1, step_seconds=1.0)],
    ],
)
def test_other_records_have_another_digest(other: list[RequestRecord]) -> None:
    assert digest_of_records(other) != digest_of_records([RECORD])


def test_records_that_run_together_as_text_differ() -> None:
    def aggregate(subject: str, source: str) -> MetricAggregate:
        return MetricAggregate(metric=Metric.TTFT_SECONDS, subject=subject, value=Spread(mean=1.0), source=source)

    assert digest_of_records([aggregate("a,source=b", "c")]) != digest_of_records([aggregate("a", "b,source=c")])
    assert digest_of_records([aggregate("a'", "b")]) != digest_of_records([aggregate("a", "'b")])


def test_a_whole_number_counts_the_same_as_int_and_as_float() -> None:
    as_int = MetricAggregate(metric=Metric.TTFT_SECONDS, subject="P1", value=Spread(mean=2))
    as_float = MetricAggregate(metric=Metric.TTFT_SECONDS, subject="P1", value=Spread(mean=2.0))
    close = MetricAggregate(metric=Metric.TTFT_SECONDS, subject="P1", value=Spread(mean=2.0000000000000004))
    assert digest_of_records([as_int]) == digest_of_records([as_float])
    assert digest_of_records([close]) != digest_of_records([as_float])


def digest(content: SampleBatch, *series: SeriesDescriptor) -> bytes:
    return digest_of_batch(content, names_of_series(series))


def test_series_count_by_what_they_are_and_not_by_their_index() -> None:
    first = batch(SampleColumns(series_index=0, time_ns=(1,), value=(2,)))
    second = batch(SampleColumns(series_index=1, time_ns=(1,), value=(2,)))
    assert digest(first, TX, RX) == digest(second, RX, TX)
    assert digest(first, TX, RX) != digest(second, TX, RX)
    assert digest(first, TX) != digest(first, attrs.evolve(TX, boot_id="b"))


def test_the_order_of_the_series_in_a_batch_does_not_count_and_one_without_readings_is_nothing() -> None:
    tx = SampleColumns(series_index=0, time_ns=(1,), value=(2,))
    rx = SampleColumns(series_index=1, time_ns=(3,), value=(4,))
    assert digest(batch(tx, rx), TX, RX) == digest(batch(rx, tx), TX, RX)
    empty = SampleColumns(series_index=1, time_ns=(), value=())
    assert digest(batch(tx, empty), TX, RX) == digest(batch(tx), TX, RX)


def test_durations_of_which_none_is_known_are_none() -> None:
    without = SampleColumns(series_index=0, time_ns=(1, 2), value=(3, 4))
    unknown = attrs.evolve(without, read_duration_ns=(UNKNOWN_READ_DURATION_NS,) * 2)
    partly = attrs.evolve(without, read_duration_ns=(UNKNOWN_READ_DURATION_NS, 5))
    assert digest(batch(without), TX) == digest(batch(unknown), TX)
    assert digest(batch(without), TX) != digest(batch(partly), TX)


def test_readings_do_not_move_between_columns_and_series_unnoticed() -> None:
    together = batch(SampleColumns(series_index=0, time_ns=(1, 2), value=(3, 4)))
    shifted = batch(SampleColumns(series_index=0, time_ns=(1,), value=(2, 3, 4)))
    split = batch(
        SampleColumns(series_index=0, time_ns=(1,), value=(3,)), SampleColumns(series_index=1, time_ns=(2,), value=(4,))
    )
    with_durations = batch(SampleColumns(series_index=0, time_ns=(1, 2), value=(3, 4), read_duration_ns=(0, 0)))
    assert len({digest(b, TX, RX) for b in (together, shifted, split, with_durations)}) == 4


def test_malformed_batches_have_digests_too() -> None:
    unknown = batch(SampleColumns(series_index=7, time_ns=(1,), value=(2,)))
    unequal = batch(SampleColumns(series_index=0, time_ns=(1,), value=()))
    assert digest(unknown, TX) != digest(unequal, TX)
    assert digest(unknown, TX) == digest(unknown, TX)


RUN = CreateRunRequest(
    run_id="r",
    settings=(Setting(key="a", value="1"), Setting(key="b", value="2")),
    prediction=Prediction(
        estimator_version="1",
        values=(
            PredictedValue(
                metric=Metric.TTFT_SECONDS,
                subject="P1",
                estimate=Estimate(lower=0.0, effects_left_out=(Effect.RATE_RAMP,)),
            ),
        ),
    ),
)


def test_the_order_of_settings_is_not_content_of_a_run() -> None:
    again = attrs.evolve(RUN, settings=tuple(reversed(RUN.settings)))
    assert digest_of_run(again) == digest_of_run(RUN)


@pytest.mark.parametrize(
    "other",
    [
        attrs.evolve(RUN, display_name="x"),
        attrs.evolve(RUN, prediction=None),
        attrs.evolve(RUN, settings=RUN.settings[:1]),
        attrs.evolve(RUN, settings=(Setting(key="a", value="2"), Setting(key="b", value="1"))),
    ],
)
def test_everything_else_is(other: CreateRunRequest) -> None:
    assert digest_of_run(other) != digest_of_run(RUN)
