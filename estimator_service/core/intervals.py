"""How answers become intervals: ends, their basis, and the effects they leave out."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from attrs import evolve

from estimator_service.core.elementwise import Real, larger, smaller
from linkbound.domain.estimate import Basis, Constraint, Effect, Estimate
from linkbound.domain.link import RateSource, ResolvedLink

_EFFECTS = tuple(Effect)
_OF_ANY_LINK = (Effect.COLLECTIVE_LATENCY, Effect.RATE_RAMP, Effect.ALGORITHM_CHOICE)
_OF_A_BARE_RATE = (*_OF_ANY_LINK, Effect.PACKET_HEADERS)


def combined_basis(*bases: Basis) -> Basis:
    """The basis of a number made of several: theirs if it is one, else MIXED (`docs/formulas.md`, Intervals)."""
    first = bases[0]
    return first if bases.count(first) == len(bases) else Basis.MIXED


def link_basis(*links: ResolvedLink) -> Basis:
    """The basis of a number made of rates: MEASURED if all are measured (`docs/formulas.md`, Intervals)."""
    measured_count = [link.rate_source for link in links].count(RateSource.MEASURED)
    if not measured_count:
        return Basis.FORMULA
    return Basis.MEASURED if measured_count == len(links) else Basis.MIXED


def ordered_effects(*effects: Effect) -> tuple[Effect, ...]:
    """`effects` in the order of the enum, each once (`docs/formulas.md`, Intervals)."""
    return _ordered(effects)


# Few sets of effects occur, each in many answers.
@lru_cache(maxsize=1024)
def _ordered(effects: tuple[Effect, ...]) -> tuple[Effect, ...]:
    return tuple([effect for effect in _EFFECTS if effect in effects])


def link_effects(*links: ResolvedLink) -> tuple[Effect, ...]:
    """What a transfer over `links` leaves out: latency, ramp, other algorithms, and headers of a rate taken as it is.

    (`docs/formulas.md`, Intervals)
    """
    return _OF_A_BARE_RATE if RateSource.GIVEN in [link.rate_source for link in links] else _OF_ANY_LINK


def network_constraint(sent_bytes: float) -> Constraint:
    """NETWORK_BANDWIDTH where anything is sent (`docs/formulas.md`, Intervals)."""
    return Constraint.NETWORK_BANDWIDTH if sent_bytes else Constraint.UNSPECIFIED


def exactly(
    value: float, basis: Basis, *, constraint: Constraint = Constraint.UNSPECIFIED, effects: Iterable[Effect] = ()
) -> Estimate:
    """[value, value] (`docs/formulas.md`, Intervals)."""
    return between(value, value, basis, constraint=constraint, effects=effects)


def between(
    lower: float,
    upper: float,
    basis: Basis,
    *,
    constraint: Constraint = Constraint.UNSPECIFIED,
    effects: Iterable[Effect] = (),
) -> Estimate:
    """[lower, upper], both ends of one basis (`docs/formulas.md`, Intervals)."""
    return Estimate(
        lower=lower,
        upper=upper,
        lower_basis=basis,
        upper_basis=basis,
        binding_constraint=constraint,
        effects_left_out=_ordered(tuple(effects)),
    )


def at_least(
    lower: float, basis: Basis, *, constraint: Constraint = Constraint.UNSPECIFIED, effects: Iterable[Effect] = ()
) -> Estimate:
    """[lower, open): nothing bounds it above (`docs/formulas.md`, Intervals)."""
    return Estimate(
        lower=lower,
        lower_basis=basis,
        binding_constraint=constraint,
        effects_left_out=_ordered(tuple(effects)),
    )


def between_zero_and(
    value: float, basis: Basis, *, constraint: Constraint = Constraint.UNSPECIFIED, effects: Iterable[Effect] = ()
) -> Estimate:
    """[min(0, value), max(0, value)]: from hidden in full to felt in full (`docs/formulas.md`, Intervals)."""
    lower, upper = ends_of_change(value)
    return between(lower, upper, basis, constraint=constraint, effects=effects)


def ends_of_change(value: Real) -> tuple[Real, Real]:
    """The ends min(0, value) and max(0, value) of a change (`docs/formulas.md`, Intervals)."""
    # Adding zero makes a negative zero, which a faster link for no bytes gives, a plain one.
    return smaller(value, 0.0) + 0.0, larger(value, 0.0) + 0.0


def upper_end(estimate: Estimate) -> float:
    """The upper end of an interval that has one (`docs/formulas.md`, Intervals). ValueError where nothing bounds it."""
    if estimate.upper is None:
        raise ValueError("nothing bounds the interval above")
    return estimate.upper


def mapped(estimate: Estimate, lower: float, upper: float, *bases: Basis) -> Estimate:
    """`estimate` with other ends, its basis combined with `bases` (`docs/formulas.md`, Intervals)."""
    basis = combined_basis(estimate.lower_basis, *bases)
    return evolve(estimate, lower=lower, upper=upper, lower_basis=basis, upper_basis=basis)
