"""Runs: their content, their life and the requests about them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from enum import Enum

from attrs import field, frozen

from linkbound.domain.errors import Violation
from linkbound.domain.names import RUN_ID
from linkbound.domain.prediction import Prediction
from linkbound.domain.rules import Checked, CrossChecked, instance, optional, sequence, text, whole

LARGEST_SETTING_COUNT = 256


class RunState(Enum):
    """Whether more can be appended; changed by methods only."""

    UNSPECIFIED = "RUN_STATE_UNSPECIFIED"
    OPEN = "RUN_STATE_OPEN"
    SEALED = "RUN_STATE_SEALED"
    UNKNOWN = "RUN_STATE_UNKNOWN"


@frozen(kw_only=True)
class Setting:
    """One setting of a run, in words: `engine`, `link`, `nccl.ib_hca`. Never a secret."""

    key: str = field(metadata=text(128, minimum_length=1))
    value: str = field(metadata=text(4096))


@frozen(kw_only=True)
class CreateRunRequest(Checked, CrossChecked):
    """Creates a run with its frozen prediction. Settings are sorted by key."""

    run_id: str = field(metadata=RUN_ID)
    display_name: str = field(default="", metadata=text(256))
    source: str = field(default="", metadata=text(1024))
    settings: tuple[Setting, ...] = field(default=(), metadata=sequence(0, LARGEST_SETTING_COUNT, instance(Setting)))
    prediction: Prediction | None = field(default=None, metadata=optional(instance(Prediction)))

    def cross_violations(self) -> Iterable[Violation]:
        """Each setting is given once."""
        keys = [setting.key for setting in self.settings]
        for key in sorted({key for key in keys if keys.count(key) > 1}):
            yield Violation("settings", f"{key!r} is given more than once")


@frozen(kw_only=True)
class RunRequest(Checked):
    """Names one run: to read it, to delete it, to compare it."""

    run: str = field(metadata=RUN_ID)


@frozen(kw_only=True)
class SealRunRequest(Checked):
    """Ends a run, if it holds `expected_row_count` rows of all kinds; None: any count."""

    run: str = field(metadata=RUN_ID)
    expected_row_count: int | None = field(default=None, metadata=optional(whole(0, 2**63 - 1)))


@frozen(kw_only=True)
class Run:
    """A run as stored. Lists leave the prediction out.

    `sealed_path` is the folder of its Parquet files on the machine of the service; empty while it is open.
    `sealed_fault` is what is wrong with them, in words: one is missing or has another size. Empty: nothing. It is told
    where the run or its list was asked for.
    """

    run_id: str
    display_name: str
    state: RunState
    create_time: datetime
    seal_time: datetime | None = None
    source: str = ""
    settings: tuple[Setting, ...] = ()
    prediction: Prediction | None = None
    sealed_path: str = ""
    sealed_size_bytes: int = 0
    sealed_fault: str = ""


@frozen(kw_only=True)
class RunRowCounts:
    """Rows of one run by kind."""

    request_record_count: int = 0
    metric_aggregate_count: int = 0
    collective_result_count: int = 0
    training_step_count: int = 0
    sample_count: int = 0
    link_test_count: int = 0
    event_count: int = 0
    chunk_count: int = 0

    @property
    def total_row_count(self) -> int:
        """Rows of all kinds; chunks of tokens belong to their request records."""
        return (
            self.request_record_count
            + self.metric_aggregate_count
            + self.collective_result_count
            + self.training_step_count
            + self.sample_count
            + self.link_test_count
            + self.event_count
        )


@frozen(kw_only=True)
class RunDetails:
    """A run and what is stored for it."""

    run: Run
    row_counts: RunRowCounts
