"""Constants of NCCL's own time model. Facts: NVIDIA/nccl, `src/graph/tuning.cc` (2.28 and head of 2026).

Each stands for what NVIDIA measured on its systems. Where NCCL tells generations of GPUs apart, these are Blackwell's.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from linkbound.domain.collective import CollectiveAlgorithm, CollectiveProtocol

RING, TREE = CollectiveAlgorithm.RING, CollectiveAlgorithm.DOUBLE_BINARY_TREE
LL, LL128, SIMPLE = CollectiveProtocol.LL, CollectiveProtocol.LL128, CollectiveProtocol.SIMPLE

_Latencies = Mapping[tuple[CollectiveAlgorithm, CollectiveProtocol], float]

BASE_LATENCY_SECONDS: _Latencies = MappingProxyType(
    {
        (TREE, LL): 6.8e-6,
        (TREE, LL128): 14.0e-6,
        (TREE, SIMPLE): 8.4e-6,
        (RING, LL): 6.6e-6,
        (RING, LL128): 14.0e-6,
        (RING, SIMPLE): 8.4e-6,
    }
)
"""Launch and what else comes once."""

NVLINK_STEP_SECONDS: _Latencies = MappingProxyType(
    {
        (TREE, LL): 0.6e-6,
        (TREE, LL128): 1.25e-6,
        (TREE, SIMPLE): 4.0e-6,
        (RING, LL): 0.6e-6,
        (RING, LL128): 1.9e-6,
        (RING, SIMPLE): 3.4e-6,
    }
)
"""One step within a node over NVLink."""

NETWORK_STEP_SECONDS: _Latencies = MappingProxyType(
    {
        (TREE, LL): 5.0e-6,
        (TREE, LL128): 8.5e-6,
        (TREE, SIMPLE): 14.0e-6,
        (RING, LL): 2.7e-6,
        (RING, LL128): 4.0e-6,
        (RING, SIMPLE): 14.0e-6,
    }
)
"""One step between nodes. With one rank in a node a ring takes the row of trees: nothing hides its latency."""

NETWORK_POST_SECONDS = 1e-6
"""Posting one message to the network."""
SIMPLE_RING_PLATEAU_RATIO = 1.4
"""Fixed time of a Simple ring all-reduce between nodes over that of the steps (GPUs from compute capability 8.0)."""

LL_DATA_FRACTION = 8 / 16
"""Data bytes of each line on the wire."""
LL128_DATA_FRACTION = 120 / 128

LL_BYTES_PER_SECOND: tuple[float, float, float] = (282e9, 90e9, 70e9)
"""Most that LL carries on one, two, and more nodes, whatever the link."""
LL128_RING_BYTES_PER_SECOND: tuple[float, float, float] = (40e9, 40e9, 40e9)
"""Most that one channel of a ring carries with LL128."""
LL128_TREE_BYTES_PER_SECOND: tuple[float, float, float] = (55.6e9, 31.67e9, 20e9)
SIMPLE_TREE_BYTES_PER_SECOND: tuple[float, float, float] = (70e9, 42.8e9, 24e9)

NODE_CHANNEL_COUNT = 16
"""Channels within a node. An assumption: NCCL searches for them; 16 and more are usual over NVLink."""
NETWORK_CHANNEL_COUNT = 4
"""Channels between nodes. An assumption: what the public runs on four DGX Spark report."""

TREE_RATE_FRACTIONS: Mapping[CollectiveProtocol, tuple[float, ...]] = MappingProxyType(
    {
        LL: (1, 1, 1, 1, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5, 0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1, 1, 1, 1),
        LL128: (
            *(1, 1, 1, 1, 1, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6),
            *(0.6, 0.6, 0.6, 0.6, 0.8, 0.9, 0.9, 0.9, 0.9, 1, 1, 1),
        ),
        SIMPLE: (
            *(0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5),
            *(0.5, 0.5, 0.5, 0.6, 0.7, 0.8, 0.7, 0.7, 0.8, 0.9, 0.9, 0.9),
        ),
    }
)
"""Share of its rate that a tree reaches at payloads of 64 bytes, 128 bytes and so on."""
SMALLEST_TREE_BYTES = 64
