"""Converters of `linkbound/estimator/v1/sizing.proto`."""

from __future__ import annotations

from linkbound.domain.names import NICS, SWITCHES, resource_id, resource_name
from linkbound.domain.sizing import CableLine, ClusterSizing, SizeClusterRequest, SizeOption
from linkbound.estimator.v1 import sizing_pb2


def size_cluster_request_to_proto(value: SizeClusterRequest) -> sizing_pb2.SizeClusterRequest:
    """A question about switches and cables as a message."""
    return sizing_pb2.SizeClusterRequest(
        node_count=value.node_count,
        rate_bits_per_second=value.rate_bits_per_second,
        switch=resource_name(SWITCHES, value.switch) if value.switch else "",
        links_per_node=value.links_per_node,
        nic=resource_name(NICS, value.nic) if value.nic else "",
        oversubscription_ratio=value.oversubscription_ratio,
    )


def size_cluster_request_from_proto(message: sizing_pb2.SizeClusterRequest) -> SizeClusterRequest:
    """A question about switches and cables from its message. Raises InvalidArgumentError with every violation."""
    return SizeClusterRequest(
        node_count=message.node_count,
        rate_bits_per_second=message.rate_bits_per_second,
        switch=resource_id(SWITCHES, message.switch),
        links_per_node=message.links_per_node if message.HasField("links_per_node") else None,
        nic=resource_id(NICS, message.nic),
        oversubscription_ratio=(message.oversubscription_ratio if message.HasField("oversubscription_ratio") else None),
    )


def cable_line_to_proto(value: CableLine) -> sizing_pb2.CableLine:
    """A line of cables as a message."""
    return sizing_pb2.CableLine(
        description=value.description,
        count=value.count,
        links_per_cable=value.links_per_cable,
        list_price_usd=value.list_price_usd,
        sources=value.sources,
    )


def cable_line_from_proto(message: sizing_pb2.CableLine) -> CableLine:
    """A line of cables from its message."""
    return CableLine(
        description=message.description,
        count=message.count,
        links_per_cable=message.links_per_cable,
        list_price_usd=message.list_price_usd if message.HasField("list_price_usd") else None,
        sources=tuple(message.sources),
    )


def size_option_to_proto(value: SizeOption) -> sizing_pb2.SizeOption:
    """A bill of materials as a message."""
    return sizing_pb2.SizeOption(
        switch=resource_name(SWITCHES, value.switch) if value.switch else "",
        display_name=value.display_name,
        switch_count=value.switch_count,
        leaf_switch_count=value.leaf_switch_count,
        spine_switch_count=value.spine_switch_count,
        cables=map(cable_line_to_proto, value.cables),
        node_ports_used=value.node_ports_used,
        node_ports_free=value.node_ports_free,
        oversubscription_ratio=value.oversubscription_ratio,
        worst_case_bits_per_second=value.worst_case_bits_per_second,
        capacity_share_fraction=value.capacity_share_fraction,
        list_price_usd=value.list_price_usd,
        verify=value.verify,
        reasons=value.reasons,
        sources=value.sources,
    )


def size_option_from_proto(message: sizing_pb2.SizeOption) -> SizeOption:
    """A bill of materials from its message."""
    return SizeOption(
        switch=resource_id(SWITCHES, message.switch),
        display_name=message.display_name,
        switch_count=message.switch_count,
        leaf_switch_count=message.leaf_switch_count,
        spine_switch_count=message.spine_switch_count,
        cables=tuple(map(cable_line_from_proto, message.cables)),
        node_ports_used=message.node_ports_used,
        node_ports_free=message.node_ports_free,
        oversubscription_ratio=message.oversubscription_ratio,
        worst_case_bits_per_second=message.worst_case_bits_per_second,
        capacity_share_fraction=(
            message.capacity_share_fraction if message.HasField("capacity_share_fraction") else None
        ),
        list_price_usd=message.list_price_usd if message.HasField("list_price_usd") else None,
        verify=tuple(message.verify),
        reasons=tuple(message.reasons),
        sources=tuple(message.sources),
    )


def cluster_sizing_to_proto(value: ClusterSizing) -> sizing_pb2.SizeClusterResponse:
    """Options for a cluster as a message."""
    return sizing_pb2.SizeClusterResponse(
        options=map(size_option_to_proto, value.options),
        refused=value.refused,
        assumptions=value.assumptions,
        estimator_version=value.estimator_version,
    )


def cluster_sizing_from_proto(message: sizing_pb2.SizeClusterResponse) -> ClusterSizing:
    """Options for a cluster from their message."""
    return ClusterSizing(
        options=tuple(map(size_option_from_proto, message.options)),
        refused=tuple(message.refused),
        assumptions=tuple(message.assumptions),
        estimator_version=message.estimator_version,
    )
