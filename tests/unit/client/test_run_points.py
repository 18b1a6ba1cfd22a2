"""Points of an engine out of request records: which rounds count, and what they say together."""

from __future__ import annotations

import random

import pytest
from attrs import evolve

from linkbound.client.run_points import SubjectPoint, subject_points
from linkbound.domain.engine import EnginePoint
from linkbound.domain.measured_range import MeasuredRange
from linkbound.domain.records import RequestRecord
from linkbound.domain.rules import violations_of

MS = 10**6


def record(round_index: int, request_index: int = 0, *, ttft_ms: int = 1000, sent_ms: int | None = 0) -> RequestRecord:
    return RequestRecord(
        subject="P4",
        round_index=round_index,
        request_index=request_index,
        prompt_tokens=2048,
        output_tokens=64,
        send_ns=None if sent_ms is None else 10**12 + round_index * 10**10 + sent_ms * MS,
        ttft_ns=ttft_ms * MS,
        last_token_ns=(ttft_ms + 3150) * MS,
        node="host",
        boot_id="boot",
    )


def only(records: list[RequestRecord]) -> SubjectPoint:
    (found,) = subject_points(records)
    return found


def point(records: list[RequestRecord]) -> EnginePoint:
    found = only(records).point
    assert found is not None
    assert list(violations_of(found)) == []
    return found


def test_each_figure_is_the_median_of_the_measured_rounds() -> None:
    """Warm-up left out; one of three rounds is disturbed, and moves nothing."""
    found = only([record(-1, ttft_ms=9000), record(0, ttft_ms=1010), record(1, ttft_ms=5000), record(2, ttft_ms=1030)])
    assert found.round_indices == (0, 1, 2)
    assert found.left_out == ()
    assert found.point is not None
    assert found.point.label == "P4"
    assert found.point.ttft_seconds == (1.03,)
    assert found.point.ttft_range_seconds == (MeasuredRange(least=1.01, largest=5.0),)
    # 63 tokens in 3.15 s.
    assert found.point.output_tokens_per_second == pytest.approx(20.0)
    assert [request.arrival_seconds for request in found.point.requests] == [0.0]


def test_requests_stand_in_the_order_of_their_sends_and_ttfts_rise() -> None:
    rounds = [
        [record(0, 0, sent_ms=4, ttft_ms=300), record(0, 1, sent_ms=0, ttft_ms=700)],
        [record(1, 0, sent_ms=0, ttft_ms=500), record(1, 1, sent_ms=8, ttft_ms=400)],
        [record(2, 0, sent_ms=6, ttft_ms=900), record(2, 1, sent_ms=0, ttft_ms=350)],
    ]
    found = point([each for one in rounds for each in one])
    assert [request.arrival_seconds for request in found.requests] == [0.0, 0.006]
    # Sorted in each round: 300 and 700, 400 and 500, 350 and 900.
    assert found.ttft_seconds == (0.35, 0.7)
    assert found.ttft_range_seconds == (
        MeasuredRange(least=0.3, largest=0.4),
        MeasuredRange(least=0.5, largest=0.9),
    )


def test_rounds_whose_speeds_differ_have_a_range_of_them() -> None:
    """63 tokens in 3.15 s, in 2.1 s and in 6.3 s."""
    ends = {0: 3150, 1: 2100, 2: 6300}
    rounds = [evolve(record(index), last_token_ns=(1000 + end) * MS) for index, end in ends.items()]
    found = point(rounds)
    assert found.output_tokens_per_second == pytest.approx(20.0)
    speeds = found.output_range_tokens_per_second
    assert speeds is not None
    assert (speeds.least, speeds.largest) == pytest.approx((10.0, 30.0))


def test_a_single_round_tells_no_range() -> None:
    found = point([record(0)])
    assert found.ttft_range_seconds == ()
    assert found.output_range_tokens_per_second is None


def test_unlike_requests_go_with_their_sends() -> None:
    short = evolve(record(0, 0, sent_ms=5, ttft_ms=2000), prompt_tokens=16)
    found = point([short, record(0, 1, sent_ms=0)])
    assert [request.prompt_tokens for request in found.requests] == [2048, 16]


@pytest.mark.parametrize(
    "second",
    [
        record(0, 1, sent_ms=None),
        evolve(record(0, 1, sent_ms=3), node="another"),
        evolve(record(0, 1, sent_ms=3), boot_id="later"),
    ],
)
def test_without_one_clock_requests_arrive_together(second: RequestRecord) -> None:
    found = point([second, record(0, 0)])
    assert [request.arrival_seconds for request in found.requests] == [None, None]


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (evolve(record(1, 1), ttft_ns=None, last_token_ns=None), "round 1: request 1 got no token"),
        (evolve(record(1, 1), output_tokens=0), "round 1: request 1 got no token"),
        (evolve(record(1, 1), last_token_ns=None), "round 1: request 1 did not finish"),
        (evolve(record(1, 1), output_tokens=12), "round 1: request 1 got 12 tokens, 64 in other rounds"),
        (
            evolve(record(1, 1), prompt_tokens=2047),
            "round 1: request 1 has 2047 prompt tokens, 2048 in other rounds",
        ),
        (record(1, 0), "round 1: request 0 is stored more than once"),
    ],
)
def test_a_round_with_a_request_that_failed_or_was_short_is_left_out_and_named(
    broken: RequestRecord, words: str
) -> None:
    sound = [record(index, request, ttft_ms=1000 + index) for index in (0, 2) for request in (0, 1)]
    found = only([*sound, record(1, 0), broken])
    assert found.round_indices == (0, 2)
    assert found.left_out == (words,)
    assert found.point is not None
    assert found.point.ttft_seconds == pytest.approx((1.001, 1.001))


def test_a_request_that_is_missing_leaves_its_round_out() -> None:
    found = only([*(record(index, request) for index in (0, 2) for request in (0, 1)), record(1)])
    assert found.left_out == ("round 1: 1 request, 2 in other rounds",)


def test_of_two_rounds_that_differ_the_longer_counts() -> None:
    found = only([evolve(record(0), output_tokens=12), record(1)])
    assert found.round_indices == (1,)


def test_a_subject_without_a_sound_round_has_no_point() -> None:
    found = only([record(-1), evolve(record(0), last_token_ns=None)])
    assert found.point is None
    assert found.left_out == ("round 0: request 0 did not finish",)
    assert only([record(-1)]).point is None


def test_tokens_of_the_first_chunk_are_not_of_the_speed() -> None:
    assert point([evolve(record(0), first_chunk_tokens=4)]).output_tokens_per_second == pytest.approx(60 / 3.15)


@pytest.mark.parametrize(
    "ended",
    [
        evolve(record(0), output_tokens=1),
        evolve(record(0), last_token_ns=1000 * MS),
        evolve(record(0), first_chunk_tokens=64),
    ],
)
def test_what_ends_with_its_first_chunk_has_no_speed(ended: RequestRecord) -> None:
    assert point([ended]).output_tokens_per_second is None


def test_the_order_in_which_records_come_is_no_matter() -> None:
    records = [
        evolve(record(index, request, sent_ms=request, ttft_ms=100 * request + index + 1), subject=subject)
        for subject in ("P2", "P4")
        for index in range(4)
        for request in range(3)
    ]
    expected = subject_points(records)
    assert [found.subject for found in expected] == ["P2", "P4"]
    random.Random(4).shuffle(records)
    assert subject_points(records) == expected
