"""What passes hold: the counts that terms multiply."""

from __future__ import annotations

import operator
from collections import Counter

from attrs import frozen

from estimator_service.core.layouts.load import RowCounts
from estimator_service.core.schedule.passes import Pass, ShareKind


@frozen(kw_only=True)
class Counts:
    """Counts over some passes.

    `attended_tokens` are rows times the tokens that each attends to, itself included; `chunk_tokens` rows times the
    rows of the same request in the pass; `further_requests` those beyond the first of each pass; `context_tokens` what
    the caches of all requests of each pass hold before it.
    """

    passes: float = 0.0
    rows: float = 0.0
    attended_tokens: float = 0.0
    chunk_tokens: float = 0.0
    further_requests: float = 0.0
    context_tokens: float = 0.0

    def minus(self, other: Counts) -> Counts:
        """What passes hold beyond others that they include."""
        return Counts(
            passes=self.passes - other.passes,
            rows=self.rows - other.rows,
            attended_tokens=self.attended_tokens - other.attended_tokens,
            chunk_tokens=self.chunk_tokens - other.chunk_tokens,
            further_requests=self.further_requests - other.further_requests,
            context_tokens=self.context_tokens - other.context_tokens,
        )

    def plus(self, other: Counts) -> Counts:
        """Counts of both."""
        return Counts(
            passes=self.passes + other.passes,
            rows=self.rows + other.rows,
            attended_tokens=self.attended_tokens + other.attended_tokens,
            chunk_tokens=self.chunk_tokens + other.chunk_tokens,
            further_requests=self.further_requests + other.further_requests,
            context_tokens=self.context_tokens + other.context_tokens,
        )

    def times(self, factor: float) -> Counts:
        """So many times as much."""
        return Counts(
            passes=self.passes * factor,
            rows=self.rows * factor,
            attended_tokens=self.attended_tokens * factor,
            chunk_tokens=self.chunk_tokens * factor,
            further_requests=self.further_requests * factor,
            context_tokens=self.context_tokens * factor,
        )


NOTHING = Counts()


@frozen(kw_only=True)
class Work:
    """Counts of passes that compute prompt tokens, whatever generates beside them, and of those that only generate."""

    prompt: Counts = NOTHING
    generating: Counts = NOTHING

    def minus(self, other: Work) -> Work:
        """What passes hold beyond others that they include."""
        return Work(prompt=self.prompt.minus(other.prompt), generating=self.generating.minus(other.generating))

    def plus(self, other: Work) -> Work:
        """Counts of both."""
        return Work(prompt=self.prompt.plus(other.prompt), generating=self.generating.plus(other.generating))

    def times(self, factor: float) -> Work:
        """So many times as much."""
        return Work(prompt=self.prompt.times(factor), generating=self.generating.times(factor))


NO_WORK = Work()


def pass_work(found: Pass) -> Work:
    """Counts of all `repeat` passes together, contexts growing meanwhile (`docs/formulas.md`, Engine times)."""
    if not found.requests:
        return NO_WORK
    repeat, row_count = found.repeat, found.row_count
    squares = sum(map(operator.mul, found.rows, found.rows))
    attended = sum(map(operator.mul, found.rows, found.contexts_before))
    context = sum(found.contexts_before)
    growth, attended_growth = _growth(found) if repeat > 1 else (0.0, 0.0)
    # Contexts grow by a step from pass to pass: 0 + 1 + ... + (repeat - 1) of them.
    steps = repeat * (repeat - 1) / 2
    counts = Counts(
        passes=repeat,
        rows=repeat * row_count,
        attended_tokens=repeat * (attended + (squares + row_count) / 2) + steps * attended_growth,
        chunk_tokens=repeat * squares,
        further_requests=repeat * (found.request_count - 1),
        context_tokens=repeat * context + steps * growth,
    )
    return Work(generating=counts) if is_generating(found) else Work(prompt=counts)


def _growth(found: Pass) -> tuple[float, float]:
    """By how much all contexts, and rows times contexts, grow from one of the passes to the next."""
    growth = attended = 0.0
    for (rows, kind), count in Counter(zip(found.rows, found.kinds, strict=True)).items():
        step = found.context_step(rows, kind)
        growth += count * step
        attended += count * rows * step
    return growth, attended


def is_generating(found: Pass) -> bool:
    """Whether every request of a pass has its prompt behind it (`docs/formulas.md`, Engine times)."""
    return found.kinds.count(ShareKind.GENERATING) == len(found.kinds)


def pass_rows(found: Pass) -> RowCounts:
    """Rows of one of the passes; logits of every generating row and of one row of each prompt, the unfinished too.

    (`docs/formulas.md`, Engine times)
    """
    rows = found.row_count
    logits = rows
    if not is_generating(found):
        logits = sum(
            rows if kind is ShareKind.GENERATING else 1 for rows, kind in zip(found.rows, found.kinds, strict=True)
        )
    return RowCounts(group_tokens=rows, any_tokens=rows, logits_rows=logits)
