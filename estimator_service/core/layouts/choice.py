"""Which layout to take for one request alone, and which for many, with the reasons in words and numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import frozen

from estimator_service.core.layouts.candidates import (
    Candidate,
    CountedSeconds,
    Ranked,
    Span,
    covered_names,
    may_be_ahead,
    ranked,
)
from estimator_service.core.layouts.words import in_bytes, in_span, listed
from linkbound.domain.catalog import Model
from linkbound.domain.estimate import Effect
from linkbound.domain.layout import ExpertParallelism
from linkbound.domain.layout_comparison import LayoutChoice, LayoutComparisonRequest
from linkbound.domain.words import IF_OF_THE_DATA_TYPE

ENDS = (
    "The least has stages work without a gap and reads and transfers at the same time, the most has all of them in"
    " turn; latency and arithmetic are in neither."
)
READ_ENDS = (
    "Reads count at the least with all rows of a pass on the experts of one, spread over the ranks, and with one read"
    " of a cache for all drafts of its request; at the most each row reads its own, of whole experts all on one rank."
)
SCALED_READS = (
    "Weights count in these figures by their parts, in the ratio of the bits that a source states for all of them to"
    " those that are stored: that compares layouts, and the least time that a layout answers for a pass may be below."
)
CALIBRATED_ENDS = "The least has stages work without a gap, the most has all of them in turn; arithmetic is in neither."


def single_stream_choice(candidates: Sequence[Candidate]) -> LayoutChoice | None:
    """The layout with the shortest decode token for one request alone, as ranked (`docs/formulas.md`, Layouts).

    Where nothing is known of what is read, the one with the fewest stages: what they read adds up.
    """
    runnable = ranked(candidates)
    if not runnable:
        return None
    if any(Effect.WEIGHT_READ in one.estimate.single_pass_seconds.effects_left_out for one in runnable):
        best = min(runnable, key=lambda one: (one.stage_count, *_alone(one)))
        fewest = (
            f"{best.name} has the fewest stages. What its ranks read is not known, so neither is the time of a token:"
            " no hardware was given, or the model does not say."
        )
        return LayoutChoice(index=best.index, reasons=(fewest, *_pipeline_reasons(best, runnable)))
    best = min(runnable, key=_alone)
    undecided = _undecided(best, runnable, [one.workings.alone.pass_ for one in runnable])
    return LayoutChoice(
        index=best.index,
        reasons=tuple(_single_reasons(best, runnable, undecided)),
        undecided_indices=tuple(one.index for one in undecided),
    )


def batched_choice(
    candidates: Sequence[Candidate], request: LayoutComparisonRequest, model: Model
) -> LayoutChoice | None:
    """The layout that is done first with all requests, as ranked (`docs/formulas.md`, Layouts).

    Transfers of all prompts plus G passes, as `counted_seconds`, among layouts in which every stage and every attention
    group has a request: what the ranks compute is then the same in each.
    """
    works = [_Work(ranked=one, pass_count=request.output_tokens) for one in ranked(candidates)]
    if not works:
        return None
    busy = [work for work in works if work.is_busy(request.workload.request_count)] or works
    best = min(busy, key=lambda work: work.span.ranked_seconds)
    undecided = _undecided(best.ranked, [work.ranked for work in busy], [work.span for work in busy])
    reasons = (
        *_batched_reasons(best, busy, request, model),
        *_overlap_reasons(best.ranked, undecided),
        *_calibration_reasons([work.ranked for work in busy]),
        *(_idle_reason(work, request.workload.request_count) for work in works if work not in busy),
    )
    return LayoutChoice(
        index=best.ranked.index, reasons=reasons, undecided_indices=tuple(one.index for one in undecided)
    )


@frozen(kw_only=True)
class _Work:
    """What a layout needs for all requests: transfers of the prompts, and passes until each has its tokens."""

    ranked: Ranked
    pass_count: int

    @property
    def name(self) -> str:
        return self.ranked.name

    @property
    def counted(self) -> CountedSeconds:
        return self.ranked.workings.together

    @property
    def span(self) -> Span:
        return self.counted.prompts.plus(self.counted.pass_.times(self.pass_count))

    @property
    def sent(self) -> str:
        return in_bytes(self.ranked.estimate.sent_bytes_per_rank)

    def is_busy(self, request_count: int) -> bool:
        one = self.ranked.estimate
        return not one.bubble_fraction and one.layout.data_parallel_size <= request_count


def _alone(one: Ranked) -> tuple[float, float]:
    return one.workings.alone.pass_.ranked_seconds, one.workings.alone.prompts.ranked_seconds


def _undecided(best: Ranked, others: Sequence[Ranked], spans: Sequence[Span]) -> list[Ranked]:
    """Others that may be ahead of the best one."""
    return [others[at] for at in may_be_ahead(spans) if others[at] is not best]


def _single_reasons(best: Ranked, runnable: Sequence[Ranked], undecided: Sequence[Ranked]) -> Iterator[str]:
    others = [f", {one.name} {in_span(one.workings.alone.pass_)}" for one in runnable if one is not best]
    yield (
        f"{best.name}: reads and transfers of a decode token of one request take {in_span(best.workings.alone.pass_)}"
        f"{''.join(others)}. {_ends(runnable, [one.workings.alone for one in runnable])}"
    )
    yield from _spread_reasons(runnable)
    yield from _overlap_reasons(best, undecided)
    yield from _calibration_reasons(runnable)
    yield from _pipeline_reasons(best, runnable)


def _pipeline_reasons(best: Ranked, runnable: Sequence[Ranked]) -> Iterator[str]:
    """What one request alone is to stages."""
    pipeline = max(runnable, key=lambda one: one.stage_count)
    if pipeline.stage_count <= best.stage_count:
        return
    yield (
        "For one request the stages of a pipeline read their weights one after another, and compute one after another;"
        " the ranks of a tensor-parallel group do both at the same time."
    )
    prompt, other = best.workings.alone.prompts, pipeline.workings.alone.prompts
    if prompt.least_seconds > other.most_seconds:
        yield (
            f"It pays with transfers: {in_span(prompt)} for one prompt, where {pipeline.name} needs {in_span(other)}."
            " Over a link so slow that the difference is more than what the other stages compute, the pipeline has the"
            " first token sooner."
        )


def _batched_reasons(
    best: _Work, busy: Sequence[_Work], request: LayoutComparisonRequest, model: Model
) -> Iterator[str]:
    count = request.workload.request_count
    prompts = "1 prompt" if count == 1 else f"{count} prompts"
    passes = "once" if request.output_tokens == 1 else f"{request.output_tokens:,} times"
    sender = "a rank" if request.workload.ranks_per_node == 1 else "a node"
    yield (
        f"{best.name}: {in_span(best.span)} in all. Transfers of {prompts} of {request.workload.prompt_tokens:,} tokens"
        f" take {in_span(best.counted.prompts)}, and reads and transfers of a pass in which every request gets its next"
        f" token {in_span(best.counted.pass_)}, {passes}."
        f" {_ends([work.ranked for work in busy], [work.counted for work in busy])}"
    )
    for other in sorted((work for work in busy if work is not best), key=lambda work: work.span.ranked_seconds):
        yield (
            f"{other.name}: {in_span(other.span)} in all, {in_span(other.counted.prompts)} and"
            f" {in_span(other.counted.pass_)} a pass; {sender} sends {other.sent} for the prompts, of {best.name}"
            f" {best.sent}.{_break_even(best, other)}"
        )
    yield from _spread_reasons([work.ranked for work in busy])
    if best.ranked.stage_count > 1:
        yield (
            "A stage hands on the hidden states of a token once, where one tensor-parallel group sums them"
            f" {model.all_reduce_count} times; with a pass in each stage no stage waits."
        )


def _spread_reasons(runnable: Sequence[Ranked]) -> Iterator[str]:
    """Which end of the transfers of an all-to-all can happen."""
    spread = [one.name for one in runnable if _spreads(one)]
    if spread:
        yield (
            f"{listed(spread)}: at the least all experts of a token share a rank, which no batch of tokens does; at the"
            " most each is on a rank of its own, and so it is ranked."
        )


def _overlap_reasons(best: Ranked, undecided: Sequence[Ranked]) -> Iterator[str]:
    if undecided:
        yield (
            f"Which of {best.name} and {listed([one.name for one in undecided], 'or')} is ahead these figures do not"
            " tell: their ranges overlap."
        )


def _calibration_reasons(runnable: Sequence[Ranked]) -> Iterator[str]:
    names = covered_names(runnable)
    if names:
        yield (
            f"The calibration covers {listed(names)} alone, so it does not count in the order: a time with measured"
            " latency beside times without would not be alike."
        )


def _idle_reason(work: _Work, request_count: int) -> str:
    one = work.ranked.estimate
    what = f"{one.passes_in_flight} of {one.layout.pipeline_parallel_size} stages"
    if one.layout.data_parallel_size > request_count:
        what = f"{request_count} of {one.layout.data_parallel_size} attention groups"
    keep = "1 request keeps" if request_count == 1 else f"{request_count} requests keep"
    return f"{work.name} is not considered: {keep} {what} busy."


def _break_even(best: _Work, other: _Work) -> str:
    """From how many output tokens on the other one is ahead as ranked, where there is such a number."""
    saved = best.counted.pass_.ranked_seconds - other.counted.pass_.ranked_seconds
    paid = other.counted.prompts.ranked_seconds - best.counted.prompts.ranked_seconds
    if saved <= 0 or paid <= 0:
        return ""
    end = "As ranked" if _spreads(best.ranked) or _spreads(other.ranked) else "At the least"
    return f" {end} it is ahead from about {round(paid / saved):,} output tokens a request on."


def _spreads(one: Ranked) -> bool:
    return one.estimate.layout.expert_parallelism is ExpertParallelism.ALL_TO_ALL


def _ends(runnable: Sequence[Ranked], counted: Sequence[CountedSeconds]) -> str:
    is_calibrated = all(one.workings is one.candidate.calibrated for one in runnable)
    ends = CALIBRATED_ENDS if is_calibrated else ENDS
    is_open = any(Effect.WEIGHT_FORMAT in one.estimate.single_pass_seconds.effects_left_out for one in runnable)
    return " ".join(
        (
            ends,
            *((READ_ENDS,) if any(one.reads_are_open for one in counted) else ()),
            *((SCALED_READS,) if any(one.reads_are_scaled for one in counted) else ()),
            *((f"All of it holds {IF_OF_THE_DATA_TYPE}.",) if is_open else ()),
        )
    )
