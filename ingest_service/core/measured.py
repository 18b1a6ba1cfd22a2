"""Folds the records of a run into one measured value per metric and subject, with its spread over rounds.

Where several kinds of records state the same metric of the same subject, the finer one counts: request records and
numbered training steps before aggregates and means that a source printed. Of two aggregates the one stored last
counts. Definitions of the metrics: `docs/formulas.md`, measured against predicted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from itertools import chain, groupby
from typing import TypeVar

from attrs import frozen

from linkbound.domain.metric import Metric, Spread
from linkbound.domain.records import CollectiveResult, MetricAggregate, RequestRecord, TrainingStep

NS_PER_SECOND = 1e9
DEFAULT_FIRST_CHUNK_TOKENS = 1
"""Tokens of the first chunk where the record does not say: engines stream one at a time."""

T = TypeVar("T")
K = TypeVar("K", str, int, tuple[str, int])
MeasuredKey = tuple[Metric, str]
"""A metric and its subject."""


@frozen(kw_only=True)
class MeasuredRecords:
    """Everything that was measured in a run, each kind in the order in which it was stored."""

    aggregates: tuple[MetricAggregate, ...] = ()
    requests: tuple[RequestRecord, ...] = ()
    collectives: tuple[CollectiveResult, ...] = ()
    training_steps: tuple[TrainingStep, ...] = ()


@frozen(kw_only=True)
class MeasuredValue:
    """One metric of one subject as measured."""

    metric: Metric
    subject: str
    value: Spread

    @property
    def key(self) -> MeasuredKey:
        """What it is a value of."""
        return self.metric, self.subject


class ExclusionReason(Enum):
    """Why records do not count."""

    UNFINISHED_REQUESTS = "UNFINISHED_REQUESTS"
    WRONG_COLLECTIVE_VALUES = "WRONG_COLLECTIVE_VALUES"


@frozen(kw_only=True)
class Exclusion:
    """Records of one subject that do not count, of how many."""

    subject: str
    reason: ExclusionReason
    excluded_count: int
    record_count: int


@frozen(kw_only=True)
class Measurements:
    """The folded records: one value per metric and subject, ordered by subject, then metric.

    `superseded` are values that a finer or later one of the same metric and subject replaced; `exclusions` are records
    that count nowhere.
    """

    values: tuple[MeasuredValue, ...]
    superseded: tuple[MeasuredValue, ...] = ()
    exclusions: tuple[Exclusion, ...] = ()


def fold(records: MeasuredRecords) -> Measurements:
    """Folds `records` into values; what cannot count is named beside them."""
    coarse_to_fine = chain(
        (MeasuredValue(metric=a.metric, subject=a.subject, value=a.value) for a in records.aggregates),
        _from_training_steps(records.training_steps),
        _from_collectives(records.collectives),
        _from_requests(records.requests),
    )
    by_key: dict[MeasuredKey, MeasuredValue] = {}
    superseded: list[MeasuredValue] = []
    for value in coarse_to_fine:
        if value.key in by_key:
            superseded.append(by_key[value.key])
        by_key[value.key] = value
    return Measurements(
        values=tuple(sorted(by_key.values(), key=lambda value: (value.subject, _POSITION[value.metric]))),
        superseded=tuple(superseded),
        exclusions=(*_unfinished_requests(records.requests), *_wrong_collectives(records.collectives)),
    )


_POSITION = {metric: position for position, metric in enumerate(Metric)}


def decode_tokens_per_second(record: RequestRecord) -> float | None:
    """Decode speed: tokens after the first chunk over the time after the first token; None where there are none."""
    if record.ttft_ns is None or record.last_token_ns is None:
        return None
    tokens = record.output_tokens - (record.first_chunk_tokens or DEFAULT_FIRST_CHUNK_TOKENS)
    seconds = (record.last_token_ns - record.ttft_ns) / NS_PER_SECOND
    return tokens / seconds if tokens > 0 and seconds > 0 else None


def _from_requests(records: Sequence[RequestRecord]) -> Iterator[MeasuredValue]:
    """TTFT of lone requests, last and mean TTFT of those that arrive together, decode speed: mean per round."""
    measured = [record for record in records if record.round_index >= 0]
    for subject, of_subject in _grouped(measured, lambda record: record.subject):
        rounds = [tuple(of_round) for _, of_round in _grouped(of_subject, lambda record: record.round_index)]
        for metric, of_round in _REQUEST_METRICS:
            values = [value for value in map(of_round, rounds) if value is not None]
            if values:
                yield MeasuredValue(metric=metric, subject=subject, value=spread(values))


def _lone_ttft_seconds(requests: Sequence[RequestRecord]) -> float | None:
    ttfts = _ttfts_seconds(requests)
    return ttfts[0] if ttfts is not None and len(ttfts) == 1 else None


def _last_ttft_seconds(requests: Sequence[RequestRecord]) -> float | None:
    ttfts = _ttfts_seconds(requests)
    return max(ttfts) if ttfts is not None and len(ttfts) > 1 else None


def _mean_ttft_seconds(requests: Sequence[RequestRecord]) -> float | None:
    ttfts = _ttfts_seconds(requests)
    return _mean(ttfts) if ttfts is not None and len(ttfts) > 1 else None


def _round_decode_tokens_per_second(requests: Sequence[RequestRecord]) -> float | None:
    speeds = [speed for speed in map(decode_tokens_per_second, requests) if speed is not None]
    return _mean(speeds) if speeds else None


def _ttfts_seconds(requests: Sequence[RequestRecord]) -> list[float] | None:
    """TTFTs of a round; None where one request never got its token, since neither last nor mean is known then."""
    ttfts = [request.ttft_ns / NS_PER_SECOND for request in requests if request.ttft_ns is not None]
    return ttfts if len(ttfts) == len(requests) else None


_REQUEST_METRICS: tuple[tuple[Metric, Callable[[Sequence[RequestRecord]], float | None]], ...] = (
    (Metric.TTFT_SECONDS, _lone_ttft_seconds),
    (Metric.LAST_TTFT_SECONDS, _last_ttft_seconds),
    (Metric.MEAN_TTFT_SECONDS, _mean_ttft_seconds),
    (Metric.DECODE_TOKENS_PER_SECOND, _round_decode_tokens_per_second),
)


def _unfinished_requests(records: Sequence[RequestRecord]) -> Iterator[Exclusion]:
    for subject, of_subject in _grouped(records, lambda record: record.subject):
        measured = [record for record in of_subject if record.round_index >= 0]
        unfinished_count = sum(record.last_token_ns is None for record in measured)
        if unfinished_count:
            yield Exclusion(
                subject=subject,
                reason=ExclusionReason.UNFINISHED_REQUESTS,
                excluded_count=unfinished_count,
                record_count=len(measured),
            )


def _from_collectives(results: Sequence[CollectiveResult]) -> Iterator[MeasuredValue]:
    """Bus bandwidth over the rows of a subject; of a table over sizes, over the rows of the largest payload.

    A link shows its rate with large payloads only, so a mean over sizes would say nothing about it.
    """
    right = [result for result in results if not result.error_count]
    for subject, of_subject in _grouped(right, lambda result: result.subject):
        largest_bytes = max(result.message_bytes or 0 for result in of_subject)
        values = [
            result.bus_bandwidth_bytes_per_second
            for result in of_subject
            if (result.message_bytes or 0) == largest_bytes
        ]
        yield MeasuredValue(
            metric=Metric.BUS_BANDWIDTH_BYTES_PER_SECOND, subject=subject, value=_spread_of_means(values)
        )


def _wrong_collectives(results: Sequence[CollectiveResult]) -> Iterator[Exclusion]:
    for subject, of_subject in _grouped(results, lambda result: result.subject):
        wrong_count = sum(bool(result.error_count) for result in of_subject)
        if wrong_count:
            yield Exclusion(
                subject=subject,
                reason=ExclusionReason.WRONG_COLLECTIVE_VALUES,
                excluded_count=wrong_count,
                record_count=len(of_subject),
            )


_TRAINING_METRICS: tuple[tuple[Metric, Callable[[TrainingStep], float | None]], ...] = (
    (Metric.TRAINING_STEP_SECONDS, lambda step: step.step_seconds),
    (Metric.TRAINING_TOKENS_PER_SECOND, lambda step: step.tokens_per_second),
    (Metric.TRAINING_SAMPLES_PER_SECOND, lambda step: step.samples_per_second),
    (Metric.TRAINING_ELAPSED_SECONDS, lambda step: step.elapsed_seconds),
)


def _from_training_steps(steps: Sequence[TrainingStep]) -> Iterator[MeasuredValue]:
    """Spread over the numbered steps that state the metric; without any, over the means that do."""
    for subject, of_subject in _grouped(steps, lambda step: step.subject):
        for metric, value_of in _TRAINING_METRICS:
            numbered = _present(value_of(step) for step in of_subject if step.step_index is not None)
            means = _present(value_of(step) for step in of_subject if step.step_index is None)
            if numbered:
                yield MeasuredValue(metric=metric, subject=subject, value=spread(numbered))
            elif means:
                yield MeasuredValue(metric=metric, subject=subject, value=_spread_of_means(means))


def spread(values: Sequence[float]) -> Spread:
    """Mean, smallest and largest of at least one value."""
    return Spread(mean=_mean(values), minimum=min(values), maximum=max(values), round_count=len(values))


def _spread_of_means(values: Sequence[float]) -> Spread:
    """Spread of rows that are means already: of a single one neither range nor rounds are known."""
    return spread(values) if len(values) > 1 else Spread(mean=values[0])


def _mean(values: Sequence[float]) -> float:
    """Arithmetic mean, held within the range of the values, which rounding could leave by one unit."""
    return min(max(math.fsum(values) / len(values), min(values)), max(values))


def _present(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _grouped(items: Iterable[T], key: Callable[[T], K]) -> Iterator[tuple[K, list[T]]]:
    """The items of each key, in their order; keys ascending."""
    for name, group in groupby(sorted(items, key=key), key=key):
        yield name, list(group)
