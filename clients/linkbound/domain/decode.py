"""The decode question and its answer."""

from __future__ import annotations

from attrs import field, frozen

from linkbound.domain.estimate import Estimate
from linkbound.domain.link import Link, ResolvedLink
from linkbound.domain.rules import Checked, instance, optional
from linkbound.domain.workload import DecodeWorkload


@frozen(kw_only=True)
class DecodeRequest(Checked):
    """What does generation put on `link`, and what does a pass lose if it changes to `to_link`?"""

    workload: DecodeWorkload = field(metadata=instance(DecodeWorkload))
    link: Link = field(metadata=instance(Link))
    to_link: Link | None = field(default=None, metadata=optional(instance(Link)))


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
    pass_seconds: Estimate
    traffic_bits_per_second: Estimate
    extra_pass_seconds: Estimate | None = None
    output_tokens_per_second: Estimate | None = None
    link: ResolvedLink
    to_link: ResolvedLink | None = None
    assumptions: tuple[str, ...] = ()
    estimator_version: str
