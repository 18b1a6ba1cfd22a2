"""The replays that an answer covers: requests as they are sent, and every way to part those that arrive together."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from attrs import evolve, frozen

from estimator_service.core.engine_times.anchors import Anchor
from estimator_service.core.engine_times.order import in_order
from estimator_service.core.engine_times.parts import Parts, PricedReplay, Pricing, mean_parts, priced_replay
from estimator_service.core.engine_times.prices import Prices
from estimator_service.core.engine_times.splits import split_arrivals
from estimator_service.core.engine_times.timeline import Timeline, check_kept, timeline
from linkbound.domain.engine import EngineRequest, SchedulerSettings

PartsOf = Callable[[PricedReplay], Parts]
"""Picks a time of a replay: of one request, of the last first token, or the mean."""


@frozen(kw_only=True)
class Variants:
    """Replays over the link that times are of, the first one with the requests as they are sent.

    `before` are those over the link that the change is from: one of `after` where the passes are the same, as they
    always are where requests arrive by pass.
    """

    after: tuple[PricedReplay, ...]
    before: tuple[PricedReplay, ...]
    anchor: Anchor

    @property
    def base(self) -> PricedReplay:
        """With the requests as they are sent."""
        return self.after[0]


def timelines(
    scheduler: SchedulerSettings, requests: tuple[EngineRequest, ...], prices: Prices | None, *, may_split: bool
) -> tuple[Timeline, ...]:
    """The replay of `requests`, then one for each way to part them (`docs/formulas.md`, Engine times)."""
    seconds = None if prices is None else prices.likely_seconds
    together = timeline(scheduler, requests, seconds)
    if not may_split:
        return (together,)
    parted = split_arrivals(requests, together)
    check_kept(sum(len(found.requests) for found in together.passes) * (1 + len(parted)))
    return (together, *(timeline(scheduler, one, seconds, requests) for one in parted))


def priced_variants(found: tuple[Timeline, ...], after: Pricing) -> Variants:
    """Every replay with its times (`docs/formulas.md`, Engine times)."""
    priced = tuple(in_order(priced_replay(one, after)) for one in found)
    return Variants(after=priced, before=priced, anchor=after.anchor)


def with_old_link(variants: Variants, old: tuple[Timeline, ...], before: Pricing) -> Variants:
    """The same with replays over the link that the change is from (`docs/formulas.md`, Engine times).

    Where one has the passes of that over the new link, they are one and the same: arithmetic cancels without a rest.
    """
    paired = itertools.zip_longest(old, variants.after[: len(old)])
    return evolve(
        variants,
        before=tuple(
            new if new is not None and one.is_as(new.timeline) else in_order(priced_replay(one, before))
            for one, new in paired
        ),
    )


def mean_of(anchor: Anchor) -> PartsOf:
    """Picks the mean TTFT of all requests (`docs/formulas.md`, Engine times)."""
    return lambda replay: mean_parts(replay.ttft, anchor.mean_ratio)
