"""One collective by itself, as nccl-tests times it."""

from __future__ import annotations

from attrs import frozen

from estimator_service.core import assumptions
from estimator_service.core.collective_time import (
    Group,
    Rates,
    SentBytes,
    WireTime,
    algorithm_sent_bytes,
    calibrated_time,
    covers,
    is_library_choice,
    library_choices,
    seconds_on_links,
)
from estimator_service.core.collectives import bus_factor, ring_step_count
from estimator_service.core.intervals import at_least, between, link_basis, link_effects
from estimator_service.core.links import resolve
from estimator_service.core.version import ESTIMATOR_VERSION
from linkbound.domain.calibration import Calibration
from linkbound.domain.collective import CollectiveAlgorithm, CollectiveKind
from linkbound.domain.collective_estimate import CollectiveEstimate, CollectiveRequest
from linkbound.domain.estimate import Constraint, Effect, Estimate
from linkbound.domain.link import ResolvedLink

RING, TREE, ONE_SHOT = (
    CollectiveAlgorithm.RING,
    CollectiveAlgorithm.DOUBLE_BINARY_TREE,
    CollectiveAlgorithm.ONE_SHOT,
)


@frozen(kw_only=True)
class _Network:
    """The group with its links: one between nodes, one within them where they have several ranks."""

    group: Group
    link: ResolvedLink
    inner_link: ResolvedLink | None

    @property
    def used_links(self) -> tuple[ResolvedLink, ...]:
        """The links that carry anything."""
        outer = (self.link,) if self.group.node_count > 1 else ()
        return outer if self.inner_link is None else (*outer, self.inner_link)

    @property
    def rates(self) -> Rates:
        """Their effective rates."""
        inner = None if self.inner_link is None else float(self.inner_link.effective_bits_per_second)
        return Rates(outer_bits_per_second=float(self.link.effective_bits_per_second), inner_bits_per_second=inner)


def estimate_collective(request: CollectiveRequest, calibration: Calibration | None = None) -> CollectiveEstimate:
    """Bytes, time and bandwidth of one collective (`docs/formulas.md`, Collectives).

    t >= 8 S / B over the slowest link, so the bus bandwidth f P / t is at most what that leaves. Without a
    `calibration` that covers the group, latency has no bound: times have no upper end and bandwidths start at 0.
    """
    network = _network(request)
    kind, message_bytes = request.kind, request.message_bytes
    choices = () if message_bytes is None else library_choices(kind, network.group, message_bytes, network.rates)
    sent = None if message_bytes is None else _sent(request, network.group, message_bytes)
    is_covered = calibration is not None and covers(
        calibration, kind, request.rank_count, request.ranks_per_node, request.algorithm
    )
    seconds = None
    if message_bytes is not None:
        seconds = _floor(request, network, message_bytes)
        if calibration is not None and is_covered:
            longest = max(_seconds_of_each(request, network, message_bytes))
            wire = WireTime(seconds=seconds.lower, basis=seconds.lower_basis, longest_seconds=longest)
            seconds = calibrated_time(calibration).seconds(message_bytes, wire)
    has_nodes_of_many = network.inner_link is not None
    return CollectiveEstimate(
        sent_bytes_per_rank=None if sent is None else round(sent.outer),
        ring_step_count=ring_step_count(kind, request.rank_count),
        seconds=seconds,
        bus_bandwidth_bytes_per_second=_rate(bus_factor(kind, request.rank_count), request, network, seconds),
        algorithm_bandwidth_bytes_per_second=_rate(1.0, request, network, seconds),
        link=network.link,
        assumptions=(
            *assumptions.of_collective(request, *network.used_links),
            *_of_calibration(request, calibration, is_covered=is_covered),
        ),
        estimator_version=ESTIMATOR_VERSION,
        choices=choices,
        calibration=calibration,
        inner_sent_bytes_per_rank=round(sent.inner) if sent is not None and has_nodes_of_many else None,
        inner_link=network.inner_link,
    )


def _of_calibration(
    request: CollectiveRequest, calibration: Calibration | None, *, is_covered: bool
) -> tuple[str, ...]:
    if calibration is not None and not is_library_choice(request.kind, request.algorithm):
        return (assumptions.NOT_OF_THE_CHOICE,)
    return assumptions.of_collective_calibration(calibration, is_covered=is_covered)


def _network(request: CollectiveRequest) -> _Network:
    inner_link = None
    if request.ranks_per_node > 1 and request.inner_link is not None:
        inner_link = resolve(request.inner_link)
    return _Network(
        group=Group(rank_count=request.rank_count, ranks_per_node=request.ranks_per_node),
        link=resolve(request.link),
        inner_link=inner_link,
    )


def _algorithms(request: CollectiveRequest) -> tuple[CollectiveAlgorithm, ...]:
    """What the collective may run as; the bound is that of the least."""
    if request.kind is CollectiveKind.ALL_TO_ALL:
        # Every rank has something else for every other one: there is no shorter way than to send it.
        return (ONE_SHOT,)
    match request.algorithm:
        case CollectiveAlgorithm.AUTO:
            return (RING, TREE) if request.kind is CollectiveKind.ALL_REDUCE else (RING,)
        case CollectiveAlgorithm.DOUBLE_BINARY_TREE | CollectiveAlgorithm.ONE_SHOT:
            return (request.algorithm,)
    return (RING,)


def _sent(request: CollectiveRequest, group: Group, message_bytes: float) -> SentBytes:
    """Bytes of the algorithm asked for; with AUTO the most of those that the library may take, on each kind of link."""
    of_each = [
        algorithm_sent_bytes(algorithm, request.kind, group, message_bytes) for algorithm in _algorithms(request)
    ]
    return SentBytes(outer=max(sent.outer for sent in of_each), inner=max(sent.inner for sent in of_each))


def _seconds_on_wire(request: CollectiveRequest, network: _Network, message_bytes: float) -> float:
    return min(_seconds_of_each(request, network, message_bytes))


def _seconds_of_each(request: CollectiveRequest, network: _Network, message_bytes: float) -> list[float]:
    return [
        seconds_on_links(algorithm_sent_bytes(algorithm, request.kind, network.group, message_bytes), network.rates)
        for algorithm in _algorithms(request)
    ]


def _floor(request: CollectiveRequest, network: _Network, message_bytes: float) -> Estimate:
    return at_least(
        _seconds_on_wire(request, network, message_bytes),
        link_basis(*network.used_links),
        constraint=Constraint.NETWORK_BANDWIDTH,
        effects=link_effects(*network.used_links),
    )


def _rate(factor: float, request: CollectiveRequest, network: _Network, seconds: Estimate | None) -> Estimate:
    """`factor` x P / t: at most what the links allow; measured where the time is."""
    links = network.used_links
    if seconds is not None and seconds.expected is not None and seconds.upper is not None:
        carried = factor * (request.message_bytes or 0)
        return Estimate(
            lower=carried / seconds.upper,
            expected=carried / seconds.expected,
            upper=carried / seconds.lower,
            lower_basis=seconds.upper_basis,
            expected_basis=seconds.expected_basis,
            upper_basis=seconds.lower_basis,
            binding_constraint=seconds.binding_constraint,
            effects_left_out=(Effect.STRAGGLERS,),
        )
    return between(
        0.0,
        factor / _seconds_on_wire(request, network, 1.0),
        link_basis(*links),
        constraint=Constraint.NETWORK_BANDWIDTH,
        effects=link_effects(*links),
    )
