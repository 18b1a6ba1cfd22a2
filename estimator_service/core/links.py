"""What a link carries: wire efficiency, PCIe paths, counters, and the rate that follows."""

from __future__ import annotations

from linkbound.domain.link import BITS_PER_BYTE, Link, RateSource, ResolvedLink

# Headers of a RoCE v2 packet in bytes (IEEE 802.3, RFC 791, RFC 768, InfiniBand architecture specification).
ETHERNET_HEADER_BYTES = 14
IPV4_HEADER_BYTES = 20
UDP_HEADER_BYTES = 8
BASE_TRANSPORT_HEADER_BYTES = 12
INVARIANT_CRC_BYTES = 4
FRAME_CHECK_SEQUENCE_BYTES = 4
PACKET_HEADER_BYTES = (
    ETHERNET_HEADER_BYTES
    + IPV4_HEADER_BYTES
    + UDP_HEADER_BYTES
    + BASE_TRANSPORT_HEADER_BYTES
    + INVARIANT_CRC_BYTES
    + FRAME_CHECK_SEQUENCE_BYTES
)
"""62: what port counters are taken to include. Which of them a NIC counts is not documented; this sum agrees with the
first study's counters (its section 8.3)."""
PREAMBLE_AND_GAP_BYTES = 20
"""Preamble 8 and inter-packet gap 12 (IEEE 802.3): on the wire, in no counter."""

DEFAULT_ROCE_MTU_BYTES = 1024
"""The RoCE path MTU that fits into an Ethernet MTU of 1500."""

PCIE_GEN5_TRANSFERS_PER_SECOND = 32_000_000_000
"""Bits of one lane, one direction (PCI Express 5.0)."""
PCIE_LANE_COUNT = 4
PCIE_PAYLOAD_BITS_PER_BLOCK = 128
PCIE_BITS_PER_BLOCK = 130
PCIE_EFFICIENCY_EMPIRICAL = 0.88
"""Payload over raw rate after packet headers and flow control. Empirical: it is set so that the raw 126 Gb/s of the
first study's section 7.3 become its 111 Gb/s. Packets of 256 bytes with 24 bytes around them alone would give 0.914."""


def wire_efficiency(roce_mtu_bytes: int) -> float:
    """Payload bytes per byte on the wire: e = m / (m + H + G) (`docs/formulas.md`, Links)."""
    return roce_mtu_bytes / (roce_mtu_bytes + PACKET_HEADER_BYTES + PREAMBLE_AND_GAP_BYTES)


def counter_bytes(sent_bytes: float, roce_mtu_bytes: int) -> float:
    """Bytes that the counters of a port show for `sent_bytes`: C = S (m + H) / m (`docs/formulas.md`, Links)."""
    return sent_bytes * (roce_mtu_bytes + PACKET_HEADER_BYTES) / roce_mtu_bytes


def pcie_raw_bits_per_second(function_count: int) -> float:
    """Rate of Gen5 x4 functions after line coding: F x 4 x 32 GT/s x 128/130 (`docs/formulas.md`, Links)."""
    return (
        function_count
        * PCIE_LANE_COUNT
        * PCIE_GEN5_TRANSFERS_PER_SECOND
        * PCIE_PAYLOAD_BITS_PER_BLOCK
        / PCIE_BITS_PER_BLOCK
    )


def pcie_bits_per_second(function_count: int) -> float:
    """Payload rate of Gen5 x4 functions: raw rate times an empirical efficiency (`docs/formulas.md`, Links)."""
    return pcie_raw_bits_per_second(function_count) * PCIE_EFFICIENCY_EMPIRICAL


def resolve(link: Link) -> ResolvedLink:
    """The effective payload rate of `link` and what decided it (`docs/formulas.md`, Links).

    A measured rate wins. Else the smaller of the line rate (times the wire efficiency where an MTU is given) and the
    PCIe rate (where a function count is given); at a tie the line rate is named. A rate alone is effective as it is.
    """
    mtu_bytes = link.roce_mtu_bytes or DEFAULT_ROCE_MTU_BYTES
    if link.measured_bits_per_second is not None:
        return ResolvedLink(
            link=link,
            effective_bits_per_second=link.measured_bits_per_second,
            rate_source=RateSource.MEASURED,
            roce_mtu_bytes=mtu_bytes,
        )
    if link.line_rate_bits_per_second is None:
        raise ValueError("a link has a line rate or a measured one")
    source, bits_per_second = RateSource.GIVEN, float(link.line_rate_bits_per_second)
    if link.roce_mtu_bytes is not None:
        source, bits_per_second = RateSource.WIRE_EFFICIENCY, bits_per_second * wire_efficiency(link.roce_mtu_bytes)
    if link.pcie_function_count is not None:
        pcie = pcie_bits_per_second(link.pcie_function_count)
        if pcie < bits_per_second:
            source, bits_per_second = RateSource.PCIE, pcie
    return ResolvedLink(
        link=link,
        effective_bits_per_second=round(bits_per_second),
        rate_source=source,
        roce_mtu_bytes=mtu_bytes,
    )


def send_seconds(sent_bytes: float, bits_per_second: float) -> float:
    """Time for which a link is busy with `sent_bytes`: t = 8 S / B (`docs/formulas.md`, Time on a link)."""
    return sent_bytes * BITS_PER_BYTE / bits_per_second


def extra_send_seconds(sent_bytes: float, old_bits_per_second: float, new_bits_per_second: float) -> float:
    """Time on the new link less time on the old one: d = 8 S (1/B_new - 1/B_old) (`docs/formulas.md`, Time on a link).

    Negative where the new link is faster.
    """
    return sent_bytes * BITS_PER_BYTE * (1 / new_bits_per_second - 1 / old_bits_per_second)
