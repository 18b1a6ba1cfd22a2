"""Packets: what stands around their payload, on the wire and in the counters of a port."""

from __future__ import annotations

from attrs import frozen

from linkbound.domain.link import LinkTransport, ResolvedLink

# Headers in bytes. Ethernet: IEEE 802.3. IPv4: RFC 791. UDP: RFC 768. TCP: RFC 9293, timestamps: RFC 7323 (10 bytes and
# 2 of padding). BTH, LRH, ICRC and VCRC: InfiniBand architecture specification, volume 1, and its RoCE v2 annex.
ETHERNET_HEADER_BYTES = 14
FRAME_CHECK_SEQUENCE_BYTES = 4
IPV4_HEADER_BYTES = 20
UDP_HEADER_BYTES = 8
TCP_HEADER_BYTES = 20
TCP_TIMESTAMPS_BYTES = 12
BASE_TRANSPORT_HEADER_BYTES = 12
LOCAL_ROUTE_HEADER_BYTES = 8
INVARIANT_CRC_BYTES = 4
VARIANT_CRC_BYTES = 2
PREAMBLE_AND_GAP_BYTES = 20
"""Preamble 8 and inter-packet gap 12 (IEEE 802.3): on the wire, in no counter."""

PACKET_HEADER_BYTES = (
    ETHERNET_HEADER_BYTES
    + IPV4_HEADER_BYTES
    + UDP_HEADER_BYTES
    + BASE_TRANSPORT_HEADER_BYTES
    + INVARIANT_CRC_BYTES
    + FRAME_CHECK_SEQUENCE_BYTES
)
"""62: what port counters are taken to include of a RoCE packet. Which of them a NIC counts is not documented; this sum
agrees with the first study's counters (its section 8.3)."""

DEFAULT_ROCE_MTU_BYTES = 1024
"""The RoCE path MTU that fits into an Ethernet MTU of 1500."""
DEFAULT_INFINIBAND_MTU_BYTES = 4096
"""The largest path MTU, which current InfiniBand ports come up with."""
DEFAULT_ETHERNET_MTU_BYTES = 1500
"""The MTU of an Ethernet port until someone changes it (IEEE 802.3)."""


@frozen(kw_only=True)
class PacketHeaders:
    """Bytes around the payload of one packet: `within` the MTU, `counted` by a port beside it, and neither.

    Other counters than those assumed here are another value of this class.
    """

    within_mtu_bytes: int
    counted_bytes: int
    uncounted_bytes: int


ROCE_HEADERS = PacketHeaders(
    within_mtu_bytes=0, counted_bytes=PACKET_HEADER_BYTES, uncounted_bytes=PREAMBLE_AND_GAP_BYTES
)
"""A RoCE path MTU is payload alone."""
TCP_HEADERS = PacketHeaders(
    within_mtu_bytes=IPV4_HEADER_BYTES + TCP_HEADER_BYTES + TCP_TIMESTAMPS_BYTES,
    counted_bytes=ETHERNET_HEADER_BYTES + FRAME_CHECK_SEQUENCE_BYTES,
    uncounted_bytes=PREAMBLE_AND_GAP_BYTES,
)
"""An Ethernet MTU holds the headers of IP and TCP: 52 bytes with timestamps, as Linux sends them."""
INFINIBAND_HEADERS = PacketHeaders(
    within_mtu_bytes=0,
    counted_bytes=LOCAL_ROUTE_HEADER_BYTES + BASE_TRANSPORT_HEADER_BYTES + INVARIANT_CRC_BYTES,
    uncounted_bytes=VARIANT_CRC_BYTES,
)
"""PortXmitData counts what stands between the start of a packet and its variant CRC (InfiniBand architecture
specification, volume 1, performance management)."""
NO_HEADERS = PacketHeaders(within_mtu_bytes=0, counted_bytes=0, uncounted_bytes=0)
"""Of a fabric whose packets nobody counts."""

_HEADERS = {
    LinkTransport.TCP: TCP_HEADERS,
    LinkTransport.INFINIBAND: INFINIBAND_HEADERS,
    LinkTransport.FABRIC: NO_HEADERS,
}


def headers_of(transport: LinkTransport) -> PacketHeaders:
    """What stands around a payload over `transport` (`docs/formulas.md`, Links)."""
    return _HEADERS.get(transport, ROCE_HEADERS)


def payload_bytes(mtu_bytes: int, headers: PacketHeaders) -> int:
    """Payload of a full packet: p = m - W (`docs/formulas.md`, Links)."""
    return mtu_bytes - headers.within_mtu_bytes


def wire_efficiency(mtu_bytes: int, headers: PacketHeaders = ROCE_HEADERS) -> float:
    """Payload bytes per byte on the wire: e = p / (m + H + G) (`docs/formulas.md`, Links)."""
    on_wire_bytes = mtu_bytes + headers.counted_bytes + headers.uncounted_bytes
    return payload_bytes(mtu_bytes, headers) / on_wire_bytes


def counter_bytes(sent_bytes: float, mtu_bytes: int, headers: PacketHeaders = ROCE_HEADERS) -> float:
    """Bytes that the counters of a port show for `sent_bytes`: C = S (m + H) / p (`docs/formulas.md`, Links)."""
    return sent_bytes * (mtu_bytes + headers.counted_bytes) / payload_bytes(mtu_bytes, headers)


def link_counter_bytes(sent_bytes: float, link: ResolvedLink) -> float:
    """Counter bytes at the MTU and with the headers of `link`; S itself over a fabric (`docs/formulas.md`, Links)."""
    transport = link.link.transport
    if transport is LinkTransport.FABRIC:
        return sent_bytes
    return counter_bytes(sent_bytes, link.ethernet_mtu_bytes or link.roce_mtu_bytes, headers_of(transport))
