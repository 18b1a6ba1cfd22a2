"""Rules by which engines put requests into passes, by version."""

from __future__ import annotations

from attrs import frozen

from linkbound.domain.errors import InvalidArgumentError, Violation


@frozen(kw_only=True)
class EngineRules:
    """What tells the schedulers of engines apart.

    `caps_lone_request`: whether `long_prefill_token_threshold` also holds for a request that is alone in the engine.
    """

    name: str
    caps_lone_request: bool


KNOWN_RULES = (
    EngineRules(name="vllm-0.33", caps_lone_request=False),
    EngineRules(name="vllm-0.32", caps_lone_request=False),
    EngineRules(name="vllm-0.30", caps_lone_request=True),
)
"""Newest first. Source: vLLM's `v1/core/sched/scheduler.py` of these versions."""


def engine_rules(name: str, field: str = "scheduler.engine") -> EngineRules:
    """The rules of that name, the newest for an empty one (`docs/formulas.md`, Schedule).

    Raises InvalidArgumentError on `field`, with the names that are known, for any other.
    """
    for rules in KNOWN_RULES:
        if name in (rules.name, ""):
            return rules
    known = ", ".join(rules.name for rules in KNOWN_RULES)
    raise InvalidArgumentError([Violation(field, f"{name!r} is not an engine whose rules are known: {known}")])
