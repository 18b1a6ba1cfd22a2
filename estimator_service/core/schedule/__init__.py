"""Replays how an engine puts requests into forward passes.

A pure state machine: requests with their arrivals in, passes out, in which equal passes come together. It knows no
clock; what passes take is given where requests arrive by time.
"""

from estimator_service.core.schedule.limits import length_limit_tokens, limits_of
from estimator_service.core.schedule.passes import Pass, PassSeconds, Share, ShareKind
from estimator_service.core.schedule.replay import replay
from estimator_service.core.schedule.rules import KNOWN_RULES, EngineRules, engine_rules
from estimator_service.core.schedule.stretches import OutcomeCounter, RequestOutcome, schedule_pass, stretches
from estimator_service.core.schedule.words import schedule_words

__all__ = [
    "KNOWN_RULES",
    "EngineRules",
    "OutcomeCounter",
    "Pass",
    "PassSeconds",
    "RequestOutcome",
    "Share",
    "ShareKind",
    "engine_rules",
    "length_limit_tokens",
    "limits_of",
    "replay",
    "schedule_pass",
    "schedule_words",
    "stretches",
]
