"""The request records of a run as measured points of an engine. Pure functions.

Requests of a round run together, so a round counts as a whole or not at all: where one of its requests failed, or was
shorter than in other rounds, the passes of all the others were different ones too.

Each figure is the median over the rounds, beside it their range where there are several. Rounds are few, and something
else that takes the machine in one of them adds to its times and never takes from them: a mean would move with that
round, a median of three does not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean, median

from attrs import field, frozen

from linkbound.domain.engine import EnginePoint, EngineRequest
from linkbound.domain.measured_range import MeasuredRange
from linkbound.domain.records import RequestRecord
from linkbound.domain.words import counted

NS_PER_SECOND = 10**9
DEFAULT_FIRST_CHUNK_TOKENS = 1
"""Tokens of the first chunk where the record does not say: engines stream one at a time."""

Shape = tuple[tuple[int, int], ...]
"""Prompt and output tokens of each request of a round."""


@frozen(kw_only=True)
class SubjectPoint:
    """What the measured rounds of one subject say together, and in words which of them were left out, and why."""

    subject: str
    point: EnginePoint | None
    round_indices: tuple[int, ...]
    left_out: tuple[str, ...]


@frozen(kw_only=True)
class _Round:
    """The requests of one round in the order in which they were sent, or of their positions."""

    index: int
    records: tuple[RequestRecord, ...] = field()
    knows_sends: bool

    @property
    def shape(self) -> Shape:
        return tuple((record.prompt_tokens, record.output_tokens) for record in self.records)


def subject_points(records: Iterable[RequestRecord]) -> tuple[SubjectPoint, ...]:
    """The point of each subject in the order of their names; `point` is None where no round counts.

    Warm-up rounds, whose index is negative, are not measured. Requests arrive in the order in which they were sent, as
    long after the first of their round as the clock of their host says; where rounds do not know that, together.
    """
    rounds: dict[str, dict[int, list[RequestRecord]]] = {}
    for record in records:
        of_subject = rounds.setdefault(record.subject, {})
        if record.round_index >= 0:
            of_subject.setdefault(record.round_index, []).append(record)
    return tuple(
        _subject_point(subject, [_round(index, found) for index, found in sorted(rounds[subject].items())])
        for subject in sorted(rounds)
    )


def _round(index: int, records: list[RequestRecord]) -> _Round:
    sends = [record.send_ns for record in records if record.send_ns is not None]
    clocks = {(record.node, record.boot_id) for record in records}
    knows_sends = len(sends) == len(records) and len(clocks) == 1

    def place(record: RequestRecord) -> tuple[int, int]:
        sent_ns = record.send_ns if knows_sends and record.send_ns is not None else 0
        return sent_ns, record.request_index

    return _Round(index=index, records=tuple(sorted(records, key=place)), knows_sends=knows_sends)


def _subject_point(subject: str, rounds: Sequence[_Round]) -> SubjectPoint:
    faults = {each.index: fault for each in rounds for fault in [_fault(each)] if fault}
    whole = [each for each in rounds if each.index not in faults]
    if not whole:
        return SubjectPoint(subject=subject, point=None, round_indices=(), left_out=_in_words(faults))
    usual = _usual_shape(whole)
    faults.update((each.index, _difference(each, usual)) for each in whole if each.shape != usual)
    kept = [each for each in whole if each.shape == usual]
    return SubjectPoint(
        subject=subject,
        point=_point(subject, usual, kept),
        round_indices=tuple(each.index for each in kept),
        left_out=_in_words(faults),
    )


def _in_words(faults: dict[int, str]) -> tuple[str, ...]:
    return tuple(f"round {index}: {faults[index]}" for index in sorted(faults))


def _fault(measured: _Round) -> str:
    """Why a round does not count; empty where every request of it was answered in full."""
    seen: set[int] = set()
    for record in measured.records:
        name = f"request {record.request_index}"
        if record.request_index in seen:
            return f"{name} is stored more than once"
        seen.add(record.request_index)
        if record.ttft_ns is None or record.output_tokens == 0:
            return f"{name} got no token"
        if record.last_token_ns is None:
            return f"{name} did not finish"
    return ""


def _usual_shape(rounds: Sequence[_Round]) -> Shape:
    """What most rounds asked and got; of several, the one with the most tokens: a request may end early, never late."""
    counts = Counter(each.shape for each in rounds)
    return max(counts, key=lambda shape: (counts[shape], sum(output for _, output in shape), shape))


def _difference(measured: _Round, usual: Shape) -> str:
    if len(measured.records) != len(usual):
        return f"{counted(len(measured.records), 'request')}, {len(usual)} in other rounds"
    record, (prompt_tokens, output_tokens) = next(
        (record, tokens)
        for record, tokens in zip(measured.records, usual, strict=True)
        if (record.prompt_tokens, record.output_tokens) != tokens
    )
    if record.prompt_tokens != prompt_tokens:
        return (
            f"request {record.request_index} has {record.prompt_tokens} prompt tokens, {prompt_tokens} in other rounds"
        )
    return f"request {record.request_index} got {record.output_tokens} tokens, {output_tokens} in other rounds"


def _point(subject: str, shape: Shape, rounds: Sequence[_Round]) -> EnginePoint:
    arrivals: Sequence[float | None] = [None] * len(shape)
    if all(each.knows_sends for each in rounds):
        arrivals = _medians([_arrival_seconds(each) for each in rounds])
    ttft_seconds, speeds = [_sorted_ttft_seconds(each) for each in rounds], _mean_speeds(rounds)
    is_repeated = len(rounds) > 1
    return EnginePoint(
        label=subject,
        requests=tuple(
            EngineRequest(prompt_tokens=prompt_tokens, output_tokens=output_tokens, arrival_seconds=arrival)
            for (prompt_tokens, output_tokens), arrival in zip(shape, arrivals, strict=True)
        ),
        ttft_seconds=_medians(ttft_seconds),
        ttft_range_seconds=tuple(_range(column) for column in zip(*ttft_seconds, strict=True)) if is_repeated else (),
        output_tokens_per_second=median(speeds) if speeds else None,
        output_range_tokens_per_second=_range(speeds) if len(speeds) > 1 else None,
    )


def _medians(rows: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """The median over the rounds of each place; those of rising rows rise."""
    return tuple(median(column) for column in zip(*rows, strict=True))


def _arrival_seconds(measured: _Round) -> list[float]:
    sends = [record.send_ns for record in measured.records if record.send_ns is not None]
    return [(sent - sends[0]) / NS_PER_SECOND for sent in sends]


def _sorted_ttft_seconds(measured: _Round) -> list[float]:
    """Rising: requests that are sent together reach an engine in any order, so that places compare, not requests."""
    return sorted(record.ttft_ns / NS_PER_SECOND for record in measured.records if record.ttft_ns is not None)


def _range(values: Sequence[float]) -> MeasuredRange:
    return MeasuredRange(least=min(values), largest=max(values))


def _mean_speeds(rounds: Sequence[_Round]) -> list[float]:
    """The mean over the requests, of each round in which every request has a speed."""
    speeds = [list(_speeds(each)) for each in rounds]
    return [fmean(found) for each, found in zip(rounds, speeds, strict=True) if len(found) == len(each.records)]


def _speeds(measured: _Round) -> Iterator[float]:
    """Tokens per second after the first chunk, of each request that has such tokens."""
    for record in measured.records:
        first_chunk_tokens = record.first_chunk_tokens or DEFAULT_FIRST_CHUNK_TOKENS
        span_ns = (record.last_token_ns or 0) - (record.ttft_ns or 0)
        if span_ns > 0 and record.output_tokens > first_chunk_tokens:
            yield (record.output_tokens - first_chunk_tokens) * NS_PER_SECOND / span_ns
