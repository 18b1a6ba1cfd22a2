"""The prefill question and its answer."""

from __future__ import annotations

from attrs import field, frozen

from linkbound.domain.estimate import Estimate
from linkbound.domain.link import Link, ResolvedLink
from linkbound.domain.rules import Checked, instance, optional
from linkbound.domain.workload import POSITIVE_SECONDS, PrefillWorkload


@frozen(kw_only=True)
class PrefillRequest(Checked):
    """What do these prompts cost over `link`, and what if it changes to `to_link`?

    `baseline_ttft_seconds` is measured over `link`, of the last request where several arrive together.
    """

    workload: PrefillWorkload = field(metadata=instance(PrefillWorkload))
    link: Link = field(metadata=instance(Link))
    to_link: Link | None = field(default=None, metadata=optional(instance(Link)))
    baseline_ttft_seconds: float | None = field(default=None, metadata=optional(POSITIVE_SECONDS))


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
    """Bytes on the wire and time bounds of prompts. Sent bytes count the per-token collectives of one rank."""

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
    assumptions: tuple[str, ...] = ()
    estimator_version: str
