"""Measured over fitted times: of arithmetic, and of transfers where arithmetic cannot reach what was measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from attrs import frozen

from estimator_service.core.elementwise import larger
from estimator_service.core.engine_times.spread import Off


@frozen(kw_only=True, order=True)
class Scale:
    """Factors of arithmetic and of likely transfers. The second one is 1 wherever some arithmetic is left."""

    compute: float = 1.0
    transfers: float = 1.0

    def seconds(self, compute_seconds: float, transfer_seconds: float) -> float:
        """Of both together."""
        return self.compute * compute_seconds + self.transfers * transfer_seconds

    def measured_compute(self, compute_seconds: float, transfer_seconds: float) -> float:
        """What was measured beside the likely transfers: below 0 where these took less."""
        return self.compute * compute_seconds + (self.transfers - 1) * transfer_seconds


def scale_of(seconds: float, compute_seconds: float, transfer_seconds: float) -> Scale:
    """At which both together take `seconds`; as they are where they take no time (`docs/formulas.md`, Engine times)."""
    if compute_seconds > 0 and seconds >= transfer_seconds:
        return Scale(compute=(seconds - transfer_seconds) / compute_seconds)
    if transfer_seconds > 0:
        return Scale(compute=0.0, transfers=larger(seconds, 0.0) / transfer_seconds)
    return Scale()


@frozen(kw_only=True)
class Ratio:
    """Measured over fitted: the mean of all points that tell, between the least and the most of a round."""

    least: Scale
    mean: Scale
    most: Scale

    def rounds(self, compute_seconds: float, transfer_seconds: float, expected_seconds: float) -> Off:
        """By how much rounds of what was measured lie below and above what is expected of both together."""
        least, most = (one.seconds(compute_seconds, transfer_seconds) for one in (self.least, self.most))
        return Off(below=larger(expected_seconds - least, 0.0), above=larger(most - expected_seconds, 0.0))


FITTED = Ratio(least=Scale(), mean=Scale(), most=Scale())
"""The fit as it is."""


def ratio_of(scale_at: Callable[[float], Scale], least: float, mean: float, most: float) -> Ratio:
    """Those of one measurement and its rounds (`docs/formulas.md`, Engine times)."""
    return Ratio(least=scale_at(least), mean=scale_at(mean), most=scale_at(most))


def over_points(ratios: Iterable[Ratio | None]) -> Ratio | None:
    """That of several points of the same passes; None where none tells (`docs/formulas.md`, Engine times)."""
    known = [ratio for ratio in ratios if ratio is not None]
    if not known:
        return None
    return Ratio(
        least=min(ratio.least for ratio in known),
        mean=Scale(
            compute=sum(ratio.mean.compute for ratio in known) / len(known),
            transfers=sum(ratio.mean.transfers for ratio in known) / len(known),
        ),
        most=max(ratio.most for ratio in known),
    )
