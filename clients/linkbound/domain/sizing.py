"""Switches and cables for a number of nodes: the question and its answer."""

from __future__ import annotations

from attrs import field, frozen

from linkbound.domain.link import rate
from linkbound.domain.names import OPTIONAL_CATALOG_NAME
from linkbound.domain.rules import Checked, finite, optional, whole

LARGEST_NODE_COUNT = 4096
LARGEST_LINKS_PER_NODE = 16
SMALLEST_NODE_RATE_BITS_PER_SECOND = 10**9
LARGEST_NODE_RATE_BITS_PER_SECOND = 10**12

NODE_COUNT = whole(1, LARGEST_NODE_COUNT)
DEFAULT_NIC = "dgx-spark"
"""The adapter of a node where none is named."""


@frozen(kw_only=True)
class SizeClusterRequest(Checked):
    """Which switches and cables connect `node_count` nodes at `rate_bits_per_second`?

    An empty `switch` is every one of the catalogue, and for two nodes none, an empty `nic` that of a DGX Spark.
    `oversubscription_ratio` is the largest ratio of node ports to uplinks of a leaf that is accepted; None is 1.
    """

    node_count: int = field(metadata=NODE_COUNT)
    rate_bits_per_second: int = field(
        metadata=rate(SMALLEST_NODE_RATE_BITS_PER_SECOND, LARGEST_NODE_RATE_BITS_PER_SECOND)
    )
    switch: str = field(default="", metadata=OPTIONAL_CATALOG_NAME)
    links_per_node: int | None = field(default=None, metadata=optional(whole(1, LARGEST_LINKS_PER_NODE)))
    nic: str = field(default="", metadata=OPTIONAL_CATALOG_NAME)
    oversubscription_ratio: float | None = field(default=None, metadata=optional(finite(1, 16)))


@frozen(kw_only=True)
class CableLine:
    """One line of cables; no sources: a class of cables, no product."""

    description: str
    count: int
    links_per_cable: int
    list_price_usd: float | None = None
    sources: tuple[str, ...] = ()


@frozen(kw_only=True)
class SizeOption:
    """One bill of materials. Rates are of one direction; prices are there where every part has one.

    An empty `switch` is none: two nodes joined by cables alone, or one node, which needs nothing.
    """

    switch: str
    display_name: str
    switch_count: int
    leaf_switch_count: int
    spine_switch_count: int
    cables: tuple[CableLine, ...]
    node_ports_used: int
    node_ports_free: int
    oversubscription_ratio: float
    worst_case_bits_per_second: int
    capacity_share_fraction: float | None = None
    list_price_usd: float | None = None
    verify: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()


@frozen(kw_only=True)
class ClusterSizing:
    """Bills of materials, best first, and the switches that cannot do it, one sentence each."""

    options: tuple[SizeOption, ...]
    refused: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    estimator_version: str
