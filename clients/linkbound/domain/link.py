"""The network path of one rank, as asked for and as it resolves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import field, frozen

from linkbound.domain.choice import Choice
from linkbound.domain.errors import Violation
from linkbound.domain.rules import CrossChecked, member, one_of, optional, quantity, shown, whole
from linkbound.domain.words import counted

BITS_PER_BYTE = 8

LARGEST_RATE_BITS_PER_SECOND = 10**15
"""A petabit per second: above any port; it keeps products within 64 bits."""

ROCE_MTUS_BYTES = (256, 512, 1024, 2048, 4096)
"""The path MTUs that InfiniBand and RoCE define."""

PCIE_GEN5_TRANSFERS_PER_SECOND = 32_000_000_000
"""Bits of one lane, one direction (PCI Express 5.0)."""
PCIE_LANE_COUNT = 4
PCIE_PAYLOAD_BITS_PER_BLOCK = 128
PCIE_BITS_PER_BLOCK = 130
PCIE_FUNCTION_RAW_BITS_PER_SECOND = (
    PCIE_LANE_COUNT * PCIE_GEN5_TRANSFERS_PER_SECOND * PCIE_PAYLOAD_BITS_PER_BLOCK / PCIE_BITS_PER_BLOCK
)
"""What one Gen5 x4 function carries after line coding, packet headers included: no payload is above it."""

SMALLEST_ETHERNET_MTU_BYTES = 576
LARGEST_ETHERNET_MTU_BYTES = 16_384

_PREFIX_DIGITS = {"T": 12, "G": 9, "M": 6, "k": 3, "": 0}


def rate_in_words(bits_per_second: int) -> str:
    """A rate as people write it, with every digit that it has: `200 Gb/s`, `9.44 Gb/s`."""
    size = abs(bits_per_second)
    if size >= 10**18:
        return f"{shown(bits_per_second)} b/s"
    prefix, digits = next(((prefix, n) for prefix, n in _PREFIX_DIGITS.items() if size >= 10**n), ("", 0))
    integer, rest = divmod(size, 10**digits)
    number = f"{integer}.{rest:0{digits}d}".rstrip("0").rstrip(".") if rest else f"{integer}"
    return f"{'-' if bits_per_second < 0 else ''}{number} {prefix}b/s"


def rate(minimum: int, maximum: int) -> Mapping[str, object]:
    """A rate in bits per second from `minimum` to `maximum`, both included."""
    return quantity(minimum, maximum, "rate", rate_in_words)


_RATE = rate(1, LARGEST_RATE_BITS_PER_SECOND)


ABOVE_LINE_ADVICE = (
    "no payload is; give the line rate of the whole port that was measured (200g where one PCIe function of it carried"
    " 109g), or the measured rate alone"
)
"""What to do about a measured rate above the line rate. It is refused: every lower bound would be below the wire."""


ABOVE_PCIE_ADVICE = (
    "no payload is; give every PCIe function that carried it (2 where a port of 200g was measured whole), or leave the"
    " functions out"
)
"""What to do about a measured rate above what the PCIe functions of its link carry."""


class LinkTransport(Choice):
    """How bytes travel over a link. UNSPECIFIED: RoCE."""

    UNSPECIFIED = "LINK_TRANSPORT_UNSPECIFIED"
    ROCE = "LINK_TRANSPORT_ROCE"
    TCP = "LINK_TRANSPORT_TCP"
    INFINIBAND = "LINK_TRANSPORT_INFINIBAND"
    FABRIC = "LINK_TRANSPORT_FABRIC"
    UNKNOWN = "LINK_TRANSPORT_UNKNOWN"


TRANSPORT_WORDS: Mapping[LinkTransport, str] = {
    LinkTransport.UNSPECIFIED: "RoCE",
    LinkTransport.ROCE: "RoCE",
    LinkTransport.TCP: "TCP sockets",
    LinkTransport.INFINIBAND: "InfiniBand",
    LinkTransport.FABRIC: "a fabric without packet counters",
}
"""A transport, for people; one of a later version has no words."""

RDMA_TRANSPORTS = (LinkTransport.UNSPECIFIED, LinkTransport.ROCE, LinkTransport.INFINIBAND)
"""Transports whose packets are cut to a path MTU of `ROCE_MTUS_BYTES`."""


class RateSource(Choice):
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

    `roce_mtu_bytes`, the path MTU of RoCE or InfiniBand, or `ethernet_mtu_bytes`, that of TCP, takes the packet headers
    from the line rate; `pcie_function_count` caps it by the PCIe paths in use; `measured_bits_per_second`, a payload
    rate, always wins and may stand alone, and is never above the line rate or the raw rate of these PCIe paths.
    `transport` decides which headers a packet has.
    """

    line_rate_bits_per_second: int | None = field(default=None, metadata=optional(_RATE))
    roce_mtu_bytes: int | None = field(default=None, metadata=optional(one_of(*ROCE_MTUS_BYTES)))
    pcie_function_count: int | None = field(default=None, metadata=optional(whole(1, 16)))
    measured_bits_per_second: int | None = field(default=None, metadata=optional(_RATE))
    transport: LinkTransport = field(
        default=LinkTransport.UNSPECIFIED, metadata=member(LinkTransport, LinkTransport.UNKNOWN)
    )
    ethernet_mtu_bytes: int | None = field(
        default=None, metadata=optional(whole(SMALLEST_ETHERNET_MTU_BYTES, LARGEST_ETHERNET_MTU_BYTES))
    )

    def cross_violations(self) -> Iterable[Violation]:
        """Some rate is known, nothing is measured above line or PCIe, and an MTU is one of the transport."""
        line, measured = self.line_rate_bits_per_second, self.measured_bits_per_second
        if line is None and measured is None:
            yield Violation("line_rate_bits_per_second", "is missing, and so is a measured rate")
        if line is not None and measured is not None and measured > line:
            yield Violation(
                "measured_bits_per_second",
                f"{rate_in_words(measured)} is above the line rate, {rate_in_words(line)}: {ABOVE_LINE_ADVICE}",
            )
        yield from self._above_pcie()
        if self.roce_mtu_bytes is not None and self.transport not in RDMA_TRANSPORTS:
            yield Violation("roce_mtu_bytes", f"{self.roce_mtu_bytes} is of RoCE or InfiniBand; {self._carried}")
        if self.ethernet_mtu_bytes is not None and self.transport is not LinkTransport.TCP:
            yield Violation("ethernet_mtu_bytes", f"{self.ethernet_mtu_bytes} is of TCP sockets; {self._carried}")

    def _above_pcie(self) -> Iterable[Violation]:
        count, measured = self.pcie_function_count, self.measured_bits_per_second
        if count is None or measured is None:
            return
        raw_bits_per_second = count * PCIE_FUNCTION_RAW_BITS_PER_SECOND
        if measured > raw_bits_per_second:
            functions = counted(count, "PCIe function")
            yield Violation(
                "measured_bits_per_second",
                f"{rate_in_words(measured)} is above the raw rate of {functions}, {raw_bits_per_second / 1e9:.2f} Gb/s:"
                f" {ABOVE_PCIE_ADVICE}",
            )

    @property
    def _carried(self) -> str:
        return f"the link is {TRANSPORT_WORDS.get(self.transport, self.transport.name)}"


@frozen(kw_only=True)
class ResolvedLink:
    """What a link really carries, and which of its fields decided. An MTU of 0 is none of this link's transport."""

    link: Link
    effective_bits_per_second: int
    rate_source: RateSource
    roce_mtu_bytes: int
    ethernet_mtu_bytes: int = 0

    @property
    def effective_bytes_per_second(self) -> float:
        """Effective payload rate of one direction of one rank."""
        return self.effective_bits_per_second / BITS_PER_BYTE
