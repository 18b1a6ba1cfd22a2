"""A model as a layout cuts it: what depends on these two alone, computed once for many questions."""

from __future__ import annotations

from functools import lru_cache

from attrs import evolve, frozen

from estimator_service.core import assumptions
from estimator_service.core.layouts.feasibility import layout_violations
from estimator_service.core.layouts.load import all_reduce_count
from estimator_service.core.layouts.rows import StageKind, stage_kinds
from linkbound.domain.catalog import Model
from linkbound.domain.errors import Violation
from linkbound.domain.layout import ParallelLayout


@frozen(kw_only=True)
class ModelCut:
    """The stages of an instance and the all-reduces of one pass through them, why it cannot be cut so, in words.

    The paths of `violations` start at the layout.
    """

    kinds: tuple[StageKind, ...]
    all_reduce_count: int
    violations: tuple[Violation, ...]
    assumptions: tuple[str, ...]

    def violations_at(self, prefix: str) -> tuple[Violation, ...]:
        """The violations of a request, `prefix` the path of what holds the layout."""
        return tuple([evolve(violation, field=prefix + violation.field) for violation in self.violations])


def model_cut(model: Model, layout: ParallelLayout) -> ModelCut:
    """`model` as `layout` cuts it; kept for the models and layouts that were asked for last.

    (`docs/formulas.md`, Layouts)
    """
    return _model_cut(model, layout)


@lru_cache(maxsize=256)
def _model_cut(model: Model, layout: ParallelLayout) -> ModelCut:
    kinds = stage_kinds(model, layout)
    return ModelCut(
        kinds=kinds,
        all_reduce_count=all_reduce_count(kinds),
        violations=tuple(layout_violations(model, layout, "")),
        assumptions=assumptions.of_layout(layout),
    )
