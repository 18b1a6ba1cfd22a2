"""A schedule as people read it: who is in which pass, and when first tokens come."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from attrs import frozen

from linkbound.cli import text
from linkbound.cli.table import Column, pairs, right, table
from linkbound.domain.engine import EngineRequest
from linkbound.domain.estimate import Estimate
from linkbound.domain.layout import layout_name
from linkbound.domain.schedule import RequestTimes, SchedulePass, ScheduleSummary, TtftEstimates
from linkbound.domain.words import counted

_SHOWN_ROWS = 48
"""Rows of a table at most, and columns of the chart: what is beyond is for --json."""
_SHOWN_SHARES = 6
_READS, _GENERATES, _WAITS, _IS_GONE = "#", "+", ".", " "
_LEGEND = "one column for each row below: # reads its prompt, + generates, . waits"


@frozen(kw_only=True)
class _Stretch:
    """Equal passes, and the number of the first of them."""

    first: int
    shown: SchedulePass

    @property
    def numbers(self) -> str:
        """`12`, or `12 to 40`."""
        last = self.first + self.shown.repeat - 1
        return f"{self.first}" if last == self.first else f"{self.first} to {last}"


@frozen(kw_only=True)
class _Stretches:
    """The stretches that are shown, how many there are, and which times any of them has."""

    shown: tuple[_Stretch, ...]
    count: int
    has_network: bool
    has_seconds: bool


def blocks(entries: Iterable[SchedulePass | ScheduleSummary], requests: Sequence[EngineRequest]) -> Iterator[str]:
    """The blocks of text of an answer to `requests`; of the passes, no more are kept than are shown."""
    stretches, summary = _read(entries)
    yield _headline(summary)
    yield _request_table(summary, requests)
    yield _chart(stretches, summary, requests)
    yield _pass_table(stretches)
    yield pairs(_details(summary))


def _read(entries: Iterable[SchedulePass | ScheduleSummary]) -> tuple[_Stretches, ScheduleSummary]:
    shown: list[_Stretch] = []
    first = 0
    has_network = has_seconds = False
    for count, entry in enumerate(entries):
        if isinstance(entry, ScheduleSummary):
            found = _Stretches(shown=tuple(shown), count=count, has_network=has_network, has_seconds=has_seconds)
            return found, entry
        if count < _SHOWN_ROWS:
            shown.append(_Stretch(first=first, shown=entry))
        first += entry.repeat
        has_network = has_network or entry.network_seconds is not None
        has_seconds = has_seconds or entry.seconds is not None
    raise ValueError("a schedule without its summary")


def _headline(summary: ScheduleSummary) -> str:
    size = f"{counted(len(summary.requests), 'request')} in {counted(summary.pass_count, 'pass', 'passes')}"
    if summary.last_ttft is None or summary.mean_ttft is None:
        last_pass = max(one.first_token_pass for one in summary.requests)
        return f"{size}: the last first token comes out of pass {last_pass}"
    last, mean = _best(summary.last_ttft), _best(summary.mean_ttft)
    return f"last TTFT {text.expectation(last, text.seconds)}, mean {text.expectation(mean, text.seconds)}: {size}"


def _best(ttft: TtftEstimates) -> Estimate:
    return ttft.calibrated_ttft_seconds or ttft.ttft_seconds


@frozen(kw_only=True)
class _TimeColumn:
    """One time of a TTFT, where the answer has it."""

    title: str
    of: Callable[[TtftEstimates], Estimate | None]
    form: text.Format


_TIME_COLUMNS = (
    _TimeColumn(title="TTFT, bytes alone", of=lambda ttft: ttft.ttft_seconds, form=text.seconds),
    _TimeColumn(title="calibrated", of=lambda ttft: ttft.calibrated_ttft_seconds, form=text.seconds),
    _TimeColumn(title="extra, bytes alone", of=lambda ttft: ttft.extra_ttft_seconds, form=text.signed_seconds),
    _TimeColumn(title="calibrated", of=lambda ttft: ttft.calibrated_extra_ttft_seconds, form=text.signed_seconds),
)


def _request_table(summary: ScheduleSummary, requests: Sequence[EngineRequest]) -> str:
    of_last = summary.last_ttft
    times = [column for column in _TIME_COLUMNS if of_last is not None and column.of(of_last) is not None]
    has_speeds = any(one.output_tokens_per_second is not None for one in summary.requests)
    columns = [Column("request"), right("prompt"), right("output"), right("first token"), right("last token")]
    columns += [right("preempted"), *(right(column.title) for column in times)]
    columns += [right("output speed")] if has_speeds else []
    rows = [
        [
            f"{one.request}",
            f"{requests[one.request].prompt_tokens:,}",
            f"{one.output_tokens:,}",
            f"pass {one.first_token_pass}",
            f"pass {one.last_token_pass}",
            f"{one.preemption_count or ''}",
            *_time_cells(one.ttft, times),
            *([_speed(one)] if has_speeds else []),
        ]
        for one in summary.requests[:_SHOWN_ROWS]
    ]
    rest = [""] if has_speeds else []
    if times and len(summary.requests) > 1:
        rows += [
            [name, "", "", "", "", "", *_time_cells(ttft, times), *rest]
            for name, ttft in (("last", summary.last_ttft), ("mean", summary.mean_ttft))
        ]
    return _with_note(table(columns, rows), len(summary.requests), "request")


def _time_cells(ttft: TtftEstimates | None, columns: Sequence[_TimeColumn]) -> Iterator[str]:
    for column in columns:
        estimate = None if ttft is None else column.of(ttft)
        yield "" if estimate is None else text.expectation(estimate, column.form)


def _speed(one: RequestTimes) -> str:
    speed = one.output_tokens_per_second
    return "" if speed is None else text.expectation(speed, text.tokens_per_second)


def _chart(stretches: _Stretches, summary: ScheduleSummary, requests: Sequence[EngineRequest]) -> str:
    """Who is in which pass: a line for each request, a column for each stretch of equal passes."""
    taking = [{share.request for share in stretch.shown.scheduled} for stretch in stretches.shown]
    more = " ..." if stretches.count > len(stretches.shown) else ""
    lines = [
        (f"request {one.request}", "".join(_marks(one, requests[one.request], stretches.shown, taking)) + more)
        for one in summary.requests[:_SHOWN_ROWS]
    ]
    return _with_note(f"{_LEGEND}\n{pairs(lines)}", len(summary.requests), "request")


def _marks(
    one: RequestTimes, request: EngineRequest, stretches: Sequence[_Stretch], taking: Sequence[set[int]]
) -> Iterator[str]:
    has_begun = request.arrival_seconds is None
    for stretch, requests in zip(stretches, taking, strict=True):
        if one.request in requests:
            has_begun = True
            yield _READS if stretch.first <= one.first_token_pass else _GENERATES
        else:
            is_there = has_begun and (request.arrival_pass or 0) <= stretch.first <= one.last_token_pass
            yield _WAITS if is_there else _IS_GONE


def _pass_table(stretches: _Stretches) -> str:
    columns = [right("passes"), right("times"), right("tokens")]
    columns += [right("links busy, each")] if stretches.has_network else []
    columns += [right("all together")] if stretches.has_seconds else []
    columns.append(Column("request:tokens"))
    rows = []
    for stretch in stretches.shown:
        one = stretch.shown
        row = [stretch.numbers, f"{one.repeat}", f"{sum(share.tokens for share in one.scheduled):,}"]
        row += [_time(one.network_seconds)] if stretches.has_network else []
        row += [_time(one.seconds)] if stretches.has_seconds else []
        rows.append([*row, _shares(one)])
    return _with_note(table(columns, rows), stretches.count, "row")


def _time(estimate: Estimate | None) -> str:
    return "" if estimate is None else text.expectation(estimate, text.seconds)


def _shares(shown: SchedulePass) -> str:
    """`0:2048 1:2048`; nothing for passes in which the engine waits."""
    shares = [f"{share.request}:{share.tokens}" for share in shown.scheduled[:_SHOWN_SHARES]]
    rest = len(shown.scheduled) - len(shares)
    return " ".join([*shares, *([f"and {rest} more"] if rest else [])]) or "nobody"


def _with_note(block: str, count: int, noun: str) -> str:
    hidden = count - _SHOWN_ROWS
    return block if hidden <= 0 else f"{block}\n{counted(hidden, f'more {noun}')}: --json has all"


def _details(summary: ScheduleSummary) -> list[tuple[str, str]]:
    rows = []
    if summary.layout is not None:
        rows.append(("model", f"{summary.model} on {layout_name(summary.layout)}"))
    if summary.link is not None:
        rows.append(("link", text.rate_note(summary.link)))
    if summary.to_link is not None:
        rows.append(("new link", text.rate_note(summary.to_link)))
    if summary.engine_calibration is not None:
        rows.append(("engine calibration", summary.engine_calibration.engine_calibration_id or "given"))
    if summary.last_ttft is not None:
        rows.append(("left out of bytes alone", text.left_out(summary.last_ttft.ttft_seconds)))
    return rows + text.assumed(summary.assumptions)
