"""Measured times of collectives, and what is fitted to them."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from attrs import field, frozen

from linkbound.domain.collective import LARGEST_MESSAGE_BYTES, LARGEST_RANK_COUNT, CollectiveKind
from linkbound.domain.errors import Violation
from linkbound.domain.layout import RANKS_PER_NODE
from linkbound.domain.names import CATALOG_NAME, OPTIONAL_CATALOG_ID
from linkbound.domain.rules import Checked, CrossChecked, finite, instance, member, sequence, text, whole

LARGEST_POINT_COUNT = 10_000
SMALLEST_COLLECTIVE_SECONDS = 1e-9
LARGEST_COLLECTIVE_SECONDS = 1e6


class CollectiveTiming(Enum):
    """How times were taken. UNSPECIFIED: back to back."""

    UNSPECIFIED = "COLLECTIVE_TIMING_UNSPECIFIED"
    BACK_TO_BACK = "COLLECTIVE_TIMING_BACK_TO_BACK"
    IN_FRAMEWORK = "COLLECTIVE_TIMING_IN_FRAMEWORK"
    UNKNOWN = "COLLECTIVE_TIMING_UNKNOWN"


@frozen(kw_only=True)
class CollectivePoint:
    """One measured size; `message_bytes` is the payload, of a gather or scatter the whole."""

    message_bytes: int = field(metadata=whole(1, LARGEST_MESSAGE_BYTES))
    seconds: float = field(metadata=finite(SMALLEST_COLLECTIVE_SECONDS, LARGEST_COLLECTIVE_SECONDS))


@frozen(kw_only=True)
class CollectiveTable(CrossChecked):
    """Measured times of one kind of collective on one system; a size may come several times."""

    kind: CollectiveKind = field(metadata=member(CollectiveKind, CollectiveKind.UNSPECIFIED, CollectiveKind.UNKNOWN))
    rank_count: int = field(metadata=whole(2, LARGEST_RANK_COUNT))
    ranks_per_node: int = field(default=1, metadata=RANKS_PER_NODE)
    points: tuple[CollectivePoint, ...] = field(metadata=sequence(2, LARGEST_POINT_COUNT))
    timing: CollectiveTiming = field(
        default=CollectiveTiming.UNSPECIFIED, metadata=member(CollectiveTiming, CollectiveTiming.UNKNOWN)
    )

    def cross_violations(self) -> Iterable[Violation]:
        """Whole nodes, and at least two sizes: one does not tell a fixed time from a rate."""
        if self.rank_count % self.ranks_per_node:
            yield Violation("ranks_per_node", f"{self.ranks_per_node} does not divide {self.rank_count} ranks")
        if len({point.message_bytes for point in self.points}) < 2:
            yield Violation("points", "are all of one size, where a fit needs two")


@frozen(kw_only=True)
class CalibrationResidual:
    """Fitted over measured time less one, at a size that the fit did not see."""

    message_bytes: int
    error_ratio: float


@frozen(kw_only=True)
class ProtocolChange:
    """A stretch of payloads in which the library seems to change its algorithm or protocol."""

    from_message_bytes: int
    to_message_bytes: int


@frozen(kw_only=True)
class Calibration:
    """A fit of the time of a collective. `calibration_id` is empty for one that is not stored.

    `table` holds each size once, in rising order. `interval_fraction` is the half width of the interval at a measured
    size away from changes of the protocol; between sizes it is wider by what their times leave open.
    """

    calibration_id: str = ""
    table: CollectiveTable
    fixed_seconds: float
    bus_bandwidth_bytes_per_second: float
    residuals: tuple[CalibrationResidual, ...] = ()
    interval_fraction: float
    protocol_changes: tuple[ProtocolChange, ...] = ()
    assumptions: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()


def calibration_violations(calibration: str, table: CollectiveTable | None) -> Iterable[Violation]:
    """A request names a calibration or brings measured times, and not both."""
    if calibration and table is not None:
        yield Violation("collective_table", "is given beside a calibration")


@frozen(kw_only=True)
class FitCalibrationRequest(Checked):
    """Fit the time of collectives to `table`; stored under `calibration` where that is not empty."""

    table: CollectiveTable = field(metadata=instance(CollectiveTable))
    calibration: str = field(default="", metadata=OPTIONAL_CATALOG_ID)
    sources: tuple[str, ...] = field(default=(), metadata=sequence(0, 100, text(1024, minimum_length=1)))


@frozen(kw_only=True)
class CalibrationRequest(Checked):
    """Names one calibration, to read it."""

    calibration: str = field(metadata=CATALOG_NAME)
