"""The decode question and its answer."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import field, frozen

from linkbound.domain.calibration import CollectiveTable, calibration_violations
from linkbound.domain.errors import Violation
from linkbound.domain.estimate import Estimate
from linkbound.domain.layout import (
    LARGEST_RANK_LINK_COUNT,
    CollectiveTraffic,
    ParallelLayout,
    inner_link_violations,
    rank_link_violations,
)
from linkbound.domain.link import Link, ResolvedLink
from linkbound.domain.names import OPTIONAL_CATALOG_NAME
from linkbound.domain.rules import Checked, CrossChecked, instance, optional, sequence
from linkbound.domain.workload import DecodeWorkload


@frozen(kw_only=True)
class DecodeRequest(Checked, CrossChecked):
    """What does generation put on `link`, and what does a pass lose if it changes to `to_link`?

    `inner_link`, `rank_links`, `calibration` and `collective_table` are those of a `PrefillRequest`.
    """

    workload: DecodeWorkload = field(metadata=instance(DecodeWorkload))
    link: Link = field(metadata=instance(Link))
    to_link: Link | None = field(default=None, metadata=optional(instance(Link)))
    inner_link: Link | None = field(default=None, metadata=optional(instance(Link)))
    rank_links: tuple[Link, ...] = field(default=(), metadata=sequence(0, LARGEST_RANK_LINK_COUNT, instance(Link)))
    calibration: str = field(default="", metadata=OPTIONAL_CATALOG_NAME)
    collective_table: CollectiveTable | None = field(default=None, metadata=optional(instance(CollectiveTable)))

    def cross_violations(self) -> Iterable[Violation]:
        """Several ranks in a node need a link between them; no more links than nodes; one calibration at most."""
        yield from inner_link_violations(self.workload.ranks_per_node, self.inner_link)
        yield from rank_link_violations(self.workload.layout, len(self.rank_links))
        yield from calibration_violations(self.calibration, self.collective_table)


@frozen(kw_only=True)
class DecodeEstimate:
    """Bytes, pass time and traffic while tokens are generated; bytes are of one rank."""

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
    pass_seconds: Estimate
    traffic_bits_per_second: Estimate
    extra_pass_seconds: Estimate | None = None
    output_tokens_per_second: Estimate | None = None
    link: ResolvedLink
    to_link: ResolvedLink | None = None
    layout: ParallelLayout
    inner_link: ResolvedLink | None = None
    traffic: tuple[CollectiveTraffic, ...] = ()
    assumptions: tuple[str, ...] = ()
    estimator_version: str
