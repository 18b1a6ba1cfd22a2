"""What a link carries: wire efficiency, PCIe paths, counters, and the rate that follows."""

from __future__ import annotations

from estimator_service.core.elementwise import Real
from estimator_service.core.packets import (
    DEFAULT_ETHERNET_MTU_BYTES,
    DEFAULT_INFINIBAND_MTU_BYTES,
    DEFAULT_ROCE_MTU_BYTES,
    headers_of,
    wire_efficiency,
)
from linkbound.domain.link import (
    BITS_PER_BYTE,
    PCIE_FUNCTION_RAW_BITS_PER_SECOND,
    Link,
    LinkTransport,
    RateSource,
    ResolvedLink,
)

PCIE_EFFICIENCY_EMPIRICAL = 0.88
"""Payload over raw rate after packet headers and flow control. Empirical: it is set so that the raw 126 Gb/s of the
first study's section 7.3 become its 111 Gb/s. Packets of 256 bytes with 24 bytes around them alone would give 0.914."""

_DEFAULT_PATH_MTU_BYTES = {
    LinkTransport.TCP: 0,
    LinkTransport.FABRIC: 0,
    LinkTransport.INFINIBAND: DEFAULT_INFINIBAND_MTU_BYTES,
}
"""0: packets are not cut to a path MTU. RoCE is not among them, and what says no transport is RoCE."""


def pcie_raw_bits_per_second(function_count: int) -> float:
    """Rate of Gen5 x4 functions after line coding: F x 4 x 32 GT/s x 128/130 (`docs/formulas.md`, Links)."""
    return function_count * PCIE_FUNCTION_RAW_BITS_PER_SECOND


def pcie_bits_per_second(function_count: int) -> float:
    """Payload rate of Gen5 x4 functions: raw rate times an empirical efficiency (`docs/formulas.md`, Links)."""
    return pcie_raw_bits_per_second(function_count) * PCIE_EFFICIENCY_EMPIRICAL


def resolve(link: Link) -> ResolvedLink:
    """The effective payload rate of `link` and what decided it (`docs/formulas.md`, Links).

    A measured rate wins. Else the smaller of the line rate (times the wire efficiency where an MTU is given) and the
    PCIe rate (where a function count is given); at a tie the line rate is named. A rate alone is effective as it is.
    """
    source, bits_per_second = _effective_rate(link)
    return ResolvedLink(
        link=link,
        effective_bits_per_second=round(bits_per_second),
        rate_source=source,
        roce_mtu_bytes=_roce_mtu_bytes(link),
        ethernet_mtu_bytes=(link.ethernet_mtu_bytes or DEFAULT_ETHERNET_MTU_BYTES)
        if link.transport is LinkTransport.TCP
        else 0,
    )


def _effective_rate(link: Link) -> tuple[RateSource, float]:
    if link.measured_bits_per_second is not None:
        return RateSource.MEASURED, link.measured_bits_per_second
    if link.line_rate_bits_per_second is None:
        raise ValueError("a link has a line rate or a measured one")
    source, bits_per_second = RateSource.GIVEN, float(link.line_rate_bits_per_second)
    mtu_bytes = link.ethernet_mtu_bytes or link.roce_mtu_bytes
    if mtu_bytes is not None:
        efficiency = wire_efficiency(mtu_bytes, headers_of(link.transport))
        source, bits_per_second = RateSource.WIRE_EFFICIENCY, bits_per_second * efficiency
    if link.pcie_function_count is not None:
        pcie = pcie_bits_per_second(link.pcie_function_count)
        if pcie < bits_per_second:
            source, bits_per_second = RateSource.PCIE, pcie
    return source, bits_per_second


def _roce_mtu_bytes(link: Link) -> int:
    default_bytes = _DEFAULT_PATH_MTU_BYTES.get(link.transport, DEFAULT_ROCE_MTU_BYTES)
    return link.roce_mtu_bytes or default_bytes if default_bytes else 0


def send_seconds(sent_bytes: Real, bits_per_second: Real) -> Real:
    """Time for which a link is busy with `sent_bytes`: t = 8 S / B (`docs/formulas.md`, Time on a link)."""
    return sent_bytes * BITS_PER_BYTE / bits_per_second


def extra_send_seconds(sent_bytes: Real, old_bits_per_second: Real, new_bits_per_second: Real) -> Real:
    """Time on the new link less time on the old one: d = 8 S (1/B_new - 1/B_old) (`docs/formulas.md`, Time on a link).

    Negative where the new link is faster.
    """
    return sent_bytes * BITS_PER_BYTE * (1 / new_bits_per_second - 1 / old_bits_per_second)
