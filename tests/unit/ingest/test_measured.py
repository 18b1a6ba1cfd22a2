"""Records folded into one value per metric and subject (physics: measured against predicted)."""

import pytest

from ingest_service.core.measured import (
    Exclusion,
    ExclusionReason,
    MeasuredRecords,
    Measurements,
    decode_tokens_per_second,
    fold,
)
from linkbound.domain.metric import Metric, Spread
from linkbound.domain.records import CollectiveResult, MetricAggregate, RequestRecord, TrainingStep

SECOND_NS = 10**9


def request(
    round_index: int,
    ttft_seconds: float | None,
    *,
    request_index: int = 0,
    decode_seconds: float | None = 10.0,
    output_tokens: int = 101,
    first_chunk_tokens: int | None = None,
    subject: str = "P1",
) -> RequestRecord:
    ttft_ns = None if ttft_seconds is None else round(ttft_seconds * SECOND_NS)
    finished = ttft_ns is not None and decode_seconds is not None
    return RequestRecord(
        subject=subject,
        round_index=round_index,
        request_index=request_index,
        prompt_tokens=1024,
        output_tokens=output_tokens,
        send_ns=0,
        ttft_ns=ttft_ns,
        last_token_ns=(ttft_ns or 0) + round((decode_seconds or 0) * SECOND_NS) if finished else None,
        first_chunk_tokens=first_chunk_tokens,
    )


def aggregate(metric: Metric, mean: float, subject: str = "P1") -> MetricAggregate:
    return MetricAggregate(metric=metric, subject=subject, value=Spread(mean=mean))


def spreads(measurements: Measurements) -> dict[tuple[Metric, str], Spread]:
    return {value.key: value.value for value in measurements.values}


def test_lone_requests_give_ttft_and_decode_speed_over_rounds() -> None:
    found = spreads(fold(MeasuredRecords(requests=(request(0, 0.5), request(1, 0.75), request(2, 1.0)))))
    assert found == {
        (Metric.TTFT_SECONDS, "P1"): Spread(mean=0.75, minimum=0.5, maximum=1.0, round_count=3),
        (Metric.DECODE_TOKENS_PER_SECOND, "P1"): Spread(mean=10.0, minimum=10.0, maximum=10.0, round_count=3),
    }


def test_requests_that_arrive_together_give_last_and_mean_ttft_and_never_a_lone_one() -> None:
    records = tuple(
        request(round_index, ttft, request_index=index)
        for round_index, ttfts in enumerate([(1.0, 2.0, 3.0, 6.0), (2.0, 3.0, 4.0, 7.0)])
        for index, ttft in enumerate(ttfts)
    )
    found = spreads(fold(MeasuredRecords(requests=records)))
    assert found[Metric.LAST_TTFT_SECONDS, "P1"] == Spread(mean=6.5, minimum=6.0, maximum=7.0, round_count=2)
    assert found[Metric.MEAN_TTFT_SECONDS, "P1"] == Spread(mean=3.5, minimum=3.0, maximum=4.0, round_count=2)
    assert (Metric.TTFT_SECONDS, "P1") not in found


def test_warm_up_rounds_do_not_count() -> None:
    found = spreads(fold(MeasuredRecords(requests=(request(-1, 9.0), request(0, 1.0)))))
    assert found[Metric.TTFT_SECONDS, "P1"] == Spread(mean=1.0, minimum=1.0, maximum=1.0, round_count=1)


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (request(0, 1.0, output_tokens=101, decode_seconds=10.0), 10.0),
        (request(0, 1.0, output_tokens=101, decode_seconds=10.0, first_chunk_tokens=5), 9.6),
        (request(0, 1.0, output_tokens=1), None),
        (request(0, 1.0, decode_seconds=0.0), None),
        (request(0, 1.0, decode_seconds=None), None),
        (request(0, None), None),
    ],
)
def test_decode_speed_leaves_out_the_first_chunk(record: RequestRecord, expected: float | None) -> None:
    assert decode_tokens_per_second(record) == expected


def test_decode_speed_of_a_round_is_the_mean_of_its_requests() -> None:
    records = (
        request(0, 1.0, request_index=0, decode_seconds=10.0),
        request(0, 1.0, request_index=1, decode_seconds=5.0),
    )
    found = spreads(fold(MeasuredRecords(requests=records)))
    assert found[Metric.DECODE_TOKENS_PER_SECOND, "P1"].mean == 15.0


def test_a_round_with_a_request_that_got_no_token_has_neither_last_nor_mean_ttft() -> None:
    whole = (request(0, 1.0, request_index=0), request(0, 3.0, request_index=1))
    broken = (request(1, 1.0, request_index=0), request(1, None, request_index=1))
    measurements = fold(MeasuredRecords(requests=whole + broken))
    found = spreads(measurements)
    assert found[Metric.LAST_TTFT_SECONDS, "P1"] == Spread(mean=3.0, minimum=3.0, maximum=3.0, round_count=1)
    assert found[Metric.MEAN_TTFT_SECONDS, "P1"].round_count == 1
    assert measurements.exclusions == (
        Exclusion(subject="P1", reason=ExclusionReason.UNFINISHED_REQUESTS, excluded_count=1, record_count=4),
    )


def test_a_request_that_did_not_finish_keeps_its_ttft_and_has_no_decode_speed() -> None:
    measurements = fold(MeasuredRecords(requests=(request(0, 1.0), request(1, 3.0, decode_seconds=None))))
    found = spreads(measurements)
    assert found[Metric.TTFT_SECONDS, "P1"].mean == 2.0
    assert found[Metric.DECODE_TOKENS_PER_SECOND, "P1"].round_count == 1
    assert measurements.exclusions[0].excluded_count == 1


def test_an_unfinished_warm_up_is_no_news() -> None:
    assert fold(MeasuredRecords(requests=(request(-1, None), request(0, 1.0)))).exclusions == ()


def collective(
    bandwidth: float, *, message_bytes: int | None = None, error_count: int | None = None
) -> CollectiveResult:
    return CollectiveResult(
        subject="4 nodes",
        rank_count=4,
        message_bytes=message_bytes,
        bus_bandwidth_bytes_per_second=bandwidth,
        error_count=error_count,
    )


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ((collective(22e9),), Spread(mean=22e9)),
        (
            (collective(20e9), collective(24e9)),
            Spread(mean=22e9, minimum=20e9, maximum=24e9, round_count=2),
        ),
        (
            (
                collective(1e9, message_bytes=1024),
                collective(20e9, message_bytes=2**33),
                collective(24e9, message_bytes=2**33),
            ),
            Spread(mean=22e9, minimum=20e9, maximum=24e9, round_count=2),
        ),
        ((collective(3e9), collective(22e9, message_bytes=2**33)), Spread(mean=22e9)),
    ],
)
def test_bus_bandwidth_is_that_of_the_largest_payload(results: tuple[CollectiveResult, ...], expected: Spread) -> None:
    found = spreads(fold(MeasuredRecords(collectives=results)))
    assert found == {(Metric.BUS_BANDWIDTH_BYTES_PER_SECOND, "4 nodes"): expected}


def test_collectives_with_wrong_values_do_not_count() -> None:
    measurements = fold(MeasuredRecords(collectives=(collective(22e9, error_count=0), collective(99e9, error_count=3))))
    assert spreads(measurements)[Metric.BUS_BANDWIDTH_BYTES_PER_SECOND, "4 nodes"] == Spread(mean=22e9)
    assert measurements.exclusions == (
        Exclusion(subject="4 nodes", reason=ExclusionReason.WRONG_COLLECTIVE_VALUES, excluded_count=1, record_count=2),
    )


def test_a_mean_of_training_steps_states_what_its_source_states() -> None:
    step = TrainingStep(
        subject="full", node_count=4, step_seconds=14.501, samples_per_second=0.28, elapsed_seconds=3557.0
    )
    assert spreads(fold(MeasuredRecords(training_steps=(step,)))) == {
        (Metric.TRAINING_STEP_SECONDS, "full"): Spread(mean=14.501),
        (Metric.TRAINING_SAMPLES_PER_SECOND, "full"): Spread(mean=0.28),
        (Metric.TRAINING_ELAPSED_SECONDS, "full"): Spread(mean=3557.0),
    }


def test_numbered_steps_count_before_a_mean_for_the_metrics_that_they_state() -> None:
    steps = (
        TrainingStep(subject="full", node_count=4, step_index=0, step_seconds=2.0),
        TrainingStep(subject="full", node_count=4, step_index=1, step_seconds=4.0),
        TrainingStep(subject="full", node_count=4, step_seconds=9.0, tokens_per_second=9691.3),
    )
    assert spreads(fold(MeasuredRecords(training_steps=steps))) == {
        (Metric.TRAINING_STEP_SECONDS, "full"): Spread(mean=3.0, minimum=2.0, maximum=4.0, round_count=2),
        (Metric.TRAINING_TOKENS_PER_SECOND, "full"): Spread(mean=9691.3),
    }


def test_single_records_count_before_aggregates_and_the_later_aggregate_counts() -> None:
    measurements = fold(
        MeasuredRecords(
            aggregates=(
                aggregate(Metric.TTFT_SECONDS, 9.0),
                aggregate(Metric.MEAN_TTFT_SECONDS, 8.0),
                aggregate(Metric.MEAN_TTFT_SECONDS, 7.0),
            ),
            requests=(request(0, 1.0),),
        )
    )
    found = spreads(measurements)
    assert found[Metric.TTFT_SECONDS, "P1"].mean == 1.0
    assert found[Metric.MEAN_TTFT_SECONDS, "P1"].mean == 7.0
    assert {(value.metric, value.value.mean) for value in measurements.superseded} == {
        (Metric.TTFT_SECONDS, 9.0),
        (Metric.MEAN_TTFT_SECONDS, 8.0),
    }


def test_values_come_by_subject_then_by_metric() -> None:
    measurements = fold(
        MeasuredRecords(
            aggregates=(
                aggregate(Metric.DECODE_TOKENS_PER_SECOND, 1.0, "P2"),
                aggregate(Metric.TTFT_SECONDS, 1.0, "P2"),
                aggregate(Metric.DECODE_TOKENS_PER_SECOND, 1.0, "P1"),
            )
        )
    )
    assert [value.key for value in measurements.values] == [
        (Metric.DECODE_TOKENS_PER_SECOND, "P1"),
        (Metric.TTFT_SECONDS, "P2"),
        (Metric.DECODE_TOKENS_PER_SECOND, "P2"),
    ]


def test_the_mean_of_equal_rounds_lies_within_their_range() -> None:
    ttft_ns = 100_000_001
    records = tuple(request(round_index, ttft_ns / SECOND_NS) for round_index in range(7))
    spread = spreads(fold(MeasuredRecords(requests=records)))[Metric.TTFT_SECONDS, "P1"]
    assert spread.minimum == spread.mean == spread.maximum == ttft_ns / SECOND_NS
