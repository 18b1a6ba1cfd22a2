"""What answers assume, in words: each sentence once, joined by the answer that relies on it."""

from __future__ import annotations

from estimator_service.core.links import DEFAULT_ROCE_MTU_BYTES, PACKET_HEADER_BYTES
from linkbound.domain.link import RateSource, ResolvedLink
from linkbound.domain.workload import DecodeWorkload, PrefillWorkload

RING = "Collectives run as rings: a rank sends 2 (N - 1) / N of an all-reduce and (N - 1) / N of a gather."
ONE_RANK_PER_LINK = "Every rank has a link of its own at the same rate; with different links, the slowest counts."
BARE_RATE = "A rate that nothing refines is the effective payload rate."
COUNTED_HEADERS = f"Port counters include {PACKET_HEADER_BYTES} header bytes of each packet."
DEFAULT_MTU = f"Counter bytes assume a RoCE MTU of {DEFAULT_ROCE_MTU_BYTES} (Ethernet MTU 1500)."
NO_CACHED_PREFIX = "No part of a prompt comes from a prefix cache."
ONE_PASS = "Each prompt needs the logits of one row: without max_num_batched_tokens it is taken to run in one pass."
PACKED_PASSES = (
    "Passes are filled first come, first served, without a threshold for long prompts and without decoding requests."
)
UNSHARDED_DRAFTS = "Draft layers are not split over the ranks and send nothing."
MEAN_WEIGHT_BITS = "Every active parameter is read once in a pass, at the mean bits of the stored weights."
ONE_EXCHANGE_PER_STEP = "The gradients of a step are exchanged once, and a step computes as long as on one node."
EVEN_COMPUTE = "Arithmetic is split evenly over the ranks, and nothing of the baseline is fixed."
NO_OVERLAP = "Relative changes take it that no transfer runs while the accelerators compute; the TTFTs do not."
FORMULA_BYTES = "The emulated link carried the bytes of the formula: no measured bytes were given."
COUNTED_BYTES = "Measured counter bytes include headers, so over payload rates they count at most too much."
ALIKE_OTHERWISE = "The emulated link differs from the real one in its rate only."


def of_links(*links: ResolvedLink) -> tuple[str, ...]:
    """What an answer about `links` assumes (`docs/formulas.md`, Links)."""
    bare = (BARE_RATE,) if any(link.rate_source is RateSource.GIVEN for link in links) else ()
    return (RING, ONE_RANK_PER_LINK, *bare)


def of_counters(link: ResolvedLink) -> tuple[str, ...]:
    """What counter bytes over `link` assume (`docs/formulas.md`, Links)."""
    default_mtu = (DEFAULT_MTU,) if link.link.roce_mtu_bytes is None else ()
    return (COUNTED_HEADERS, *default_mtu)


def of_prefill(workload: PrefillWorkload) -> tuple[str, ...]:
    """What the passes of `workload` assume (`docs/formulas.md`, Prefill)."""
    if workload.max_num_batched_tokens is None:
        return (NO_CACHED_PREFIX, ONE_PASS)
    packed = (PACKED_PASSES,) if workload.request_count > 1 else ()
    return (NO_CACHED_PREFIX, *packed)


def of_weights(weight_bytes: float | None) -> tuple[str, ...]:
    """What the weight bytes of a pass assume (`docs/formulas.md`, Decode)."""
    return () if weight_bytes is None else (MEAN_WEIGHT_BITS,)


def of_decode(workload: DecodeWorkload) -> tuple[str, ...]:
    """What the passes of `workload` assume (`docs/formulas.md`, Decode)."""
    return (UNSHARDED_DRAFTS,) if workload.draft_token_count else ()
