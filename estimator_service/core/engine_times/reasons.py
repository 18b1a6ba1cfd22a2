"""Why a term is not part of a fit, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from estimator_service.core.engine_times import words
from estimator_service.core.engine_times.least_squares import normal_of, told_apart
from estimator_service.core.engine_times.selection import Sample, Selection, normals_without
from linkbound.domain.engine import EngineTermKind


def reasons_left_out(kinds: Sequence[EngineTermKind], samples: Sequence[Sample], selection: Selection) -> Iterator[str]:
    """One sentence for each of `kinds` that takes no time in `selection` (`docs/formulas.md`, Engine times)."""
    point_count = len({sample.point for sample in samples})
    normal = normal_of((sample.equation for sample in samples), len(kinds))
    times = dict(zip(selection.columns, selection.coefficients, strict=True))
    for column, kind in enumerate(kinds):
        if times.get(column):
            continue
        with_it = (*selection.columns, column)
        if not normal.gram[column][column]:
            yield words.not_used(kind, words.NOT_THERE)
        elif column in times:
            yield words.not_used(kind, words.NO_TIME)
        elif not told_apart(normal, with_it):
            yield words.not_used(kind, words.NOT_APART)
        elif len(with_it) >= point_count or not _vouched(samples, with_it, len(kinds)):
            yield words.not_used(kind, words.TOO_FEW)
        else:
            yield words.not_used(kind, words.NO_BETTER)


def _vouched(samples: Sequence[Sample], columns: Sequence[int], column_count: int) -> bool:
    """Whether the columns are told apart whichever point is left out."""
    return all(told_apart(normal, columns) for normal in normals_without(samples, column_count).values())
