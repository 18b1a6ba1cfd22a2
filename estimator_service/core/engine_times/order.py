"""First tokens of one replay come in the order of their passes, which take no longer than the one behind them."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence

from attrs import evolve

from estimator_service.core.elementwise import larger, smaller
from estimator_service.core.engine_times.parts import Parts, PricedReplay
from estimator_service.core.engine_times.prices import running_prices
from estimator_service.core.engine_times.timeline import RequestSpan, Timeline, running_sums
from linkbound.domain.estimate import Basis, Estimate


def in_order(replay: PricedReplay) -> PricedReplay:
    """The same with TTFTs bounded by those of earlier and later passes (`docs/formulas.md`, Engine times).

    What was measured itself stays as it is, and bounds the others. Of requests that arrive by pass only those are held
    against each other that arrive together.
    """
    least = [price.least_seconds for price in running_prices(replay.prices)]
    ttft = list(replay.ttft)
    groups: dict[int, list[int]] = {}
    for request, span in enumerate(replay.timeline.spans):
        has_clock = _start(replay.timeline, span) is not None
        groups.setdefault(-1 if has_clock else span.begin, []).append(request)
    for group in groups.values():
        _order_group(replay.timeline, group, least, ttft)
    return evolve(replay, ttft=tuple(ttft))


def _order_group(found: Timeline, group: Sequence[int], least: Sequence[float], ttft: list[Parts]) -> None:
    """In the order of first tokens; what bytes take between two of them is counted from the start."""
    offsets = {one: _offset(found, one) - least[found.spans[one].first + 1] for one in group}
    by_first: dict[int, list[int]] = {}
    for one in sorted(group, key=lambda one: found.spans[one].first):
        by_first.setdefault(found.spans[one].first, []).append(one)
    own = {one: (ttft[one].lower, ttft[one].upper) for one in group}
    latest, earliest = math.inf, -math.inf
    for together in reversed(by_first.values()):
        uppers = [math.inf if (upper := own[one][1]) is None else upper + offsets[one] for one in together]
        latest = min(latest, *uppers)
        for one in together:
            if not ttft[one].is_measured and latest < math.inf:
                ttft[one] = evolve(ttft[one], latest=latest - offsets[one])
    for together in by_first.values():
        earliest = max(earliest, *(own[one][0] + offsets[one] for one in together))
        for one in together:
            if not ttft[one].is_measured:
                ttft[one] = evolve(ttft[one], earliest=earliest - offsets[one])


def _start(found: Timeline, span: RequestSpan) -> float | None:
    return found.passes[span.begin].start_seconds


def _offset(found: Timeline, request: int) -> float:
    """When it arrives; of requests by pass, with the others of its group."""
    span = found.spans[request]
    return (_start(found, span) or 0.0) - span.waited_seconds


def within_first_tokens(
    replay: PricedReplay, ends: Sequence[int], estimates: Sequence[Estimate | None]
) -> list[Estimate | None]:
    """Times of passes as shown, within those of the next first token behind them (`docs/formulas.md`, Engine times).

    `ends` are the stretches up to which each of `estimates` is. Passes take no longer than that token leaves them
    beside the bytes of the others, and no less than it needs beside the most that the others take.
    """
    begins = [0, *ends[:-1]]
    least = [price.least_seconds for price in running_prices(replay.prices)]
    most = running_sums(0.0 if found is None else found.upper or 0.0 for found in estimates)
    unbounded = running_sums(float(found is not None and found.upper is None) for found in estimates)
    by_first = sorted(range(len(replay.ttft)), key=lambda one: replay.timeline.spans[one].first)
    firsts = [replay.timeline.spans[one].first for one in by_first]
    shown = []
    for index, (begin, end, found) in enumerate(zip(begins, ends, estimates, strict=True)):
        place = bisect_left(firsts, end - 1)
        if found is None or place == len(firsts):
            shown.append(found)
            continue
        request = by_first[place]
        span, parts = replay.timeline.spans[request], replay.ttft[request]
        first_index = bisect_left(begins, span.begin)
        if span.begin > begin or parts.upper is None or first_index == len(begins) or begins[first_index] != span.begin:
            shown.append(found)
            continue
        others = least[span.first + 1] - least[span.begin] - (least[end] - least[begin])
        upper = parts.upper - span.waited_seconds - others
        last_index = bisect_left(ends, span.first + 1)
        beside, unknown = (
            sums[index] - sums[first_index] + sums[last_index + 1] - sums[index + 1] for sums in (most, unbounded)
        )
        lower = 0.0 if unknown else parts.lower - span.waited_seconds - beside
        shown.append(_within(found, lower, upper))
    return shown


def _within(found: Estimate, lower: float, upper: float) -> Estimate:
    expected = found.lower if found.expected is None else found.expected
    most = larger(expected, upper if found.upper is None else smaller(found.upper, upper))
    return evolve(
        found,
        lower=smaller(expected, larger(found.lower, lower)),
        upper=most,
        upper_basis=Basis.CALIBRATED,
    )
