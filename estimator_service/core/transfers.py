"""Bytes over one link, or over two: the intervals that every answer about a link is made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from attrs import evolve

from estimator_service.core.elementwise import larger
from estimator_service.core.intervals import (
    between_zero_and,
    combined_basis,
    exactly,
    link_basis,
    link_effects,
    mapped,
    network_constraint,
    upper_end,
)
from estimator_service.core.links import extra_send_seconds, send_seconds
from linkbound.domain.errors import Violation
from linkbound.domain.estimate import Basis, Effect, Estimate
from linkbound.domain.link import ResolvedLink


def network_seconds(sent_bytes: float, link: ResolvedLink, effects: Iterable[Effect] = ()) -> Estimate:
    """Time for which `link` is busy with `sent_bytes`, both ends: t = 8 S / B (`docs/formulas.md`, Time on a link)."""
    return exactly(
        send_seconds(sent_bytes, link.effective_bits_per_second),
        link_basis(link),
        constraint=network_constraint(sent_bytes),
        effects=(*link_effects(link), *effects),
    )


def extra_seconds(
    sent_bytes: float, old_link: ResolvedLink, new_link: ResolvedLink, effects: Iterable[Effect] = ()
) -> Estimate:
    """What changes from `old_link` to `new_link`: [min(0, d), max(0, d)], d = 8 S (1/B_new - 1/B_old).

    One end: every transfer is hidden behind arithmetic or never reached the rate of either link. The other end: none
    is (`docs/formulas.md`, Time on a link). Effects: those of the links, overlap, and `effects`.
    """
    return between_zero_and(
        extra_send_seconds(sent_bytes, old_link.effective_bits_per_second, new_link.effective_bits_per_second),
        link_basis(old_link, new_link),
        constraint=network_constraint(sent_bytes),
        effects=(Effect.COMPUTE_OVERLAP, *link_effects(old_link, new_link), *effects),
    )


def nominal_extra_seconds(sent_bytes: float, old_link: ResolvedLink, new_link: ResolvedLink) -> Estimate | None:
    """The same at the line rates; None where these are the effective ones or one is not known.

    (`docs/formulas.md`, Time on a link)
    """
    old_rate, new_rate = old_link.link.line_rate_bits_per_second, new_link.link.line_rate_bits_per_second
    effective_rates = (old_link.effective_bits_per_second, new_link.effective_bits_per_second)
    if old_rate is None or new_rate is None or (old_rate, new_rate) == effective_rates:
        return None
    return between_zero_and(
        extra_send_seconds(sent_bytes, old_rate, new_rate),
        Basis.NOMINAL,
        constraint=network_constraint(sent_bytes),
        effects=(Effect.COMPUTE_OVERLAP, Effect.PACKET_HEADERS, *link_effects(old_link, new_link)),
    )


def extra_fraction(extra: Estimate, baseline_seconds: float) -> Estimate:
    """`extra` over a measured baseline: d / T (`docs/formulas.md`, Baselines)."""
    fraction = mapped(extra, extra.lower / baseline_seconds, upper_end(extra) / baseline_seconds, Basis.MEASURED)
    return fraction if extra.expected is None else _expected(fraction, extra.expected / baseline_seconds)


def seconds_after_change(extra: Estimate, baseline_seconds: float, new_network_seconds: float) -> Estimate:
    """A measured baseline with `extra` added: max(T + d, t_new) at each end (`docs/formulas.md`, Baselines).

    However much of the extra time is hidden, nothing ends before the new link has carried the bytes.
    """
    changed = mapped(
        extra,
        larger(baseline_seconds + extra.lower, new_network_seconds),
        larger(baseline_seconds + upper_end(extra), new_network_seconds),
        Basis.MEASURED,
    )
    if extra.expected is None:
        return changed
    return _expected(changed, larger(baseline_seconds + extra.expected, new_network_seconds))


def _expected(estimate: Estimate, value: float) -> Estimate:
    """`estimate`, made of a change with an expectation and a measured baseline, with its own expectation."""
    return evolve(estimate, expected=value, expected_basis=combined_basis(estimate.expected_basis, Basis.MEASURED))


def baseline_violations(
    field: str, baseline_seconds: float | None, sent_bytes: float, link: ResolvedLink
) -> Iterator[Violation]:
    """The violation of a measured `baseline_seconds` below 8 S / B (`docs/formulas.md`, Baselines)."""
    needed_seconds = send_seconds(sent_bytes, link.effective_bits_per_second)
    if baseline_seconds is not None and baseline_seconds < needed_seconds:
        yield Violation(
            field,
            f"{baseline_seconds} s is below {needed_seconds} s, which {link.effective_bits_per_second} bit/s need for"
            f" the {round(sent_bytes)} bytes that it carries",
        )
