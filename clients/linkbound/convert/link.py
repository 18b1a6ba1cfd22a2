"""Converters of `linkbound/types/v1/link.proto`."""

from __future__ import annotations

from linkbound.convert.values import EnumConverter
from linkbound.domain.link import Link, LinkTransport, RateSource, ResolvedLink
from linkbound.types.v1 import link_pb2

_RATE_SOURCE = EnumConverter(RateSource, link_pb2.RateSource)

_TRANSPORT = EnumConverter(LinkTransport, link_pb2.LinkTransport)

link_transport_to_proto = _TRANSPORT.to_proto
link_transport_from_proto = _TRANSPORT.from_proto
rate_source_to_proto = _RATE_SOURCE.to_proto
rate_source_from_proto = _RATE_SOURCE.from_proto


def link_to_proto(value: Link) -> link_pb2.Link:
    """A link as a message."""
    message = link_pb2.Link()
    _write_link(value, message)
    return message


def _write_link(value: Link, message: link_pb2.Link) -> None:
    if value.line_rate_bits_per_second is not None:
        message.line_rate_bits_per_second = value.line_rate_bits_per_second
    if value.roce_mtu_bytes is not None:
        message.roce_mtu_bytes = value.roce_mtu_bytes
    if value.pcie_function_count is not None:
        message.pcie_function_count = value.pcie_function_count
    if value.measured_bits_per_second is not None:
        message.measured_bits_per_second = value.measured_bits_per_second
    message.transport = link_transport_to_proto(value.transport)
    if value.ethernet_mtu_bytes is not None:
        message.ethernet_mtu_bytes = value.ethernet_mtu_bytes


def link_from_proto(message: link_pb2.Link) -> Link:
    """A link from its message."""
    return Link(
        line_rate_bits_per_second=(
            message.line_rate_bits_per_second if message.HasField("line_rate_bits_per_second") else None
        ),
        roce_mtu_bytes=message.roce_mtu_bytes if message.HasField("roce_mtu_bytes") else None,
        pcie_function_count=message.pcie_function_count if message.HasField("pcie_function_count") else None,
        measured_bits_per_second=(
            message.measured_bits_per_second if message.HasField("measured_bits_per_second") else None
        ),
        transport=link_transport_from_proto(message.transport),
        ethernet_mtu_bytes=message.ethernet_mtu_bytes if message.HasField("ethernet_mtu_bytes") else None,
    )


def resolved_link_to_proto(value: ResolvedLink) -> link_pb2.ResolvedLink:
    """A resolved link as a message."""
    message = link_pb2.ResolvedLink()
    write_resolved_link(value, message)
    return message


def write_resolved_link(value: ResolvedLink, message: link_pb2.ResolvedLink) -> None:
    """A resolved link into `message`, which may be a field of an answer: a message that is put into one is copied."""
    _write_link(value.link, message.link)
    message.effective_bits_per_second = value.effective_bits_per_second
    message.rate_source = rate_source_to_proto(value.rate_source)
    message.roce_mtu_bytes = value.roce_mtu_bytes
    message.ethernet_mtu_bytes = value.ethernet_mtu_bytes


def resolved_link_from_proto(message: link_pb2.ResolvedLink) -> ResolvedLink:
    """A resolved link from its message."""
    return ResolvedLink(
        link=link_from_proto(message.link),
        effective_bits_per_second=message.effective_bits_per_second,
        rate_source=rate_source_from_proto(message.rate_source),
        roce_mtu_bytes=message.roce_mtu_bytes,
        ethernet_mtu_bytes=message.ethernet_mtu_bytes,
    )
