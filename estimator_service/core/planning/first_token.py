"""The lines of the checklist about time: the TTFT target, and what the planned link costs."""

from __future__ import annotations

from collections.abc import Iterator

from estimator_service.core.decode import estimate_decode
from estimator_service.core.intervals import upper_end
from estimator_service.core.planning import words
from estimator_service.core.planning.facts import PlanFacts, missing
from estimator_service.core.planning.question import PlanQuestion
from estimator_service.core.planning.slowest_link import slowest_rate, verdict_on
from estimator_service.core.prefill import estimate_prefill
from linkbound.domain.catalog import Model
from linkbound.domain.decode import DecodeRequest
from linkbound.domain.estimate import Estimate
from linkbound.domain.link import LARGEST_RATE_BITS_PER_SECOND, ResolvedLink
from linkbound.domain.planning import PlanItem, PlanStatus, SlowestLinkRequest, Verdict
from linkbound.domain.prefill import PrefillEstimate, PrefillRequest
from linkbound.domain.workload import DecodeWorkload, PrefillWorkload

MEASURE_A_BASELINE = (
    "Measure TTFT over the faster link once: arithmetic is not computed from peak figures, which are off by an order"
    " of magnitude."
)
HALF_IS_NOT_HALF = (
    "Half the link is not half the speed: only the bursts of prefill take longer, decode is bound by latency."
)

_STATUS_OF = {Verdict.YES: PlanStatus.OK, Verdict.MAYBE: PlanStatus.CONCERN, Verdict.NO: PlanStatus.CONCERN}
_WORDS_OF = {Verdict.YES: "kept", Verdict.MAYBE: "kept only if transfers hide behind arithmetic", Verdict.NO: "missed"}

_TTFT_TARGET = PlanQuestion("ttft_target", "Is there a TTFT target for long prompts?")
_LINK_LOSS = PlanQuestion("link_loss", "Is the loss over the planned link estimated?")


def target_item(facts: PlanFacts) -> PlanItem:
    """Is there a TTFT target, and does the planned link keep it? (`docs/formulas.md`, Plan)."""
    target = facts.request.target_ttft_seconds
    if target is None:
        return _TTFT_TARGET.item(PlanStatus.MISSING, advice=("Set one: without it no link is too slow.",))
    workload, model = facts.workload, facts.model
    if workload is None or model is None:
        answers = (f"{words.seconds(target)}.", *missing(facts))
        return _TTFT_TARGET.item(PlanStatus.MISSING, answers=answers)
    ttft = _prefill(facts, workload, model).ttft_seconds
    verdict = verdict_on(ttft, target)
    answers = (
        (
            f"{words.seconds(target)}; over {words.link_rate(facts.link)} TTFT is {words.interval(ttft)}:"
            f" {_verdict_in_words(verdict, ttft)}."
        ),
        *_slowest(facts, workload, model, target),
    )
    undecided = verdict is Verdict.MAYBE and ttft.upper is None
    return _TTFT_TARGET.item(
        PlanStatus.MISSING if undecided else _STATUS_OF[verdict],
        answers=answers,
        advice=(MEASURE_A_BASELINE,) if undecided else (),
    )


def loss_item(facts: PlanFacts) -> PlanItem:
    """Is the loss of the planned link estimated? (`docs/formulas.md`, Plan)."""
    workload, model = facts.workload, facts.model
    if workload is None or model is None:
        return _LINK_LOSS.item(PlanStatus.MISSING, answers=missing(facts))
    prefill = _prefill(facts, workload, model)
    network = (
        f"{words.megabytes(prefill.sent_bytes_per_rank)} of one rank take"
        f" {words.interval(prefill.network_seconds)} over {words.link_rate(prefill.link)}."
    )
    if facts.reference is None:
        return _LINK_LOSS.item(
            PlanStatus.MISSING,
            answers=(network, "A loss is a difference: no reference link is given to compare with."),
        )
    return _LINK_LOSS.item(
        PlanStatus.OK,
        answers=(network, *_losses(facts, prefill), *_decode_loss(facts, model)),
        advice=tuple(_loss_advice(facts, facts.reference)),
    )


def _loss_advice(facts: PlanFacts, reference: ResolvedLink) -> Iterator[str]:
    if facts.link.effective_bits_per_second < reference.effective_bits_per_second:
        yield HALF_IS_NOT_HALF
    if facts.baseline_ttft_seconds is None:
        yield MEASURE_A_BASELINE


def _prefill(facts: PlanFacts, workload: PrefillWorkload, model: Model) -> PrefillEstimate:
    """The prompt over the reference link and then over the planned one; over the planned one alone without it."""
    if facts.reference is None:
        return estimate_prefill(PrefillRequest(workload=workload, link=facts.link.link), model)
    return estimate_prefill(
        PrefillRequest(
            workload=workload,
            link=facts.reference.link,
            to_link=facts.link.link,
            baseline_ttft_seconds=facts.baseline_ttft_seconds,
        ),
        model,
    )


def _verdict_in_words(verdict: Verdict, ttft: Estimate) -> str:
    if verdict is Verdict.MAYBE and ttft.upper is None:
        return "kept or missed, since the arithmetic is not known"
    return _WORDS_OF[verdict]


def _slowest(facts: PlanFacts, workload: PrefillWorkload, model: Model, target: float) -> Iterator[str]:
    baseline = facts.baseline_ttft_seconds
    slowest, reasons = slowest_rate(
        SlowestLinkRequest(
            workload=workload,
            target_ttft_seconds=target,
            baseline_link=None if facts.reference is None or baseline is None else facts.reference.link,
            baseline_ttft_seconds=baseline,
        ),
        model,
    )
    if slowest.lower < LARGEST_RATE_BITS_PER_SECOND:
        enough = "" if slowest.upper is None else f"; from {words.rate(slowest.upper)} on it is kept"
        yield f"Below {words.rate(slowest.lower)} no link keeps it{enough}."
    yield from reasons


def _losses(facts: PlanFacts, prefill: PrefillEstimate) -> Iterator[str]:
    extra = prefill.extra_ttft_seconds
    if extra is None or facts.reference is None:
        return
    largest = extra.lower if extra.lower < 0 else upper_end(extra)
    each = abs(largest) / prefill.prompt_tokens * 1000
    links = f"The change from {words.link_rate(facts.reference)} to {words.link_rate(facts.link)}"
    share = ""
    if prefill.extra_ttft_fraction is not None and facts.baseline_ttft_seconds is not None:
        share = f", {words.percent(abs(largest) / facts.baseline_ttft_seconds)} of the measured TTFT"
    yield f"{links} {words.change(extra, 'TTFT')}{share}: {words.seconds(each)} for each 1,000 prompt tokens."


def _decode_loss(facts: PlanFacts, model: Model) -> Iterator[str]:
    if facts.reference is None:
        return
    workload = DecodeWorkload(model=model.model_id, tensor_parallel_size=facts.request.tensor_parallel_size)
    answer = estimate_decode(
        DecodeRequest(workload=workload, link=facts.reference.link, to_link=facts.link.link), model, None
    )
    if answer.extra_pass_seconds is not None:
        yield f"It {words.change(answer.extra_pass_seconds, 'a decode pass of one request')}."
