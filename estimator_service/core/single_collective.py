"""One collective by itself, as nccl-tests times it."""

from __future__ import annotations

from estimator_service.core import assumptions
from estimator_service.core.collectives import bus_factor, ring_step_count, sent_bytes
from estimator_service.core.intervals import at_least, between, link_basis, link_effects
from estimator_service.core.links import resolve, send_seconds
from estimator_service.core.version import ESTIMATOR_VERSION
from linkbound.domain.collective import CollectiveEstimate, CollectiveRequest
from linkbound.domain.estimate import Constraint, Estimate
from linkbound.domain.link import ResolvedLink


def estimate_collective(request: CollectiveRequest) -> CollectiveEstimate:
    """Bytes, time and bandwidth of one ring collective (`docs/formulas.md`, Collectives).

    The bus bandwidth is at most the effective rate of the link, B / 8 bytes per second, and the algorithm bandwidth at
    most that over the bus factor. Latency has no bound here, so times have no upper end and bandwidths start at 0.
    """
    link = resolve(request.link)
    factor = bus_factor(request.kind, request.rank_count)
    sent = (
        None if request.message_bytes is None else sent_bytes(request.kind, request.rank_count, request.message_bytes)
    )
    return CollectiveEstimate(
        sent_bytes_per_rank=None if sent is None else round(sent),
        ring_step_count=ring_step_count(request.kind, request.rank_count),
        seconds=None if sent is None else _seconds(sent, link),
        bus_bandwidth_bytes_per_second=_at_most(link.effective_bytes_per_second, link),
        algorithm_bandwidth_bytes_per_second=_at_most(link.effective_bytes_per_second / factor, link),
        link=link,
        assumptions=assumptions.of_links(link),
        estimator_version=ESTIMATOR_VERSION,
    )


def _seconds(sent: float, link: ResolvedLink) -> Estimate:
    return at_least(
        send_seconds(sent, link.effective_bits_per_second),
        link_basis(link),
        constraint=Constraint.NETWORK_BANDWIDTH,
        effects=link_effects(link),
    )


def _at_most(bytes_per_second: float, link: ResolvedLink) -> Estimate:
    return between(
        0.0,
        bytes_per_second,
        link_basis(link),
        constraint=Constraint.NETWORK_BANDWIDTH,
        effects=link_effects(link),
    )
