"""Fits what passes take beside their transfers to measured times of an engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import evolve, frozen

from estimator_service.core.engine_times import words
from estimator_service.core.engine_times.clock import LinkClock
from estimator_service.core.engine_times.equations import decode_samples, prompt_samples
from estimator_service.core.engine_times.figures import Figure
from estimator_service.core.engine_times.measured import table_figures
from estimator_service.core.engine_times.network import path_over
from estimator_service.core.engine_times.reasons import reasons_left_out
from estimator_service.core.engine_times.selection import Selection, select
from estimator_service.core.engine_times.terms import DECODE_KINDS, PROMPT_KINDS, PROMPT_NEEDS, Coefficients, terms_of
from estimator_service.core.engine_times.violations import figure_violations, table_violations
from estimator_service.core.layouts.rows import stage_kinds
from linkbound.domain.catalog import Model
from linkbound.domain.engine import EngineCalibration, EngineMetric, EnginePoint, EngineResidual, EngineTable
from linkbound.domain.errors import InvalidArgumentError, Violation

LARGEST_ROUND_COUNT = 30
"""Rounds of replaying arrivals by time and fitting. They settle after two or three, or go in circles."""
SETTLED = 1e-9
"""Relative change of every coefficient below which a further round would change nothing."""

TTFT_METRICS = (EngineMetric.TTFT, EngineMetric.LAST_TTFT, EngineMetric.MEAN_TTFT)


@frozen(kw_only=True)
class EngineFit:
    """A fit with what it stands on: the figures, one selection for TTFTs, one for output speeds."""

    coefficients: Coefficients
    figures: tuple[Figure, ...]
    prompt: Selection | None
    decode: Selection | None


def fit_engine(
    table: EngineTable, model: Model, *, field: str = "table", sources: tuple[str, ...] = ()
) -> EngineCalibration:
    """What passes take beside their transfers, fitted to `table` (`docs/formulas.md`, Engine times).

    Raises InvalidArgumentError, its paths within `field`, for a layout without a single schedule, requests that the
    engine refuses, and times in which the links could not have carried the bytes.
    """
    prefix = f"{field}."
    _refuse(tuple(table_violations(table, model, prefix)))
    found, is_settled = _settled_fit(table, model, prefix)
    _refuse(tuple(figure_violations(found.figures, prefix)))
    residuals = tuple(_residuals(found, table))
    return EngineCalibration(
        table=table,
        terms=terms_of(found.coefficients),
        residuals=residuals,
        interval_fraction=largest_left_out_error(residuals, TTFT_METRICS),
        assumptions=(*_assumptions(found, table), *(() if is_settled else (words.NOT_SETTLED,))),
        sources=sources,
    )


def largest_left_out_error(residuals: Sequence[EngineResidual], metrics: Sequence[EngineMetric]) -> float | None:
    """The largest error, either way, at a point left out; None where none could be.

    (`docs/formulas.md`, Engine times)
    """
    errors = [
        abs(one.left_out_error_ratio)
        for one in residuals
        if one.left_out_error_ratio is not None and one.metric in metrics
    ]
    return max(errors, default=None)


def _refuse(violations: tuple[Violation, ...]) -> None:
    if violations:
        raise InvalidArgumentError(violations)


def _settled_fit(table: EngineTable, model: Model, prefix: str) -> tuple[EngineFit, bool]:
    """Replay and fit until another round changes nothing; whether that came to an end."""
    path = path_over(table.link, table.bursts, table.inner_link, table.layout)
    clock = LinkClock(stage_kinds(model, table.layout), path)
    guess = _first_guess(table)
    found = _fit(table, clock, guess, prefix)
    for _ in range(LARGEST_ROUND_COUNT):
        before, found = found, _fit(table, clock, _with_guess(found.coefficients, guess), prefix)
        if _is_same(before.coefficients, found.coefficients):
            return found, True
    return found, False


def _first_guess(table: EngineTable) -> Coefficients:
    """Every token row takes its share of the longest TTFT of its point, and nothing else takes time."""
    shares = [
        max(*point.ttft_seconds, point.last_ttft_seconds or point.mean_ttft_seconds or 0.0, 0.0)
        / sum(request.prompt_tokens for request in point.requests)
        for point in table.points
        if _has_ttft(point)
    ]
    # Without any TTFT, rows count with the passes of output speeds, so that arrivals by time find some order.
    speeds = [point.output_tokens_per_second or 1.0 for point in table.points]
    per_row = sorted(shares)[len(shares) // 2] if shares else 1 / max(speeds)
    return Coefficients(prompt=(per_row, *(0.0 for _ in PROMPT_KINDS[1:])), decode=None)


def _has_ttft(point: EnginePoint) -> bool:
    return bool(point.ttft_seconds) or point.last_ttft_seconds is not None or point.mean_ttft_seconds is not None


def _with_guess(found: Coefficients, guess: Coefficients) -> Coefficients:
    """With what replays need of prompts where no TTFT was measured."""
    return found if found.prompt is not None else evolve(found, prompt=guess.prompt)


def _is_same(before: Coefficients, after: Coefficients) -> bool:
    def values(one: Coefficients) -> tuple[float, ...]:
        return (*(one.prompt or ()), *(one.decode or ()))

    old, new = values(before), values(after)
    return len(old) == len(new) and all(
        abs(a - b) <= SETTLED * max(abs(a), abs(b)) for a, b in zip(old, new, strict=True)
    )


def _fit(table: EngineTable, clock: LinkClock, coefficients: Coefficients, prefix: str) -> EngineFit:
    """One round: figures of replays at the times of `coefficients`, TTFTs first, then output speeds."""
    figures = table_figures(table, clock, coefficients, prefix)
    of_prompts = prompt_samples(figures, coefficients.decode)
    prompt = select(of_prompts, len(PROMPT_KINDS), PROMPT_NEEDS) if of_prompts else None
    by_kind = None if prompt is None else prompt.by_column(len(PROMPT_KINDS))
    of_decode = decode_samples(figures, by_kind)
    decode = select(of_decode, len(DECODE_KINDS), {}) if of_decode else None
    return EngineFit(
        coefficients=Coefficients(
            prompt=by_kind, decode=None if decode is None else decode.by_column(len(DECODE_KINDS))
        ),
        figures=figures,
        prompt=prompt,
        decode=decode,
    )


def _residuals(found: EngineFit, table: EngineTable) -> Iterator[EngineResidual]:
    """Of every figure that is part of the fit, in their order."""
    used = (
        (found.prompt, prompt_samples(found.figures, found.coefficients.decode)),
        (found.decode, decode_samples(found.figures, found.coefficients.prompt)),
    )
    by_figure = {
        sample.figure: (selection.error_ratio(sample.equation), left_out)
        for selection, samples in used
        if selection is not None
        for sample, left_out in zip(samples, selection.left_out_errors, strict=True)
    }
    for index, figure in enumerate(found.figures):
        if index in by_figure:
            error, left_out = by_figure[index]
            yield EngineResidual(
                label=table.points[figure.point].label,
                metric=figure.metric,
                request=figure.request,
                measured_seconds=figure.measured_seconds,
                error_ratio=error,
                left_out_error_ratio=left_out,
            )


def _assumptions(found: EngineFit, table: EngineTable) -> Iterator[str]:
    yield words.ADDED_IN_TURN
    yield words.EVERY_SIZE_AT_RATE if table.bursts is None else words.TOP_OF_BURSTS
    of_prompts = prompt_samples(found.figures, found.coefficients.decode)
    of_decode = decode_samples(found.figures, found.coefficients.prompt)
    if found.prompt is None:
        yield words.NO_PROMPT_TIMES
    else:
        yield from reasons_left_out(PROMPT_KINDS, of_prompts, found.prompt)
    if found.decode is not None:
        yield from reasons_left_out(DECODE_KINDS, of_decode, found.decode)
    else:
        yield words.NO_OUTPUT_SPEEDS
    used = {sample.figure for sample in (*of_prompts, *of_decode)}
    for point in sorted({figure.point for index, figure in enumerate(found.figures) if index not in used}):
        yield words.SKIPPED.format(table.points[point].label)
