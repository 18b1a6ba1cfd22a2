"""Figures as equations in the terms of a fit, each over its measured value."""

from __future__ import annotations

from collections.abc import Sequence

from estimator_service.core.engine_times.figures import Figure
from estimator_service.core.engine_times.least_squares import Equation
from estimator_service.core.engine_times.selection import Sample
from estimator_service.core.engine_times.terms import Coefficients, decode_factors, prompt_factors
from estimator_service.core.engine_times.work import NOTHING, Work
from linkbound.domain.engine import EngineMetric


def prompt_samples(figures: Sequence[Figure], decode: tuple[float, ...] | None) -> tuple[Sample, ...]:
    """The TTFTs; passes that only generate meanwhile take the times of `decode`.

    (`docs/formulas.md`, Engine times) Without these, a figure that such passes are part of is left out.
    """
    samples = []
    for index, figure in enumerate(figures):
        generates = figure.work.generating != NOTHING
        if figure.metric is EngineMetric.DECODE_PASS or (generates and decode is None):
            continue
        others = Coefficients(prompt=None, decode=decode).compute(Work(generating=figure.work.generating))
        factors = prompt_factors(figure.work.prompt)
        samples.append(_sample(index, figure, factors, figure.other_seconds + others.seconds))
    return tuple(samples)


def decode_samples(figures: Sequence[Figure], prompt: tuple[float, ...] | None) -> tuple[Sample, ...]:
    """The output speeds; passes that compute prompts meanwhile take the times of `prompt`.

    (`docs/formulas.md`, Engine times) Without these, a figure that such passes are part of is left out.
    """
    samples = []
    for index, figure in enumerate(figures):
        has_prompts = figure.work.prompt != NOTHING
        if figure.metric is not EngineMetric.DECODE_PASS or (has_prompts and prompt is None):
            continue
        others = Coefficients(prompt=prompt, decode=None).compute(Work(prompt=figure.work.prompt))
        factors = decode_factors(figure.work.generating)
        samples.append(_sample(index, figure, factors, figure.other_seconds + others.seconds))
    return tuple(samples)


def _sample(index: int, figure: Figure, factors: Sequence[float], other_seconds: float) -> Sample:
    measured = figure.measured_seconds
    return Sample(
        figure=index,
        point=figure.point,
        equation=Equation(
            factors=tuple(factor / measured for factor in factors), value=(measured - other_seconds) / measured
        ),
    )
