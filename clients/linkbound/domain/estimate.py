"""A modelled quantity: bound, expectation and interval, each with its basis."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import field, frozen

from linkbound.domain.choice import Choice
from linkbound.domain.errors import Violation
from linkbound.domain.rules import CrossChecked, finite, member, optional, sequence

LARGEST_QUANTITY = 1e30
"""No quantity of any unit here comes near; it keeps sums finite."""


class Basis(Choice):
    """Where a number comes from."""

    UNSPECIFIED = "BASIS_UNSPECIFIED"
    FORMULA = "BASIS_FORMULA"
    CALIBRATED = "BASIS_CALIBRATED"
    MEASURED = "BASIS_MEASURED"
    MIXED = "BASIS_MIXED"
    NOMINAL = "BASIS_NOMINAL"
    UNKNOWN = "BASIS_UNKNOWN"


class Constraint(Choice):
    """What limits a quantity."""

    UNSPECIFIED = "CONSTRAINT_UNSPECIFIED"
    COMPUTE = "CONSTRAINT_COMPUTE"
    MEMORY_BANDWIDTH = "CONSTRAINT_MEMORY_BANDWIDTH"
    NETWORK_BANDWIDTH = "CONSTRAINT_NETWORK_BANDWIDTH"
    NETWORK_LATENCY = "CONSTRAINT_NETWORK_LATENCY"
    SCHEDULE = "CONSTRAINT_SCHEDULE"
    UNKNOWN = "CONSTRAINT_UNKNOWN"


class Effect(Choice):
    """Something that exists in reality and not in the number."""

    UNSPECIFIED = "EFFECT_UNSPECIFIED"
    COMPUTE_OVERLAP = "EFFECT_COMPUTE_OVERLAP"
    COLLECTIVE_LATENCY = "EFFECT_COLLECTIVE_LATENCY"
    RATE_RAMP = "EFFECT_RATE_RAMP"
    ENGINE_SCHEDULE = "EFFECT_ENGINE_SCHEDULE"
    COMPUTE_TIME = "EFFECT_COMPUTE_TIME"
    KV_CACHE_READ = "EFFECT_KV_CACHE_READ"
    MEMORY_FIT = "EFFECT_MEMORY_FIT"
    FIXED_OVERHEAD = "EFFECT_FIXED_OVERHEAD"
    WEIGHT_READ = "EFFECT_WEIGHT_READ"
    PACKET_HEADERS = "EFFECT_PACKET_HEADERS"
    ALGORITHM_CHOICE = "EFFECT_ALGORITHM_CHOICE"
    STRAGGLERS = "EFFECT_STRAGGLERS"
    LOGITS_GATHER = "EFFECT_LOGITS_GATHER"
    WEIGHT_FORMAT = "EFFECT_WEIGHT_FORMAT"
    UNKNOWN = "EFFECT_UNKNOWN"


_BASIS = member(Basis, Basis.UNKNOWN)
_CONSTRAINT = member(Constraint, Constraint.UNKNOWN)
_EFFECTS = sequence(0, 64, member(Effect, Effect.UNSPECIFIED, Effect.UNKNOWN))
_QUANTITY = finite(-LARGEST_QUANTITY, LARGEST_QUANTITY)


@frozen(kw_only=True)
class Estimate(CrossChecked):
    """An interval for a quantity; its unit is the suffix of the field that holds it.

    `lower` is always a number. `expected` is None where no calibration covers the operating point, `upper` is None
    where nothing bounds the quantity. lower <= expected <= upper wherever they are present.
    """

    lower: float = field(metadata=_QUANTITY)
    expected: float | None = field(default=None, metadata=optional(_QUANTITY))
    upper: float | None = field(default=None, metadata=optional(_QUANTITY))
    lower_basis: Basis = field(default=Basis.UNSPECIFIED, metadata=_BASIS)
    expected_basis: Basis = field(default=Basis.UNSPECIFIED, metadata=_BASIS)
    upper_basis: Basis = field(default=Basis.UNSPECIFIED, metadata=_BASIS)
    binding_constraint: Constraint = field(default=Constraint.UNSPECIFIED, metadata=_CONSTRAINT)
    effects_left_out: tuple[Effect, ...] = field(default=(), metadata=_EFFECTS)

    def contains(self, value: float) -> bool:
        """Whether `value` lies in the interval; an absent upper end bounds nothing."""
        return self.lower <= value and (self.upper is None or value <= self.upper)

    def cross_violations(self) -> Iterable[Violation]:
        """Hold lower <= expected <= upper."""
        if self.upper is not None and self.upper < self.lower:
            yield Violation("upper", f"{self.upper} is below lower, {self.lower}")
        if self.expected is not None and not self.contains(self.expected):
            yield Violation("expected", f"{self.expected} is outside {self.lower} to {self.upper}")
