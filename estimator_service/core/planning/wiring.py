"""The lines of the checklist about cables and switches, and about watching them."""

from __future__ import annotations

from collections.abc import Iterator

from estimator_service.core.collectives import sent_bytes
from estimator_service.core.elementwise import smaller
from estimator_service.core.inventory import message_bytes_per_all_reduce
from estimator_service.core.links import extra_send_seconds, send_seconds
from estimator_service.core.planning import words
from estimator_service.core.planning.facts import PlanFacts
from estimator_service.core.planning.question import PlanQuestion
from estimator_service.core.prefill import prefill_sent_bytes
from linkbound.domain.collective import CollectiveKind
from linkbound.domain.planning import PlanItem, PlanStatus
from linkbound.domain.sizing import SizeOption

MILLISECOND = 1e-3
"""Bursts of prefill show at this interval and not at a longer one (study 1, 8.1: 181 Gb/s at 1 ms, 96 at 5 ms)."""
PASS_TOKENS = 4096
"""Tokens of a pass in the study (7.2), for the length of a burst."""
SHOWN_OPTION_COUNT = 3

READ_RDMA_COUNTERS = (
    "Read the RDMA counters of the adapter (port_xmit_data, port_rcv_data): ip, nload and sar do not see RDMA and show"
    " an idle link."
)
AVERAGES_HIDE_BURSTS = "Averages over a second, as switches report them, hide the bursts that TTFT depends on."
TRY_ONE_CABLE = "Buy one cable first, bring the link up and run ib_write_bw between two nodes, both directions."

_LINK_UP = PlanQuestion("link_up", "Are breakout support and the link-up of the adapter at the planned rate verified?")
_COUNTERS = PlanQuestion("counters", "Are RDMA counters read every millisecond?")
_SWITCH_CAPACITY = PlanQuestion("switch_capacity", "Does the switch forward at full rate with every port busy?")


def link_up_item(facts: PlanFacts) -> PlanItem:
    """Do breakout and link-up work? Nobody but a person at the machines can tell (`docs/formulas.md`, Plan)."""
    option = next(iter(facts.sizing.options), None)
    if option is None:
        return _LINK_UP.item(PlanStatus.CONCERN, answers=facts.sizing.refused[:SHOWN_OPTION_COUNT])
    if not option.cables:
        return _LINK_UP.item(PlanStatus.OK, answers=option.reasons)
    named = () if facts.request.switch else (f"No switch is given; this is for {option.display_name}.",)
    return _LINK_UP.item(
        PlanStatus.VERIFY_BY_HAND,
        answers=(*named, *option.verify),
        advice=(TRY_ONE_CABLE,),
    )


def counters_item(facts: PlanFacts) -> PlanItem:
    """Are RDMA counters read at a resolution that shows bursts? (`docs/formulas.md`, Plan)."""
    interval = facts.request.counter_interval_seconds
    burst = tuple(_burst(facts))
    if interval is None:
        return _COUNTERS.item(PlanStatus.MISSING, answers=burst, advice=(READ_RDMA_COUNTERS, AVERAGES_HIDE_BURSTS))
    fine = interval <= MILLISECOND
    return _COUNTERS.item(
        PlanStatus.OK if fine else PlanStatus.CONCERN,
        answers=(f"They are read every {words.seconds(interval)}.", *burst),
        advice=(READ_RDMA_COUNTERS,) if fine else (READ_RDMA_COUNTERS, AVERAGES_HIDE_BURSTS),
    )


def switch_item(facts: PlanFacts) -> PlanItem:
    """Does the switch carry all nodes at once? (`docs/formulas.md`, Plan)."""
    options = facts.sizing.options
    if options and not options[0].switch:
        return _SWITCH_CAPACITY.item(PlanStatus.OK, answers=options[0].reasons)
    if not facts.request.switch:
        return _SWITCH_CAPACITY.item(
            PlanStatus.MISSING,
            answers=("No switch is given.", *(_option(option) for option in options[:SHOWN_OPTION_COUNT])),
        )
    if not options:
        return _SWITCH_CAPACITY.item(PlanStatus.CONCERN, answers=facts.sizing.refused)
    option = options[0]
    slower = tuple(_worst_case(facts, option))
    return _SWITCH_CAPACITY.item(
        PlanStatus.CONCERN if slower else PlanStatus.VERIFY_BY_HAND,
        answers=(_option(option), *option.reasons, *slower),
        advice=("Measure all pairs at the same time, not one pair alone.",),
    )


def _option(option: SizeOption) -> str:
    switches = f"{option.switch_count} x {option.display_name}"
    links = f"{option.node_ports_used} node links, {option.node_ports_free} free"
    if option.capacity_share_fraction is None:
        return f"{switches}: {links}."
    return f"{switches}: {links}, {words.percent(option.capacity_share_fraction)} of the switching capacity."


def _burst(facts: PlanFacts) -> Iterator[str]:
    workload, model = facts.workload, facts.model
    if workload is None or model is None or workload.tensor_parallel_size == 1:
        return
    tokens = smaller(PASS_TOKENS, workload.prompt_tokens)
    payload = message_bytes_per_all_reduce(model, tokens)
    sent = sent_bytes(CollectiveKind.ALL_REDUCE, workload.tensor_parallel_size, payload)
    burst = send_seconds(sent, facts.link.effective_bits_per_second)
    yield (
        f"An all-reduce of a pass of {tokens:,} tokens keeps {words.link_rate(facts.link)} busy for"
        f" {words.seconds(burst)}, then the link waits for arithmetic."
    )


def _worst_case(facts: PlanFacts, option: SizeOption) -> Iterator[str]:
    """What the fabric adds where its links keep less than the planned rate while all nodes talk."""
    planned = facts.link.effective_bits_per_second
    if option.worst_case_bits_per_second >= planned:
        return
    worst = f"All at once, a link keeps {words.rate(option.worst_case_bits_per_second)}"
    workload, model = facts.workload, facts.model
    if workload is None or model is None:
        yield f"{worst}."
        return
    sent = prefill_sent_bytes(workload, model, workload.tensor_parallel_size)
    extra = extra_send_seconds(sent, planned, option.worst_case_bits_per_second)
    yield f"{worst}: that adds at most {words.seconds(extra)} to TTFT over the planned rate."
