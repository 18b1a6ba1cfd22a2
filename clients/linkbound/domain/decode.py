"""The decode question and its answer."""

from __future__ import annotations

from attrs import field, frozen

from linkbound.domain.calibration import CollectiveTable
from linkbound.domain.estimate import Estimate
from linkbound.domain.fabric import LINK, OPTIONAL_LINK, OPTIONAL_TABLE, OfInstance
from linkbound.domain.layout import LARGEST_RANK_LINK_COUNT, CollectiveTraffic, ParallelLayout
from linkbound.domain.link import Link, ResolvedLink
from linkbound.domain.names import OPTIONAL_CATALOG_NAME
from linkbound.domain.rules import Checked, instance, sequence
from linkbound.domain.workload import DecodeWorkload


@frozen(kw_only=True)
class DecodeRequest(Checked, OfInstance):
    """What does generation put on `link`, and what does a pass lose if it changes to `to_link`?

    `inner_link`, `rank_links`, `calibration` and `collective_table` are those of a `PrefillRequest`.
    """

    workload: DecodeWorkload = field(metadata=instance(DecodeWorkload))
    link: Link = field(metadata=LINK)
    to_link: Link | None = field(default=None, metadata=OPTIONAL_LINK)
    inner_link: Link | None = field(default=None, metadata=OPTIONAL_LINK)
    rank_links: tuple[Link, ...] = field(default=(), metadata=sequence(0, LARGEST_RANK_LINK_COUNT, LINK))
    calibration: str = field(default="", metadata=OPTIONAL_CATALOG_NAME)
    collective_table: CollectiveTable | None = field(default=None, metadata=OPTIONAL_TABLE)


@frozen(kw_only=True)
class DecodeEstimate:
    """Bytes, pass time and traffic while tokens are generated; bytes are of one rank.

    Where several ranks share the link of a node, sent bytes and traffic are those of the node over that link, except
    those of one all-reduce. `extra_pass_fraction` is over the floor of a pass, expected over what reads and transfers
    are expected to take in turn. `memory_seconds` None: nothing is known of what is read.
    """

    model: str
    tensor_parallel_size: int
    request_count: int
    rows_per_pass: int
    all_reduce_count: int
    message_bytes_per_all_reduce: int
    sent_bytes_per_all_reduce: int
    logits_gather_bytes_per_rank: int
    sent_bytes_per_pass: int
    send_seconds_per_all_reduce: float
    active_weight_bytes_per_rank: int | None = None
    cache_bytes_read_per_rank: int | None = None
    network_seconds: Estimate
    memory_seconds: Estimate | None = None
    pass_seconds: Estimate
    traffic_bits_per_second: Estimate
    extra_pass_seconds: Estimate | None = None
    extra_pass_fraction: Estimate | None = None
    output_tokens_per_second: Estimate | None = None
    link: ResolvedLink
    to_link: ResolvedLink | None = None
    layout: ParallelLayout
    inner_link: ResolvedLink | None = None
    traffic: tuple[CollectiveTraffic, ...] = ()
    assumptions: tuple[str, ...] = ()
    estimator_version: str
