"""The planning checklist of the first study, with memory and the switch, answered for one case."""

from __future__ import annotations

from estimator_service.core import assumptions
from estimator_service.core.planning.facts import PlanFacts
from estimator_service.core.planning.first_token import loss_item, target_item
from estimator_service.core.planning.instance import memory_item, prompt_item, tensor_parallel_item
from estimator_service.core.planning.wiring import counters_item, link_up_item, switch_item
from estimator_service.core.prefill import prefill_sent_bytes
from estimator_service.core.transfers import baseline_violations
from estimator_service.core.version import ESTIMATOR_VERSION
from linkbound.domain.errors import InvalidArgumentError, Violation
from linkbound.domain.planning import PlanCheck


def check_plan(facts: PlanFacts) -> PlanCheck:
    """Every line of the checklist, in its order (`docs/formulas.md`, Plan).

    What the request does not say is answered as missing. Raises InvalidArgumentError for a baseline that its link
    cannot have reached.
    """
    violations = _baseline_violations(facts)
    if violations:
        raise InvalidArgumentError(violations)
    links = (facts.link,) if facts.reference is None else (facts.reference, facts.link)
    return PlanCheck(
        items=(
            tensor_parallel_item(facts),
            prompt_item(facts),
            target_item(facts),
            loss_item(facts),
            link_up_item(facts),
            counters_item(facts),
            memory_item(facts),
            switch_item(facts),
        ),
        assumptions=(
            *assumptions.of_links(*links),
            assumptions.NO_CACHED_PREFIX,
            *((assumptions.BASELINE_WITHOUT_LINK,) if _has_homeless_baseline(facts) else ()),
            *(() if facts.memory is None or facts.model is None else assumptions.of_weight_format(facts.model)),
        ),
        estimator_version=ESTIMATOR_VERSION,
    )


def _baseline_violations(facts: PlanFacts) -> tuple[Violation, ...]:
    workload, model, reference = facts.workload, facts.model, facts.reference
    if workload is None or model is None or reference is None:
        return ()
    sent = prefill_sent_bytes(workload, model, workload.tensor_parallel_size)
    return tuple(baseline_violations("baseline_ttft_seconds", facts.baseline_ttft_seconds, sent, reference))


def _has_homeless_baseline(facts: PlanFacts) -> bool:
    return facts.reference is None and facts.request.baseline_ttft_seconds is not None
