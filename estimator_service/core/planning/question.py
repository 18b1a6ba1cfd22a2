"""A question of the checklist, which each way that it may stand answers."""

from __future__ import annotations

from attrs import frozen

from linkbound.domain.planning import PlanItem, PlanStatus


@frozen
class PlanQuestion:
    """What one line of the checklist is about, and what it asks."""

    topic: str
    question: str

    def item(self, status: PlanStatus, *, answers: tuple[str, ...] = (), advice: tuple[str, ...] = ()) -> PlanItem:
        """The line: how the question stands, its answers, and what to do next (`docs/formulas.md`, Plan)."""
        return PlanItem(topic=self.topic, question=self.question, status=status, answers=answers, advice=advice)
