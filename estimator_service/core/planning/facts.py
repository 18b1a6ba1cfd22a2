"""What a plan is judged by: the request, what the catalogue says of it, and the sizing of its nodes."""

from __future__ import annotations

from attrs import evolve, frozen

from estimator_service.core.feasibility import infeasible_reasons
from estimator_service.core.links import resolve
from estimator_service.core.memory import check_memory_fit
from estimator_service.core.sizing.cluster import size_cluster
from linkbound.domain.catalog import Hardware, Model
from linkbound.domain.errors import InvalidArgumentError
from linkbound.domain.layout import ParallelLayout
from linkbound.domain.link import Link, ResolvedLink
from linkbound.domain.memory import MemoryFit, MemoryFitRequest
from linkbound.domain.network_parts import NetworkParts
from linkbound.domain.planning import PlanRequest
from linkbound.domain.sizing import (
    LARGEST_NODE_RATE_BITS_PER_SECOND,
    SMALLEST_NODE_RATE_BITS_PER_SECOND,
    ClusterSizing,
    SizeClusterRequest,
)
from linkbound.domain.workload import PrefillWorkload


@frozen(kw_only=True)
class PlanFacts:
    """Everything a plan is judged by. None: not named in the request.

    `sizing` is of the named switch, or of every one; `memory` that of one instance with one prompt, where the plan and
    the catalogue say enough.
    """

    request: PlanRequest
    link: ResolvedLink
    reference: ResolvedLink | None
    model: Model | None
    hardware: Hardware | None
    sizing: ClusterSizing
    memory: MemoryFit | None = None

    @property
    def workload(self) -> PrefillWorkload | None:
        """The prompt, where model, size and length are known and the model can be cut."""
        request = self.request
        if self.model is None or not request.tensor_parallel_size or not request.prompt_tokens:
            return None
        if infeasible_reasons(self.model, request.tensor_parallel_size):
            return None
        return PrefillWorkload(
            model=self.model.model_id,
            tensor_parallel_size=request.tensor_parallel_size,
            prompt_tokens=request.prompt_tokens,
        )

    @property
    def baseline_ttft_seconds(self) -> float | None:
        """The measured TTFT, where it is known over which link."""
        return None if self.reference is None else self.request.baseline_ttft_seconds


def plan_facts(request: PlanRequest, model: Model | None, hardware: Hardware | None, parts: NetworkParts) -> PlanFacts:
    """The facts of a plan: its links resolved, its nodes sized at the rate of its ports (`docs/formulas.md`, Plan)."""
    link = resolve(request.link)
    sizing = SizeClusterRequest(
        node_count=request.node_count,
        rate_bits_per_second=port_rate_bits_per_second(request.link, link),
        switch=request.switch,
        nic=request.nic,
    )
    facts = PlanFacts(
        request=request,
        link=link,
        reference=None if request.reference_link is None else resolve(request.reference_link),
        model=model,
        hardware=hardware,
        sizing=size_cluster(sizing, parts),
    )
    return evolve(facts, memory=_memory_fit(facts))


def port_rate_bits_per_second(link: Link, resolved: ResolvedLink) -> int:
    """Rate of a port for `link`: its line rate, else its effective one, within what ports have.

    (`docs/formulas.md`, Plan)
    """
    rate = link.line_rate_bits_per_second or resolved.effective_bits_per_second
    return min(LARGEST_NODE_RATE_BITS_PER_SECOND, max(SMALLEST_NODE_RATE_BITS_PER_SECOND, rate))


def _memory_fit(facts: PlanFacts) -> MemoryFit | None:
    workload, hardware, model = facts.workload, facts.hardware, facts.model
    if workload is None or hardware is None or model is None:
        return None
    request = MemoryFitRequest(
        model=model.model_id,
        layout=ParallelLayout(tensor_parallel_size=workload.tensor_parallel_size),
        hardware=hardware.hardware_id,
        context_tokens=workload.prompt_tokens,
    )
    try:
        return check_memory_fit(request, model, hardware)
    except InvalidArgumentError:
        # The catalogue does not say how the model is stored; that is an answer here.
        return None


def missing(facts: PlanFacts, *, length: bool = True) -> tuple[str, ...]:
    """Which of model, size and prompt length the request does not say, in words (`docs/formulas.md`, Plan)."""
    request = facts.request
    lacking = [
        name
        for name, is_there in (
            ("the model", facts.model is not None),
            ("the tensor-parallel size", bool(request.tensor_parallel_size)),
            ("the prompt length", bool(request.prompt_tokens) or not length),
        )
        if not is_there
    ]
    if lacking:
        return (f"Not computed, since not given: {', '.join(lacking)}.",)
    if facts.model is not None and infeasible_reasons(facts.model, request.tensor_parallel_size):
        return (f"Not computed: {facts.model.model_id} cannot be cut over {request.tensor_parallel_size} ranks.",)
    return ()
