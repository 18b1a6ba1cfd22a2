"""Which layout to take for one request alone, and which for many, with the reasons in words and numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import frozen

from estimator_service.core.decode import DecodePass
from estimator_service.core.elementwise import larger
from estimator_service.core.intervals import upper_end
from estimator_service.core.layouts.words import in_bytes, in_seconds
from linkbound.domain.catalog import Model
from linkbound.domain.estimate import Effect, Estimate
from linkbound.domain.layout import ExpertParallelism, ParallelLayout, layout_name
from linkbound.domain.layout_comparison import LayoutChoice, LayoutComparisonRequest, LayoutEstimate


@frozen(kw_only=True)
class CountedSeconds:
    """What a layout is ranked by: transfers of prompts, and a decode pass."""

    prompts: float
    pass_: float


def counted_seconds(layout: ParallelLayout, prompts: Estimate, one_pass: DecodePass) -> CountedSeconds:
    """What counts for a layout with these transfers of prompts and this pass (`docs/formulas.md`, Layouts).

    The least that each can take. An all-to-all has its least where all experts of every token share a rank, which no
    batch does: what counts for it is each expert on a rank of its own.
    """
    if layout.expert_parallelism is not ExpertParallelism.ALL_TO_ALL:
        return CountedSeconds(prompts=prompts.lower, pass_=one_pass.floor.seconds)
    return CountedSeconds(prompts=upper_end(prompts), pass_=larger(one_pass.floor.seconds, upper_end(one_pass.network)))


@frozen(kw_only=True)
class Candidate:
    """A layout, and what counts for it with all requests and with one alone."""

    estimate: LayoutEstimate
    together: CountedSeconds
    alone: CountedSeconds

    @property
    def name(self) -> str:
        """Of the layout."""
        return layout_name(self.estimate.layout)

    @property
    def is_spread(self) -> bool:
        """Whether its times stand with every expert of a token on a rank of its own."""
        return self.estimate.layout.expert_parallelism is ExpertParallelism.ALL_TO_ALL


def single_stream_choice(candidates: Sequence[Candidate]) -> LayoutChoice | None:
    """The feasible layout with the shortest decode token for one request alone (`docs/formulas.md`, Layouts).

    Where nothing is known of what is read, the one with the fewest stages: what they read adds up.
    """
    feasible = [index for index, one in enumerate(candidates) if one.estimate.feasible]
    if not feasible:
        return None
    known = not any(
        Effect.WEIGHT_READ in candidates[at].estimate.single_pass_seconds.effects_left_out for at in feasible
    )
    best = min(
        feasible,
        key=lambda at: (
            0.0 if known else candidates[at].estimate.layout.pipeline_parallel_size,
            candidates[at].alone.pass_,
            candidates[at].alone.prompts,
        ),
    )
    others = [candidates[at] for at in feasible if at != best]
    return LayoutChoice(index=best, reasons=tuple(_single_reasons(candidates[best], others, known=known)))


def batched_choice(
    candidates: Sequence[Candidate], request: LayoutComparisonRequest, model: Model
) -> LayoutChoice | None:
    """The feasible layout that is done first with all requests (`docs/formulas.md`, Layouts).

    Transfers of all prompts plus G passes, as `counted_seconds`, among layouts in which every stage and every attention
    group has a request: what the ranks compute is then the same in each.
    """
    feasible = [index for index, one in enumerate(candidates) if one.estimate.feasible]
    if not feasible:
        return None
    works = [_Work(index=at, candidate=candidates[at], pass_count=request.output_tokens) for at in feasible]
    busy = [work for work in works if work.is_busy(request.request_count)] or works
    best = min(busy, key=lambda work: work.seconds)
    left_out = [work for work in works if work not in busy]
    return LayoutChoice(index=best.index, reasons=tuple(_batched_reasons(best, busy, left_out, request, model)))


@frozen(kw_only=True)
class _Work:
    """What a layout needs for all requests: transfers of the prompts, and passes until each has its tokens."""

    index: int
    candidate: Candidate
    pass_count: int

    @property
    def one(self) -> LayoutEstimate:
        return self.candidate.estimate

    @property
    def name(self) -> str:
        return self.candidate.name

    @property
    def counted(self) -> CountedSeconds:
        return self.candidate.together

    @property
    def seconds(self) -> float:
        return self.counted.prompts + self.pass_count * self.counted.pass_

    def is_busy(self, request_count: int) -> bool:
        return not self.one.bubble_fraction and self.one.layout.data_parallel_size <= request_count


def _single_reasons(chosen: Candidate, others: Sequence[Candidate], *, known: bool) -> Iterator[str]:
    if known:
        token = f"{in_seconds(chosen.alone.pass_)}{_beside(others)}"
        yield f"{chosen.name}: a decode token of one request takes at least {token}."
    else:
        yield (
            f"{chosen.name} has the fewest stages. What its ranks read is not known, so neither is the time of a token:"
            " no hardware was given, or the model does not say."
        )
    yield from _spread_reason([chosen, *others])
    if any(_stage_count(other) > _stage_count(chosen) for other in others):
        yield (
            "For one request the stages of a pipeline read their weights one after another, and compute one after"
            " another; the ranks of a tensor-parallel group do both at the same time."
        )
        pipeline = max(others, key=_stage_count)
        if chosen.alone.prompts > pipeline.alone.prompts:
            yield (
                f"It pays with transfers: {in_seconds(chosen.alone.prompts)} for one prompt, where"
                f" {pipeline.name} needs {in_seconds(pipeline.alone.prompts)}. Over a"
                " link so slow that the difference is more than what the other stages compute, the pipeline has the"
                " first token sooner."
            )


def _beside(others: Sequence[Candidate]) -> str:
    tokens = [f"{other.name} {in_seconds(other.alone.pass_)}" for other in others]
    return f", {', '.join(tokens)}" if tokens else ""


def _spread_reason(candidates: Sequence[Candidate]) -> Iterator[str]:
    names = [one.name for one in candidates if one.is_spread]
    if names:
        yield (
            f"{' and '.join(names)}: figures are with every expert of a token on a rank of its own; where experts share"
            " a rank, less is sent."
        )


def _stage_count(candidate: Candidate) -> int:
    return candidate.estimate.layout.pipeline_parallel_size


def _batched_reasons(
    best: _Work, busy: Sequence[_Work], left_out: Sequence[_Work], request: LayoutComparisonRequest, model: Model
) -> Iterator[str]:
    prompts = "1 prompt" if request.request_count == 1 else f"{request.request_count} prompts"
    yield (
        f"{best.name}: transfers of {prompts} of {request.prompt_tokens:,} tokens take at least"
        f" {in_seconds(best.counted.prompts)}, and a pass in which every request gets its next token"
        f" {in_seconds(best.counted.pass_)}: {in_seconds(best.seconds)} in all with {request.output_tokens:,}"
        " such passes."
    )
    for other in sorted((work for work in busy if work is not best), key=lambda work: work.seconds):
        yield (
            f"{other.name}: {in_seconds(other.counted.prompts)} and"
            f" {in_seconds(other.counted.pass_)} a pass, {in_seconds(other.seconds)} in all; a rank sends"
            f" {in_bytes(other.one.sent_bytes_per_rank)} for the prompts, of {best.name}"
            f" {in_bytes(best.one.sent_bytes_per_rank)}.{_break_even(best, other)}"
        )
    yield from _spread_reason([work.candidate for work in busy])
    if best.one.layout.pipeline_parallel_size > 1:
        yield (
            "A stage hands on the hidden states of a token once, where one tensor-parallel group sums them"
            f" {model.all_reduce_count} times; with a pass in each stage no stage waits."
        )
    for work in left_out:
        stages, groups = work.one.layout.pipeline_parallel_size, work.one.layout.data_parallel_size
        what = f"{work.one.passes_in_flight} of {stages} stages"
        if groups > request.request_count:
            what = f"{request.request_count} of {groups} attention groups"
        keep = "1 request keeps" if request.request_count == 1 else f"{request.request_count} requests keep"
        yield f"{work.name} is not considered: {keep} {what} busy."


def _break_even(best: _Work, other: _Work) -> str:
    """From how many output tokens on the other one is ahead, where there is such a number."""
    saved = best.counted.pass_ - other.counted.pass_
    paid = other.counted.prompts - best.counted.prompts
    if saved <= 0 or paid <= 0:
        return ""
    return f" It is ahead from about {round(paid / saved):,} output tokens a request on."
