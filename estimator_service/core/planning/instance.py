"""The lines of the checklist about one instance: its tensor-parallel size, its prompts, its memory."""

from __future__ import annotations

from collections.abc import Iterator

from estimator_service.core.elementwise import larger
from estimator_service.core.feasibility import infeasible_reasons
from estimator_service.core.inventory import sent_bytes_per_token
from estimator_service.core.planning import words
from estimator_service.core.planning.facts import PlanFacts, missing
from estimator_service.core.planning.question import PlanQuestion
from estimator_service.core.tp_projection import project_tp_sizes
from linkbound.domain.catalog import Model, WeightFormatSource
from linkbound.domain.memory import MemoryFit
from linkbound.domain.planning import PlanItem, PlanStatus
from linkbound.domain.tp_projection import TpProjectionRequest
from linkbound.domain.words import IF_OF_THE_DATA_TYPE, counted

SHORT_PROMPT_TOKENS = 1024
"""Prompts up to this length reached about half the rate of a 200 Gb/s link (study 1, 8.2)."""

_SIZES = (1, 2, 4, 8, 16, 32, 64)
_NOT_WIDER_THAN_NEEDED = (
    "Do not spread a model over more nodes than it needs on a slow link: the bytes of a rank hardly change with the"
    " size while its arithmetic shrinks, so the loss grows."
)

_NEEDS_RANKS = (
    "A tensor-parallel group of {0} needs {0} ranks: take more nodes, or a smaller size that the memory allows."
)

_TENSOR_PARALLEL_SIZE = PlanQuestion("tensor_parallel_size", "Is the tensor-parallel size of each instance decided?")
_PROMPT_LENGTH = PlanQuestion(
    "prompt_length", "Is the length of the longest prompt known (chat, retrieval, long documents)?"
)
_MEMORY = PlanQuestion("memory", "Does an instance fit into the memory of its nodes?")


def tensor_parallel_item(facts: PlanFacts) -> PlanItem:
    """Is the tensor-parallel size of an instance decided? (`docs/formulas.md`, Plan)."""
    size = facts.request.tensor_parallel_size
    if not size:
        return _TENSOR_PARALLEL_SIZE.item(
            PlanStatus.MISSING,
            answers=tuple(_candidate_sizes(facts)),
            advice=("Take the smallest size that the memory allows, and run several instances.",),
        )
    concerns = tuple(_size_concerns(facts))
    is_too_wide, narrower = size > facts.request.node_count, _may_be_narrower(facts)
    return _TENSOR_PARALLEL_SIZE.item(
        PlanStatus.CONCERN if concerns else PlanStatus.OK,
        answers=(*_instances(facts.request.node_count, size), *concerns, *_losses_of_sizes(facts)),
        advice=(_NEEDS_RANKS.format(size),) if is_too_wide else (_NOT_WIDER_THAN_NEEDED,) if narrower else (),
    )


def prompt_item(facts: PlanFacts) -> PlanItem:
    """Is the length of the prompts known? (`docs/formulas.md`, Plan)."""
    tokens = facts.request.prompt_tokens
    if not tokens:
        return _PROMPT_LENGTH.item(
            PlanStatus.MISSING,
            advice=("Take it from the logs of the workload: what a link costs grows with every prompt token.",),
        )
    workload, model = facts.workload, facts.model
    answers = [f"{counted(tokens, 'prompt token')}.", *missing(facts)]
    if workload is not None and model is not None:
        size = workload.tensor_parallel_size
        each = sent_bytes_per_token(model, size)
        answers.append(
            f"A rank sends {words.megabytes(each)} for each of them, {words.megabytes(each * tokens)} in all, in"
            f" {model.all_reduce_count} all-reduces per pass."
        )
    short = tokens <= SHORT_PROMPT_TOKENS
    advice = ("So short a prompt does not reach the rate of a fast link: the bound overstates what it loses.",)
    return _PROMPT_LENGTH.item(
        PlanStatus.OK,
        answers=tuple(answers),
        advice=advice if short else (),
    )


def memory_item(facts: PlanFacts) -> PlanItem:
    """Does the model fit at this size with such a prompt? (`docs/formulas.md`, Plan)."""
    fit = facts.memory
    if fit is None:
        lacking = () if facts.hardware is not None else ("Not computed, since not given: the hardware.",)
        return _MEMORY.item(
            PlanStatus.MISSING,
            answers=lacking or missing(facts) or ("Not computed: no source states the weights of the model.",),
        )
    need, condition = fit.need, _condition(fit)
    answers = [
        (
            f"{words.megabytes(need.total_bytes)} of {words.megabytes(need.usable_bytes)} usable on each rank:"
            f" {words.megabytes(fit.weight_bytes)} weights, {words.megabytes(fit.kv_cache_bytes)} cache of one request"
            f"{condition}."
        )
    ]
    if fit.fits:
        room = counted(fit.largest_request_count, "such request")
        answers.append(f"At the same time there is room for {room}{condition}.")
    else:
        answers.append(f"{words.megabytes(-fit.headroom_bytes)} are short{condition}.")
    if fit.smallest_tp_that_fits is not None:
        answers.append(f"The smallest size that fits is TP{fit.smallest_tp_that_fits}{condition}.")
    return _MEMORY.item(
        PlanStatus.OK if fit.fits else PlanStatus.CONCERN,
        answers=tuple(answers),
        advice=() if fit.fits else tuple(_advice(fit)),
    )


def _advice(fit: MemoryFit) -> Iterator[str]:
    if _condition(fit):
        yield "If the checkpoint has a file that says how it is quantised, import the model with it and ask again."
    yield "Take more ranks, fewer bits per weight, or a smaller model."


def _condition(fit: MemoryFit) -> str:
    """What hangs on a config that names no quantisation."""
    is_open = fit.need.weight_format_source is WeightFormatSource.DATA_TYPE
    return f", {IF_OF_THE_DATA_TYPE}" if is_open else ""


def _instances(node_count: int, size: int) -> Iterator[str]:
    count, idle = divmod(node_count, size)
    if count:
        rest = f"; {idle} {'stays' if idle == 1 else 'stay'} idle" if idle else ""
        yield f"{counted(count, 'instance')} of TP{size} on {counted(node_count, 'node')}{rest}."


def _size_concerns(facts: PlanFacts) -> Iterator[str]:
    request, size = facts.request, facts.request.tensor_parallel_size
    if size > request.node_count:
        yield f"TP{size} needs {size} nodes, one rank each; there are {request.node_count}."
    if facts.model is not None:
        yield from (f"{reason}." for reason in infeasible_reasons(facts.model, size))
    if _is_wider_than_needed(facts):
        fit = facts.memory
        smallest = None if fit is None else fit.smallest_tp_that_fits
        yield f"TP{smallest} is enough for the memory."


def _is_wider_than_needed(facts: PlanFacts) -> bool:
    fit = facts.memory
    smallest = None if fit is None else fit.smallest_tp_that_fits
    return smallest is not None and smallest < facts.request.tensor_parallel_size


def _may_be_narrower(facts: PlanFacts) -> bool:
    """Whether half the ranks could run an instance too, as far as the plan says: cut, and fit where that is known."""
    model, size = facts.model, facts.request.tensor_parallel_size
    if model is None or size < 4 or size % 2 or infeasible_reasons(model, size // 2):
        return False
    fit = facts.memory
    return fit is None or (fit.smallest_tp_that_fits is not None and fit.smallest_tp_that_fits < size)


def _candidate_sizes(facts: PlanFacts) -> Iterator[str]:
    model = facts.model
    if model is None:
        yield from missing(facts, length=False)
        return
    sizes = [size for size in _SIZES if size <= facts.request.node_count and not infeasible_reasons(model, size)]
    names = ", ".join(f"TP{size}" for size in sizes)
    yield f"{model.model_id} can be cut to {names} on {counted(facts.request.node_count, 'node')}."


def _losses_of_sizes(facts: PlanFacts) -> Iterator[str]:
    """What the planned link costs at this size and at its neighbours, where a baseline was measured."""
    workload, model, baseline = facts.workload, facts.model, facts.baseline_ttft_seconds
    if model is None or workload is None:
        yield from missing(facts)
        return
    sizes = _neighbours(model, workload.tensor_parallel_size, facts.request.node_count)
    if baseline is None or facts.reference is None:
        sent = ", ".join(f"{words.megabytes(sent_bytes_per_token(model, size))} at TP{size}" for size in sizes)
        yield f"A rank sends for each prompt token {sent}."
        return
    projection = project_tp_sizes(
        TpProjectionRequest(
            workload=workload,
            baseline_ttft_seconds=baseline,
            link=facts.reference.link,
            to_link=facts.link.link,
            tensor_parallel_sizes=sizes,
        ),
        model,
    )
    losses = ", ".join(
        f"{words.percent(larger(0.0, entry.extra_ttft_fraction.upper or 0.0))} at TP{entry.tensor_parallel_size}"
        for entry in projection.projections
    )
    yield f"From {words.link_rate(facts.reference)} to {words.link_rate(facts.link)} TTFT grows by at most {losses}."


def _neighbours(model: Model, size: int, node_count: int) -> tuple[int, ...]:
    """Half the size, the size and twice the size, as far as the model can be cut and there are nodes."""
    others = (other for other in (size // 2, size * 2) if 1 < other <= node_count)
    return tuple(sorted({size, *(other for other in others if not infeasible_reasons(model, other))}))
