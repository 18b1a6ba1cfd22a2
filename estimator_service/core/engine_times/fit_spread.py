"""What the points of a calibration say of how far its times may be off."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from estimator_service.core.engine_times.clock import LinkClock
from estimator_service.core.engine_times.equations import decode_samples, prompt_samples
from estimator_service.core.engine_times.figures import Figure
from estimator_service.core.engine_times.fit import TTFT_METRICS, largest_left_out_error
from estimator_service.core.engine_times.measured import table_figures
from estimator_service.core.engine_times.network import path_over
from estimator_service.core.engine_times.selection import Sample
from estimator_service.core.engine_times.spread import FitSpread, TermSpread, term_spread
from estimator_service.core.engine_times.terms import DECODE_KINDS, PROMPT_KINDS, coefficients_of
from estimator_service.core.layouts.rows import stage_kinds
from linkbound.domain.catalog import Model
from linkbound.domain.engine import EngineCalibration, EngineMetric


def fit_spread(engine: EngineCalibration | None, model: Model) -> FitSpread:
    """How far times of a calibration may be off (`docs/formulas.md`, Engine times)."""
    return FitSpread() if engine is None else _fit_spread(engine, model)


# Many questions are put to one calibration, and its points need not be replayed for each.
@lru_cache(maxsize=16)
def _fit_spread(engine: EngineCalibration, model: Model) -> FitSpread:
    table, coefficients = engine.table, coefficients_of(engine.terms)
    path = path_over(table.link, table.bursts, table.inner_link, table.layout)
    figures = table_figures(table, LinkClock(stage_kinds(model, table.layout), path), coefficients)
    of_prompts = prompt_samples(figures, coefficients.decode)
    of_decode = decode_samples(figures, coefficients.prompt)
    decode_metrics = (EngineMetric.DECODE_PASS,)
    prompt = _spread(engine, figures, of_prompts, TTFT_METRICS, len(PROMPT_KINDS))
    decode = _spread(engine, figures, of_decode, decode_metrics, len(DECODE_KINDS))
    return FitSpread(
        ttft_error_ratio=_largest_error(engine, TTFT_METRICS, prompt),
        decode_error_ratio=_largest_error(engine, decode_metrics, decode),
        prompt=prompt,
        decode=decode,
        rows_per_request=1 + table.scheduler.draft_token_count,
        row_seconds=None if coefficients.prompt is None else coefficients.prompt[0],
    )


def _spread(
    engine: EngineCalibration,
    figures: Sequence[Figure],
    samples: Sequence[Sample],
    metrics: Sequence[EngineMetric],
    column_count: int,
) -> TermSpread | None:
    scatter_ratios = [figures[sample.figure].scatter_ratio for sample in samples]
    return term_spread(samples, scatter_ratios, _errors(engine, metrics), column_count)


def _errors(engine: EngineCalibration, metrics: Sequence[EngineMetric]) -> list[float]:
    return [abs(one.error_ratio) for one in engine.residuals if one.metric in metrics]


def _largest_error(
    engine: EngineCalibration, metrics: Sequence[EngineMetric], spread: TermSpread | None
) -> float | None:
    """At a point left out or in the fit, and no less than its figures scatter."""
    left_out = largest_left_out_error(engine.residuals, metrics)
    if left_out is None or spread is None:
        return left_out
    return max(left_out, spread.noise_ratio, *_errors(engine, metrics))
