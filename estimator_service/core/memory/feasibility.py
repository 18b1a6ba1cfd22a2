"""Whether a model can be run as a layout cuts it, as far as that is known."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import frozen

from estimator_service.core.memory.need import memory_reasons
from linkbound.domain.catalog import Hardware
from linkbound.domain.memory import MemoryNeed

MEMORY_NOT_KNOWN = "no source states what a rank keeps in memory"


@frozen(kw_only=True)
class Feasibility:
    """`feasible` None: nothing is known to be against it; `reasons` say why it is not, or not known to be."""

    feasible: bool | None
    reasons: tuple[str, ...]


def feasibility_of(cut_reasons: Iterable[str], need: MemoryNeed | None, hardware: Hardware | None) -> Feasibility:
    """What stands against a layout: the reasons why it cannot be cut, and the memory (`docs/formulas.md`, Memory).

    Without hardware nobody asked about memory; with hardware and without a need nobody knows.
    """
    reasons = (*cut_reasons, *memory_reasons(need))
    if reasons:
        return Feasibility(feasible=False, reasons=reasons)
    if hardware is not None and need is None:
        return Feasibility(feasible=None, reasons=(MEMORY_NOT_KNOWN,))
    return Feasibility(feasible=True, reasons=())
