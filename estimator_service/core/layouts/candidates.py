"""What layouts are ranked by: transfers of prompts and decode passes, both ends, of the same kind for each of them."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from estimator_service.core.decode import DecodePass
from estimator_service.core.intervals import upper_end
from linkbound.domain.estimate import Estimate
from linkbound.domain.layout import layout_name
from linkbound.domain.layout_comparison import LayoutEstimate


@frozen(kw_only=True)
class Span:
    """From everything at the same time to everything in turn."""

    least_seconds: float
    most_seconds: float

    def times(self, count: int) -> Span:
        """`count` of them."""
        return Span(least_seconds=self.least_seconds * count, most_seconds=self.most_seconds * count)

    def plus(self, other: Span) -> Span:
        """One after the other."""
        return Span(
            least_seconds=self.least_seconds + other.least_seconds, most_seconds=self.most_seconds + other.most_seconds
        )


@frozen(kw_only=True)
class CountedSeconds:
    """What counts for a layout: transfers of prompts, and the reads and transfers of a decode pass."""

    prompts: Span
    pass_: Span


def counted_seconds(prompts: Estimate, one_pass: DecodePass) -> CountedSeconds:
    """Both ends of what a layout needs (`docs/formulas.md`, Layouts).

    A pass: from its floor to reads and all transfers in turn. What is read counts at the least in both.
    """
    return CountedSeconds(
        prompts=Span(least_seconds=prompts.lower, most_seconds=upper_end(prompts)),
        pass_=Span(
            least_seconds=one_pass.floor.seconds, most_seconds=one_pass.read_seconds + upper_end(one_pass.network)
        ),
    )


@frozen(kw_only=True)
class Workings:
    """What counts for a layout with all requests, and with one alone."""

    together: CountedSeconds
    alone: CountedSeconds


@frozen(kw_only=True)
class Candidate:
    """A layout, what counts for it over bare links, and what with a calibration; None: it covers nothing of it."""

    estimate: LayoutEstimate
    bare: Workings
    calibrated: Workings | None = None

    @property
    def name(self) -> str:
        """Of the layout."""
        return layout_name(self.estimate.layout)


@frozen(kw_only=True)
class Ranked:
    """A layout among others, with figures of the same kind as theirs."""

    index: int
    candidate: Candidate
    workings: Workings

    @property
    def estimate(self) -> LayoutEstimate:
        """What is answered about the layout."""
        return self.candidate.estimate

    @property
    def name(self) -> str:
        """Of the layout."""
        return self.candidate.name

    @property
    def stage_count(self) -> int:
        """Its pipeline stages."""
        return self.estimate.layout.pipeline_parallel_size


def ranked(candidates: Sequence[Candidate]) -> list[Ranked]:
    """Those that may be run, with figures of one kind (`docs/formulas.md`, Layouts).

    A calibration counts where it covers every one of them: the latency of one is nothing to hold against another's
    bandwidth.
    """
    runnable = [index for index, one in enumerate(candidates) if one.estimate.feasible is not False]
    calibrated = [candidates[at].calibrated for at in runnable]
    return [
        Ranked(
            index=at,
            candidate=candidates[at],
            workings=candidates[at].bare if workings is None or None in calibrated else workings,
        )
        for at, workings in zip(runnable, calibrated, strict=True)
    ]


def covered_names(candidates: Sequence[Ranked]) -> list[str]:
    """Those that a calibration covers, where it does not cover others (`docs/formulas.md`, Layouts)."""
    covered = [one.name for one in candidates if one.candidate.calibrated is not None]
    return covered if len(covered) < len(candidates) else []


def may_be_ahead(spans: Sequence[Span]) -> list[int]:
    """The positions of those that may be the first: none is surely over before they are (`docs/formulas.md`, Layouts).

    Their least is not above the smallest of all that others take at most.
    """
    first_at_most_seconds = min([span.most_seconds for span in spans])
    return [at for at, span in enumerate(spans) if span.least_seconds <= first_at_most_seconds]
