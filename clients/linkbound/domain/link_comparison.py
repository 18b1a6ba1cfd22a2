"""One workload over two links: the question and its answer."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import field, frozen

from linkbound.domain.errors import Violation
from linkbound.domain.estimate import Estimate
from linkbound.domain.layout import inner_link_violations
from linkbound.domain.link import Link, ResolvedLink
from linkbound.domain.rules import Checked, CrossChecked, instance, optional, whole
from linkbound.domain.workload import POSITIVE_SECONDS, DecodeWorkload, PrefillWorkload

LARGEST_BYTES_PER_PROMPT_TOKEN = 10**12


@frozen(kw_only=True)
class EmulatedLink:
    """A TTFT measured over a link that stands in for the new one; None counter bytes: the formula's sent bytes."""

    link: Link = field(metadata=instance(Link))
    ttft_seconds: float = field(metadata=POSITIVE_SECONDS)
    counter_bytes_per_prompt_token: int | None = field(
        default=None, metadata=optional(whole(1, LARGEST_BYTES_PER_PROMPT_TOKEN))
    )


@frozen(kw_only=True)
class LinkComparisonRequest(Checked, CrossChecked):
    """What does a workload, `prefill` or `decode`, lose or gain if `old_link` becomes `new_link`?

    Both are links between nodes; `inner_link` is that of each rank within one. `baseline_seconds` is measured over
    `old_link`: the TTFT of a prefill, the pass time of a decode.
    """

    prefill: PrefillWorkload | None = field(default=None, metadata=optional(instance(PrefillWorkload)))
    decode: DecodeWorkload | None = field(default=None, metadata=optional(instance(DecodeWorkload)))
    old_link: Link = field(metadata=instance(Link))
    new_link: Link = field(metadata=instance(Link))
    baseline_seconds: float | None = field(default=None, metadata=optional(POSITIVE_SECONDS))
    emulation: EmulatedLink | None = field(default=None, metadata=optional(instance(EmulatedLink)))
    inner_link: Link | None = field(default=None, metadata=optional(instance(Link)))

    @property
    def workload(self) -> PrefillWorkload | DecodeWorkload:
        """The workload that is given."""
        workload = self.prefill or self.decode
        if workload is None:
            raise ValueError("a comparison has a workload")
        return workload

    def cross_violations(self) -> Iterable[Violation]:
        """One workload; an emulated measurement is a TTFT and is counted from a baseline TTFT."""
        if self.prefill is None and self.decode is None:
            yield Violation("prefill", "is missing, and so is a decode workload")
        if self.prefill is not None and self.decode is not None:
            yield Violation("decode", "is one workload too many beside prefill")
        for workload in (self.prefill, self.decode):
            if workload is not None:
                yield from inner_link_violations(workload.ranks_per_node, self.inner_link)
        if self.emulation is None:
            return
        if self.prefill is None:
            yield Violation("emulation", "a decode has none; it goes with a prefill workload")
        if self.baseline_seconds is None:
            yield Violation("baseline_seconds", "is missing; an emulation is counted from it")


@frozen(kw_only=True)
class EmulationResult:
    """A measured increase, carried over to the real link."""

    measured_extra_seconds: float
    measured_extra_fraction: float
    real_link_extra_seconds: Estimate
    real_link_extra_fraction: Estimate


@frozen(kw_only=True)
class LinkComparison:
    """Time over both links: TTFT of a prefill, of the last of several requests, or pass time of a decode."""

    sent_bytes_per_rank: int
    old_link: ResolvedLink
    new_link: ResolvedLink
    old_network_seconds: Estimate
    new_network_seconds: Estimate
    extra_seconds: Estimate
    extra_fraction: Estimate | None = None
    speedup_ratio: Estimate
    emulation: EmulationResult | None = None
    assumptions: tuple[str, ...] = ()
    estimator_version: str
