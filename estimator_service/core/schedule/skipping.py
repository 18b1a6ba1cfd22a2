"""How often a pass repeats itself, found without stepping through the passes."""

from __future__ import annotations

from collections.abc import Callable

from estimator_service.core.elementwise import smaller
from estimator_service.core.schedule.engine import Engine, Plan


def repeat_count(engine: Engine, plan: Plan, most: int) -> int:
    """The most passes in a row, up to `most`, that are as planned (`docs/formulas.md`, Schedule).

    Whoever waits goes on waiting meanwhile: what kept a request out of a pass that admits none is there in the next.
    """
    if plan.stands_alone:
        return 1
    acceptance, length_tokens = engine.limits.acceptance, engine.limits.length_tokens
    if engine.cohort.lives:
        most = smaller(most, engine.cohort.passes_left())
    for live, rows, kind in zip(plan.lives, plan.rows, plan.kinds, strict=True):
        if most <= 1:
            return 1
        most = smaller(most, live.passes_alike(rows, kind, length_tokens, acceptance))
    if engine.limits.usable_blocks is None:
        return most
    return largest_that(lambda passes: blocks_needed(engine, plan, passes) <= engine.free_blocks, most)


def blocks_needed(engine: Engine, plan: Plan, passes: int) -> int:
    """Blocks that the last of as many such passes needs beyond those that are held (`docs/formulas.md`, Schedule)."""
    limits = engine.limits
    needed = engine.cohort.blocks_needed(passes)
    for live, rows, kind in zip(plan.lives, plan.rows, plan.kinds, strict=True):
        tokens = live.computed_after(rows, kind, passes - 1, limits.acceptance) + rows
        more = limits.blocks_for(tokens) - live.blocks
        if more > 0:
            needed += more
    return needed


def largest_that(holds: Callable[[int], bool], most: int) -> int:
    """The largest number from 1 to `most` for which something holds (`docs/formulas.md`, Schedule).

    It is taken to hold for 1, and for every number below one for which it holds.
    """
    if holds(most):
        return most
    least, above = 1, most
    while above - least > 1:
        middle = (least + above) // 2
        if holds(middle):
            least = middle
        else:
            above = middle
    return least
