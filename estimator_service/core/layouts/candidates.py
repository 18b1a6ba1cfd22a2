"""What layouts are ranked by: transfers of prompts and decode passes, of the same kind for each of them."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from estimator_service.core.decode import DecodePass, pass_floor
from estimator_service.core.elementwise import larger
from estimator_service.core.intervals import upper_end
from linkbound.domain.estimate import Estimate
from linkbound.domain.layout import ExpertParallelism, ParallelLayout, layout_name
from linkbound.domain.layout_comparison import LayoutEstimate


@frozen(kw_only=True)
class Span:
    """From everything at the same time to everything in turn, and the time between them that counts in an order."""

    least_seconds: float
    ranked_seconds: float
    most_seconds: float

    def times(self, count: int) -> Span:
        """`count` of them."""
        return Span(
            least_seconds=self.least_seconds * count,
            ranked_seconds=self.ranked_seconds * count,
            most_seconds=self.most_seconds * count,
        )

    def plus(self, other: Span) -> Span:
        """One after the other."""
        return Span(
            least_seconds=self.least_seconds + other.least_seconds,
            ranked_seconds=self.ranked_seconds + other.ranked_seconds,
            most_seconds=self.most_seconds + other.most_seconds,
        )


@frozen(kw_only=True)
class CountedSeconds:
    """What counts for a layout: transfers of prompts, and the reads and transfers of a decode pass.

    `reads_are_open`: rows may share what they read or not. `reads_are_scaled`: each part counts in the ratio of a mean.
    """

    prompts: Span
    pass_: Span
    reads_are_open: bool
    reads_are_scaled: bool


@frozen(kw_only=True)
class ReadSeconds:
    """Time of the reads of a pass, at least and at most, and that of its floor, which holds for any cut of weights."""

    least_seconds: float
    most_seconds: float
    floor_seconds: float


def counted_seconds(
    layout: ParallelLayout, prompts: Estimate, one_pass: DecodePass, reads: ReadSeconds
) -> CountedSeconds:
    """Both ends of what a layout needs, and where between them it stands in an order (`docs/formulas.md`, Layouts).

    A pass: from its floor with what it reads at the least, to all reads and transfers in turn. A layout is ranked by
    its least; the least of an all-to-all, all experts of a token on one rank, does not happen, so it is ranked by the
    transfers of experts on a rank each.
    """
    network, calibrated = one_pass.network, one_pass.calibrated
    least = pass_floor(network, reads.least_seconds, calibrated).seconds
    ranked_prompts, ranked_pass = prompts.lower, least
    if layout.expert_parallelism is ExpertParallelism.ALL_TO_ALL:
        ranked_prompts, most = upper_end(prompts), upper_end(network)
        ranked_pass = larger(reads.least_seconds, most) if calibrated is None else reads.least_seconds + most
    return CountedSeconds(
        prompts=Span(least_seconds=prompts.lower, ranked_seconds=ranked_prompts, most_seconds=upper_end(prompts)),
        pass_=Span(
            least_seconds=least, ranked_seconds=ranked_pass, most_seconds=reads.most_seconds + upper_end(network)
        ),
        reads_are_open=reads.most_seconds > reads.least_seconds,
        reads_are_scaled=reads.least_seconds > reads.floor_seconds,
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
