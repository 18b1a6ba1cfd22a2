"""The prefill question and its answer."""

from __future__ import annotations

from attrs import field, frozen

from linkbound.domain.calibration import CollectiveTable
from linkbound.domain.estimate import Estimate
from linkbound.domain.fabric import LINK, OPTIONAL_LINK, OPTIONAL_TABLE, OfInstance
from linkbound.domain.layout import LARGEST_RANK_LINK_COUNT, CollectiveTraffic, ParallelLayout
from linkbound.domain.link import Link, ResolvedLink
from linkbound.domain.names import OPTIONAL_CATALOG_NAME
from linkbound.domain.rules import Checked, instance, optional, sequence
from linkbound.domain.workload import POSITIVE_SECONDS, PrefillWorkload


@frozen(kw_only=True)
class PrefillRequest(Checked, OfInstance):
    """What do these prompts cost over `link`, and what if it changes to `to_link`?

    `link` is that of every node, `inner_link` that of each rank within one. `rank_links` are those of single nodes that
    have another one and keep it; the slowest counts. `baseline_ttft_seconds` is measured over `link`, of the last
    request where several arrive together. `calibration`, an id of the catalogue, or `collective_table` say what
    collectives take on this system.
    """

    workload: PrefillWorkload = field(metadata=instance(PrefillWorkload))
    link: Link = field(metadata=LINK)
    to_link: Link | None = field(default=None, metadata=OPTIONAL_LINK)
    baseline_ttft_seconds: float | None = field(default=None, metadata=optional(POSITIVE_SECONDS))
    inner_link: Link | None = field(default=None, metadata=OPTIONAL_LINK)
    rank_links: tuple[Link, ...] = field(default=(), metadata=sequence(0, LARGEST_RANK_LINK_COUNT, LINK))
    calibration: str = field(default="", metadata=OPTIONAL_CATALOG_NAME)
    collective_table: CollectiveTable | None = field(default=None, metadata=OPTIONAL_TABLE)


@frozen(kw_only=True)
class PassTransfers:
    """What one pass of `tokens` tokens puts on the network; bytes are of one rank."""

    tokens: int
    message_bytes_per_all_reduce: int
    sent_bytes_per_all_reduce: int
    ring_step_count: int
    sent_bytes_per_ring_step: int
    send_seconds_per_all_reduce: float


@frozen(kw_only=True)
class PrefillEstimate:
    """Bytes on the wire and time bounds of prompts.

    Sent bytes count the per-token collectives of one rank; where several ranks share the link of a node, what the node
    sends over it.
    """

    model: str
    tensor_parallel_size: int
    prompt_tokens: int
    request_count: int
    all_reduce_count: int
    sent_bytes_per_prompt_token: int
    sent_bytes_per_rank: int
    counter_bytes_per_rank: int
    logits_gather_bytes_per_rank: int
    link: ResolvedLink
    to_link: ResolvedLink | None = None
    network_seconds: Estimate
    ttft_seconds: Estimate
    extra_ttft_seconds: Estimate | None = None
    extra_ttft_fraction: Estimate | None = None
    network_share_fraction: float | None = None
    nominal_extra_ttft_seconds: Estimate | None = None
    largest_pass: PassTransfers | None = None
    baseline_ttft_seconds: float | None = None
    layout: ParallelLayout
    inner_link: ResolvedLink | None = None
    traffic: tuple[CollectiveTraffic, ...] = ()
    assumptions: tuple[str, ...] = ()
    estimator_version: str
