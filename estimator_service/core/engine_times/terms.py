"""The terms of a fit: what each counts, and the time that they give passes."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from estimator_service.core.engine_times.work import NOTHING, Counts, Work
from linkbound.domain.engine import EngineTerm, EngineTermKind

PROMPT_KINDS = (
    EngineTermKind.ROW,
    EngineTermKind.ATTENTION,
    EngineTermKind.PASS,
    EngineTermKind.CHUNK,
    EngineTermKind.BATCH,
)
"""Terms of passes that compute prompt tokens. The first one is never left out."""
PROMPT_NEEDS = {PROMPT_KINDS.index(EngineTermKind.CHUNK): PROMPT_KINDS.index(EngineTermKind.ATTENTION)}
"""A term that counts beyond another one, by their places."""
PASS_COLUMN = PROMPT_KINDS.index(EngineTermKind.PASS)
"""Place of the fixed part of passes that compute prompt tokens."""
DECODE_KINDS = (EngineTermKind.DECODE_PASS, EngineTermKind.DECODE_REQUEST, EngineTermKind.DECODE_CONTEXT)
"""Terms of passes in which every request generates. The first one is never left out."""


def prompt_factors(counts: Counts) -> tuple[float, ...]:
    """What the terms of `PROMPT_KINDS` multiply (`docs/formulas.md`, Engine times)."""
    return counts.rows, counts.attended_tokens, counts.passes, counts.chunk_tokens, counts.further_requests


def decode_factors(counts: Counts) -> tuple[float, ...]:
    """What the terms of `DECODE_KINDS` multiply (`docs/formulas.md`, Engine times)."""
    return counts.passes, counts.further_requests, counts.context_tokens


@frozen(kw_only=True)
class ComputeTime:
    """Seconds of passes without their transfers; `fixed_seconds` of them are the same whatever is in a pass."""

    seconds: float
    fixed_seconds: float

    def rescaled(self, ratio: float) -> tuple[float, float]:
        """The same with every part in proportion to `ratio`, and with the fixed part as it is."""
        return self.seconds * ratio, (self.seconds - self.fixed_seconds) * ratio + self.fixed_seconds


@frozen(kw_only=True)
class Coefficients:
    """Seconds of each of what `PROMPT_KINDS` and `DECODE_KINDS` count; None where no figure tells of them."""

    prompt: tuple[float, ...] | None
    decode: tuple[float, ...] | None

    def knows(self, work: Work) -> bool:
        """Whether figures tell of all passes in it."""
        return not ((work.prompt.passes and self.prompt is None) or (work.generating.passes and self.decode is None))

    def compute(self, work: Work) -> ComputeTime:
        """Time of passes without their transfers; of those that no figure tells of, as if they were of the others."""
        seconds = fixed = 0.0
        prompt, generating = work.prompt, work.generating
        if self.decode is None:
            prompt, generating = prompt.plus(generating), NOTHING
        if self.prompt is not None and prompt.passes:
            seconds += _dot(self.prompt, prompt_factors(prompt))
            fixed += self.prompt[PASS_COLUMN] * prompt.passes
        if self.decode is not None and generating.passes:
            seconds += _dot(self.decode, decode_factors(generating))
            fixed += self.decode[0] * generating.passes
        return ComputeTime(seconds=seconds, fixed_seconds=fixed)

    def times(self, ratio: float) -> Coefficients:
        """All of them in proportion."""
        return Coefficients(prompt=_times(self.prompt, ratio), decode=_times(self.decode, ratio))


def coefficients_of(terms: Sequence[EngineTerm]) -> Coefficients:
    """The terms of a calibration in their places (`docs/formulas.md`, Engine times)."""
    seconds = {term.kind: term.seconds for term in terms}
    prompt, decode = (
        tuple(seconds.get(kind, 0.0) for kind in kinds) if any(kind in seconds for kind in kinds) else None
        for kinds in (PROMPT_KINDS, DECODE_KINDS)
    )
    return Coefficients(prompt=prompt, decode=decode)


def terms_of(coefficients: Coefficients) -> tuple[EngineTerm, ...]:
    """The terms that take time, and the first one of passes that were measured (`docs/formulas.md`, Engine times)."""
    return tuple(
        EngineTerm(kind=kind, seconds=seconds)
        for kinds, values in ((PROMPT_KINDS, coefficients.prompt), (DECODE_KINDS, coefficients.decode))
        if values is not None
        for kind, seconds in zip(kinds, values, strict=True)
        if seconds or kind is kinds[0]
    )


def _times(values: tuple[float, ...] | None, ratio: float) -> tuple[float, ...] | None:
    return None if values is None else tuple(ratio * value for value in values)


def _dot(coefficients: Sequence[float], factors: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(coefficients, factors, strict=True))
