"""Which option stands before which, and why."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from estimator_service.core.sizing.fabric import Fabric
from estimator_service.core.sizing.sentences import rate_in_words
from linkbound.domain.network_parts import Switch


@frozen
class Candidate:
    """A switch that can do it, and the fabric of fewest of them."""

    switch: Switch
    fabric: Fabric


def rank(candidate: Candidate) -> tuple[int, int, bool, float, int, str]:
    """The place of a candidate, the lowest first (`docs/formulas.md`, Sizing).

    Fewest switches; then the links nearest to the rate asked for; then a switch with a known list price, the cheapest;
    then, at the same price, the one with more free links, and without a price the one with fewer.
    """
    price, free = candidate.switch.list_price_usd, candidate.fabric.free_link_count
    return (
        candidate.fabric.switch_count,
        _rate(candidate),
        price is None,
        price or 0.0,
        free if price is None else -free,
        candidate.switch.switch_id,
    )


def why_before(first: Candidate, second: Candidate) -> Iterator[str]:
    """Why `first` stands before `second`; nothing where only their names differ (`docs/formulas.md`, Sizing)."""
    name = second.switch.display_name
    counts = first.fabric.switch_count, second.fabric.switch_count
    prices = first.switch.list_price_usd, second.switch.list_price_usd
    free = first.fabric.free_link_count, second.fabric.free_link_count
    if counts[0] != counts[1]:
        yield f"It comes before {name}, of which it takes {counts[1]} switches."
    elif _rate(first) != _rate(second):
        rate = rate_in_words(_rate(second))
        yield f"It comes before {name}, whose links are further from the rate asked for: {rate}."
    elif (prices[0] is None) != (prices[1] is None):
        yield f"It comes before {name}, for which no list price is known."
    elif prices[0] is not None and prices[1] is not None and prices[0] != prices[1]:
        yield f"It comes before {name}, which lists at {prices[1]:,.0f} USD."
    elif free[0] != free[1]:
        kept = "the same price but fewer" if prices[0] is not None else "no known price either and more"
        yield f"It comes before {name}, with {kept} free links: {free[1]}."


def _rate(candidate: Candidate) -> int:
    return candidate.fabric.node_ports[0].mode.rate_bits_per_second
