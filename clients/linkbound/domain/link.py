"""The network path of one rank, as asked for and as it resolves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum

from attrs import field, frozen

from linkbound.domain.errors import Violation
from linkbound.domain.rules import CrossChecked, one_of, optional, whole

BITS_PER_BYTE = 8

LARGEST_RATE_BITS_PER_SECOND = 10**15
"""A petabit per second: above any port; it keeps products within 64 bits."""

ROCE_MTUS_BYTES = (256, 512, 1024, 2048, 4096)
"""The path MTUs that InfiniBand and RoCE define."""

_RATE = whole(1, LARGEST_RATE_BITS_PER_SECOND)


class RateSource(Enum):
    """What set an effective rate."""

    UNSPECIFIED = "RATE_SOURCE_UNSPECIFIED"
    GIVEN = "RATE_SOURCE_GIVEN"
    WIRE_EFFICIENCY = "RATE_SOURCE_WIRE_EFFICIENCY"
    PCIE = "RATE_SOURCE_PCIE"
    MEASURED = "RATE_SOURCE_MEASURED"
    UNKNOWN = "RATE_SOURCE_UNKNOWN"


RATE_SOURCE_WORDS: Mapping[RateSource, str] = {
    RateSource.GIVEN: "given rate",
    RateSource.WIRE_EFFICIENCY: "line rate less packet headers",
    RateSource.PCIE: "PCIe functions in use",
    RateSource.MEASURED: "measured rate",
}
"""What set an effective rate, for people; sources of a later version have no words."""


@frozen(kw_only=True)
class Link(CrossChecked):
    """A link of one rank, one direction. A line rate alone is taken as the effective payload rate.

    `roce_mtu_bytes` takes the packet headers from the line rate, `pcie_function_count` caps it by the PCIe paths in
    use, and `measured_bits_per_second`, a payload rate, always wins; it may stand alone.
    """

    line_rate_bits_per_second: int | None = field(default=None, metadata=optional(_RATE))
    roce_mtu_bytes: int | None = field(default=None, metadata=optional(one_of(*ROCE_MTUS_BYTES)))
    pcie_function_count: int | None = field(default=None, metadata=optional(whole(1, 16)))
    measured_bits_per_second: int | None = field(default=None, metadata=optional(_RATE))

    def cross_violations(self) -> Iterable[Violation]:
        """Some rate is known."""
        if self.line_rate_bits_per_second is None and self.measured_bits_per_second is None:
            yield Violation("line_rate_bits_per_second", "is missing, and so is a measured rate")


@frozen(kw_only=True)
class ResolvedLink:
    """What a link really carries, and which of its fields decided."""

    link: Link
    effective_bits_per_second: int
    rate_source: RateSource
    roce_mtu_bytes: int

    @property
    def effective_bytes_per_second(self) -> float:
        """Effective payload rate of one direction of one rank."""
        return self.effective_bits_per_second / BITS_PER_BYTE
