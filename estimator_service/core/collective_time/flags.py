"""Bytes on the wire beside the payload: the flags of the protocol that the library took while times were measured."""

from __future__ import annotations

from functools import lru_cache

from attrs import frozen

from estimator_service.core.collective_time.algorithms import Group
from estimator_service.core.collective_time.library_model import Rates, library_choices, wire_bytes
from estimator_service.core.elementwise import larger, smaller
from linkbound.domain.collective import CollectiveKind, CollectiveProtocol

LARGEST_FLAGGED_OCTAVE_COUNT = 40
"""Above 2^40 bytes no link is so fast that the library would take a protocol with flags for its latency."""


@frozen(kw_only=True)
class FlaggedSizes:
    """Payloads up to which the library may take each protocol with flags; 0: it does not."""

    ll_bytes: float
    ll128_bytes: float


def wire_ratio(kind: CollectiveKind, group: Group, message_bytes: float, bits_per_second: float) -> float:
    """Bytes on the wire for each byte of payload, at most, over links of one rate; from 1 to 2.

    1 + max(min(P, P_LL), min(P, P_LL128) / 15) / P, P_LL and P_LL128 the payloads up to which the library's model takes
    these protocols. It takes others beyond, but no larger payload has fewer bytes (`docs/formulas.md`, Collective
    time).
    """
    sizes = _flagged_sizes(kind, group, bits_per_second)
    by_ll, by_ll128 = smaller(message_bytes, sizes.ll_bytes), smaller(message_bytes, sizes.ll128_bytes)
    flags_bytes = larger(
        wire_bytes(CollectiveProtocol.LL, by_ll) - by_ll, wire_bytes(CollectiveProtocol.LL128, by_ll128) - by_ll128
    )
    return 1 + flags_bytes / message_bytes


@lru_cache(maxsize=256)
def _flagged_sizes(kind: CollectiveKind, group: Group, bits_per_second: float) -> FlaggedSizes:
    inner = bits_per_second if group.ranks_per_node > 1 else None
    rates = Rates(outer_bits_per_second=bits_per_second, inner_bits_per_second=inner)
    largest = dict.fromkeys(CollectiveProtocol, 0.0)
    for octave in range(LARGEST_FLAGGED_OCTAVE_COUNT + 1):
        choices = library_choices(kind, group, 2.0**octave, rates)
        # It may be taken up to the next size that is asked for.
        largest[next(choice.protocol for choice in choices if choice.chosen)] = 2.0 ** (octave + 1)
    return FlaggedSizes(ll_bytes=largest[CollectiveProtocol.LL], ll128_bytes=largest[CollectiveProtocol.LL128])
