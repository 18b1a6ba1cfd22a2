"""How far fitted times may be off: within what was measured, and how that grows beyond it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from attrs import frozen

from estimator_service.core.elementwise import larger, quotient
from estimator_service.core.engine_times.least_squares import Normal, Triangle, normal_of, triangle
from estimator_service.core.engine_times.selection import Sample
from estimator_service.core.engine_times.terms import PASS_COLUMN, decode_factors, prompt_factors
from estimator_service.core.engine_times.work import Work


@frozen(kw_only=True)
class Off:
    """Seconds by which a time may lie below a fitted one and above it. `above` is None where nothing bounds it."""

    below: float
    above: float | None

    def times(self, factor: float) -> Off:
        """In proportion."""
        return Off(below=self.below * factor, above=None if self.above is None else self.above * factor)

    def wider(self, other: Off) -> Off:
        """By both."""
        above = None if self.above is None or other.above is None else self.above + other.above
        return Off(below=self.below + other.below, above=above)


EXACT = Off(below=0.0, above=0.0)


def mean_off(found: Sequence[Off | None]) -> Off | None:
    """That of a mean of times; None where nothing tells of one of them (`docs/formulas.md`, Engine times)."""
    total = EXACT
    for one in found:
        if one is None:
            return None
        total = total.wider(one)
    return total.times(1 / len(found))


@frozen(kw_only=True)
class OpenTerm:
    """A term that points cannot tell from others, or that none of them has.

    `likeness` are how many of each told column one of it is on the points; at most it takes `most_seconds` each.
    """

    column: int
    likeness: tuple[float, ...]
    most_seconds: float


@frozen(kw_only=True)
class TermSpread:
    """What the points leave open of passes of one kind.

    `told` are the columns that they tell apart, as many as they can; `noise_ratio` is how far a figure scatters.
    """

    told: Triangle
    open_terms: tuple[OpenTerm, ...]
    noise_ratio: float

    def variance(self, factors: Sequence[float]) -> float:
        """Variance of a fitted time, in s^2, that comes of the scatter of the points."""
        return self.noise_ratio**2 * self.told.variance([factors[column] for column in self.told.columns])

    def open_seconds(self, factors: Sequence[float]) -> tuple[float, float]:
        """By how much a time may be below and above the fitted one if a term that is not told took all it can."""
        shifts = [0.0, *self._shifts(factors)]
        return -min(shifts), max(shifts)

    def open_each(self, column: int) -> float:
        """By how much one of a column may take more than the fit says, in s."""
        for term in self.open_terms:
            if term.column == column:
                return term.most_seconds
        return self.noise_ratio * math.sqrt(self.told.variance([float(one == column) for one in self.told.columns]))

    def _shifts(self, factors: Sequence[float]) -> Iterator[float]:
        for term in self.open_terms:
            told = sum(share * factors[column] for share, column in zip(term.likeness, self.told.columns, strict=True))
            beyond = factors[term.column] - told
            if beyond:
                yield beyond * term.most_seconds


@frozen(kw_only=True)
class FitSpread:
    """How far fitted times may be off.

    Errors are the largest ones of TTFTs, for passes that read prompts, and between tokens, for those that only
    generate; None where nothing tells. Each request had `rows_per_request` in passes that only generate; a row of a
    prompt takes `row_seconds`.
    """

    ttft_error_ratio: float | None = None
    decode_error_ratio: float | None = None
    prompt: TermSpread | None = None
    decode: TermSpread | None = None
    rows_per_request: int = 1
    row_seconds: float | None = None

    def drafted(self, work: Work, generating_seconds: float) -> Off:
        """What rows of generating requests take beyond those measured: between nothing and a row of a prompt each."""
        counts = work.generating
        rows = counts.rows - self.rows_per_request * (counts.passes + counts.further_requests)
        if not rows:
            return EXACT
        if self.row_seconds is None:
            return Off(below=generating_seconds if rows < 0 else 0.0, above=None if rows > 0 else 0.0)
        seconds = rows * self.row_seconds
        return Off(below=larger(-seconds, 0.0), above=larger(seconds, 0.0))

    def fixed_seconds(self, work: Work) -> float:
        """What passes that read prompts may hold beyond the fit that is the same whatever is in them, in s."""
        return 0.0 if self.prompt is None else self.prompt.open_each(PASS_COLUMN) * work.prompt.passes

    def off(self, work: Work, seconds: float, generating_seconds: float) -> Off | None:
        """By how much a fitted time may be off, of which passes that only generate take a part; None: nothing tells."""
        if not work.prompt.passes and not work.generating.passes:
            return EXACT
        error_seconds = 0.0
        for passes, part, ratio in (
            (work.prompt.passes, seconds - generating_seconds, self.ttft_error_ratio),
            (work.generating.passes, generating_seconds, self.decode_error_ratio),
        ):
            if passes and ratio is None:
                return None
            error_seconds += part * (ratio or 0.0)
        error_ratio = quotient(error_seconds, seconds, if_zero=0.0)
        variance = below = above = 0.0
        for spread, factors in (
            (self.prompt, prompt_factors(work.prompt)),
            (self.decode, decode_factors(work.generating)),
        ):
            if spread is not None:
                variance += spread.variance(factors)
                least, most = spread.open_seconds(factors)
                below, above = below + least, above + most
        # Of fitted over measured, less one.
        ratio = math.hypot(error_ratio, quotient(math.sqrt(variance), seconds, if_zero=0.0))
        is_bounded = ratio < 1 and above <= seconds
        return Off(
            below=seconds * ratio / (1 + ratio) + below,
            above=seconds * ratio / (1 - ratio) + above if is_bounded else None,
        ).wider(self.drafted(work, generating_seconds))


def term_spread(
    samples: Sequence[Sample], scatter_ratios: Sequence[float], error_ratios: Sequence[float], column_count: int
) -> TermSpread | None:
    """What `samples` leave open of the coefficients of all columns (`docs/formulas.md`, Engine times).

    `scatter_ratios` are those of their rounds, `error_ratios` what the fit leaves at them. None without any sample.
    """
    normal = normal_of((sample.equation for sample in samples), column_count)
    told = _most_told_apart(normal)
    if told is None:
        return None
    noise = max(_root_mean_square(scatter_ratios), _root_mean_square(error_ratios))
    return TermSpread(
        told=told,
        open_terms=tuple(
            OpenTerm(
                column=column,
                likeness=told.solved([normal.gram[column][other] for other in told.columns]),
                most_seconds=_most_seconds(samples, column, noise),
            )
            for column in range(column_count)
            if column not in told.columns
        ),
        noise_ratio=noise,
    )


def _most_told_apart(normal: Normal) -> Triangle | None:
    found = triangle(normal, (0,))
    for column in range(1, normal.column_count):
        if found is not None:
            found = triangle(normal, (*found.columns, column)) or found
    return found


def _most_seconds(samples: Sequence[Sample], column: int, noise_ratio: float) -> float:
    """At which a point would take nothing else."""
    return min(
        (
            larger(sample.equation.value + noise_ratio, 0.0) / sample.equation.factors[column]
            for sample in samples
            if sample.equation.factors[column]
        ),
        default=math.inf,
    )


def _root_mean_square(values: Sequence[float]) -> float:
    return math.sqrt(sum(value * value for value in values) / len(values)) if values else 0.0
