"""Names of collectives and their algorithms as a person types them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from linkbound.domain.calibration import CollectiveTiming
from linkbound.domain.collective import CollectiveAlgorithm, CollectiveKind

_NO_NAME = {"UNSPECIFIED", "UNKNOWN"}


def kind_name(member: Enum) -> str:
    """`ALL_REDUCE` as `all-reduce`."""
    return member.name.lower().replace("_", "-")


KINDS: Mapping[str, CollectiveKind] = {kind_name(kind): kind for kind in CollectiveKind if kind.name not in _NO_NAME}
ALGORITHMS: Mapping[str, CollectiveAlgorithm] = {
    kind_name(algorithm): algorithm for algorithm in CollectiveAlgorithm if algorithm.name not in _NO_NAME
}
TIMINGS: Mapping[str, CollectiveTiming] = {
    kind_name(timing): timing for timing in CollectiveTiming if timing.name not in _NO_NAME
}
