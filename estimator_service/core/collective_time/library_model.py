"""How long a collective takes by NCCL's own time model, and which algorithm and protocol NCCL would take.

The structure is NCCL's: a fixed time of the algorithm and protocol, and bytes over a rate; the least of all is taken.
Three things differ, so that laws of physics hold. The link carries exactly the bytes of the protocol at its effective
rate, where NCCL takes factors from a nominal one. What limits the library itself (flags, channels, trees that are not
filled) is a rate of its own beside the link's. The share that a tree reaches is joined between the sizes of its table.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from attrs import evolve, frozen

from estimator_service.core.collective_time import nccl_constants as nccl
from estimator_service.core.collective_time.algorithms import (
    Group,
    SentBytes,
    algorithm_steps,
    busiest_sent_bytes,
)
from estimator_service.core.elementwise import larger, smaller
from estimator_service.core.links import send_seconds
from linkbound.domain.collective import CollectiveAlgorithm, CollectiveKind, CollectiveProtocol
from linkbound.domain.collective_estimate import LARGEST_SENT_BYTES, CollectiveChoice

RING, TREE, ONE_SHOT = (
    CollectiveAlgorithm.RING,
    CollectiveAlgorithm.DOUBLE_BINARY_TREE,
    CollectiveAlgorithm.ONE_SHOT,
)
LL, LL128, SIMPLE = CollectiveProtocol.LL, CollectiveProtocol.LL128, CollectiveProtocol.SIMPLE


@frozen(kw_only=True)
class Rates:
    """Effective payload rates in bits per second: between nodes, and within one where it has several ranks.

    `network_latency_seconds` is what the network adds to each step between nodes, beside the constants of the library.
    """

    outer_bits_per_second: float
    inner_bits_per_second: float | None = None
    network_latency_seconds: float = 0.0


def library_choices(
    kind: CollectiveKind, group: Group, message_bytes: float, rates: Rates
) -> tuple[CollectiveChoice, ...]:
    """Every algorithm and protocol with its modelled time, fastest first; the one that NCCL would take is marked.

    t = fixed + max over links of 8 W / B, W the bytes with flags; NCCL takes the least. A custom one-shot all-reduce,
    all-gather or reduce-scatter stands beside NCCL's and is never marked (`docs/formulas.md`, Library time model).
    """
    own = list(_of_library(kind, group, message_bytes, rates))
    fastest = min(own, key=lambda choice: choice.seconds)
    own[own.index(fastest)] = evolve(fastest, chosen=True)
    custom = _custom_one_shot(kind, group, message_bytes, rates)
    return tuple(sorted([*own, *custom], key=lambda choice: choice.seconds))


def seconds_on_links(sent: SentBytes, rates: Rates) -> float:
    """Time for which the links are busy: they carry at the same time, so that the slower part counts.

    (`docs/formulas.md`, Library time model)
    """
    outer = send_seconds(sent.outer, rates.outer_bits_per_second)
    inner = 0.0 if rates.inner_bits_per_second is None else send_seconds(sent.inner, rates.inner_bits_per_second)
    return larger(outer, inner)


def wire_bytes(protocol: CollectiveProtocol, payload_bytes: float) -> float:
    """Bytes on the wire for `payload_bytes`: LL carries 8 of each 16, LL128 120 of each 128, Simple all.

    (`docs/formulas.md`, Library time model)
    """
    match protocol:
        case CollectiveProtocol.LL:
            return payload_bytes / nccl.LL_DATA_FRACTION
        case CollectiveProtocol.LL128:
            return payload_bytes / nccl.LL128_DATA_FRACTION
    return payload_bytes


def tree_rate_fraction(protocol: CollectiveProtocol, message_bytes: float) -> float:
    """Share of its rate that a tree reaches, straight in log2 of the payload between the sizes of NCCL's table.

    (`docs/formulas.md`, Library time model)
    """
    fractions = nccl.TREE_RATE_FRACTIONS[protocol]
    octaves = math.log2(larger(message_bytes / nccl.SMALLEST_TREE_BYTES, 1.0))
    place = smaller(octaves, float(len(fractions) - 1))
    index = min(int(place), len(fractions) - 2)
    return fractions[index] + (fractions[index + 1] - fractions[index]) * (place - index)


def fixed_seconds(
    algorithm: CollectiveAlgorithm,
    protocol: CollectiveProtocol,
    kind: CollectiveKind,
    group: Group,
    network_latency_seconds: float = 0.0,
) -> float:
    """Fixed time of a ring or tree: base + inner steps x step within a node + outer steps x step between nodes.

    No link rate is in it (`docs/formulas.md`, Library time model).
    """
    row = (algorithm, protocol)
    steps = algorithm_steps(algorithm, kind, group)
    inner, outer = nccl.NVLINK_STEP_SECONDS[row], nccl.NETWORK_STEP_SECONDS[row]
    if algorithm is RING and group.ranks_per_node == 1:
        outer = nccl.NETWORK_STEP_SECONDS[TREE, protocol]
    if algorithm is RING and group.node_count > 1:
        inner = larger(inner, nccl.NETWORK_POST_SECONDS)
    seconds = nccl.BASE_LATENCY_SECONDS[row] + steps.inner * inner + steps.outer * (outer + network_latency_seconds)
    is_on_plateau = row == (RING, SIMPLE) and kind is CollectiveKind.ALL_REDUCE and group.node_count > 1
    return seconds * nccl.SIMPLE_RING_PLATEAU_RATIO if is_on_plateau else seconds


def _of_library(kind: CollectiveKind, group: Group, message_bytes: float, rates: Rates) -> Iterator[CollectiveChoice]:
    if kind in {CollectiveKind.ALL_TO_ALL, CollectiveKind.SEND_RECEIVE}:
        algorithm = ONE_SHOT if kind is CollectiveKind.ALL_TO_ALL else RING
        for protocol in (LL, SIMPLE):
            fixed = _direct_seconds(kind, group, protocol, rates)
            yield _choice(algorithm, protocol, kind, group, message_bytes, rates, fixed)
        return
    for algorithm in (RING, TREE) if kind is CollectiveKind.ALL_REDUCE else (RING,):
        for protocol in (LL, LL128, SIMPLE):
            fixed = fixed_seconds(algorithm, protocol, kind, group, rates.network_latency_seconds)
            yield _choice(algorithm, protocol, kind, group, message_bytes, rates, fixed)


def _custom_one_shot(
    kind: CollectiveKind, group: Group, message_bytes: float, rates: Rates
) -> Iterator[CollectiveChoice]:
    """A collective of the engine's own over RDMA or NVLink: everything at once, with the latency of one LL step."""
    if kind not in {CollectiveKind.ALL_REDUCE, CollectiveKind.ALL_GATHER, CollectiveKind.REDUCE_SCATTER}:
        return
    choice = _choice(ONE_SHOT, SIMPLE, kind, group, message_bytes, rates, _direct_seconds(kind, group, LL, rates))
    if choice.wire_bytes_per_rank <= LARGEST_SENT_BYTES:
        yield choice


def _direct_seconds(kind: CollectiveKind, group: Group, protocol: CollectiveProtocol, rates: Rates) -> float:
    """Fixed time of one step to every other rank: each message after the first costs one more post."""
    is_within_node = group.node_count == 1
    step = nccl.NVLINK_STEP_SECONDS if is_within_node else nccl.NETWORK_STEP_SECONDS
    latency = 0.0 if is_within_node else rates.network_latency_seconds
    messages = 1 if kind is CollectiveKind.SEND_RECEIVE else group.rank_count - 1
    posts = 0.0 if is_within_node else (messages - 1) * nccl.NETWORK_POST_SECONDS
    return nccl.BASE_LATENCY_SECONDS[RING, protocol] + step[TREE, protocol] + latency + posts


def _choice(
    algorithm: CollectiveAlgorithm,
    protocol: CollectiveProtocol,
    kind: CollectiveKind,
    group: Group,
    message_bytes: float,
    rates: Rates,
    fixed: float,
) -> CollectiveChoice:
    sent = busiest_sent_bytes(algorithm, kind, group, message_bytes)
    on_wire = SentBytes(outer=wire_bytes(protocol, sent.outer), inner=wire_bytes(protocol, sent.inner))
    on_links = seconds_on_links(on_wire, rates)
    within_library = _library_seconds(algorithm, protocol, group, message_bytes, larger(sent.outer, sent.inner))
    return CollectiveChoice(
        algorithm=algorithm,
        protocol=protocol,
        fixed_seconds=fixed,
        seconds=fixed + larger(on_links, within_library),
        wire_bytes_per_rank=round(on_wire.outer if group.node_count > 1 else on_wire.inner),
        chosen=False,
    )


def _library_seconds(
    algorithm: CollectiveAlgorithm, protocol: CollectiveProtocol, group: Group, message_bytes: float, sent: float
) -> float:
    """Time that the library itself needs for the bytes, whatever the links: 0 where nothing limits it."""
    nodes = min(group.node_count, 3) - 1
    channels = nccl.NODE_CHANNEL_COUNT if group.node_count == 1 else nccl.NETWORK_CHANNEL_COUNT
    match algorithm, protocol:
        case _, CollectiveProtocol.LL:
            rate = nccl.LL_BYTES_PER_SECOND[nodes]
        case CollectiveAlgorithm.RING, CollectiveProtocol.LL128:
            rate = channels * nccl.LL128_RING_BYTES_PER_SECOND[nodes]
        case CollectiveAlgorithm.DOUBLE_BINARY_TREE, CollectiveProtocol.LL128:
            rate = channels * nccl.LL128_TREE_BYTES_PER_SECOND[nodes]
        case CollectiveAlgorithm.DOUBLE_BINARY_TREE, CollectiveProtocol.SIMPLE:
            rate = channels * nccl.SIMPLE_TREE_BYTES_PER_SECOND[nodes]
        case _:
            return 0.0
    if algorithm is TREE:
        rate *= tree_rate_fraction(protocol, message_bytes)
    return sent / rate
