"""Traffic of counters: rates over windows of time, and bytes of the phases of requests."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import field, frozen

from linkbound.domain.errors import Violation
from linkbound.domain.names import RUN_ID
from linkbound.domain.paging import PageRequest
from linkbound.domain.records import LARGEST_NS, NODE
from linkbound.domain.rules import Checked, CrossChecked, optional, sequence, text, whole

NS_PER_MS = 10**6
NS_PER_SECOND = 10**9
SMALLEST_WINDOW_NS = NS_PER_MS
LARGEST_WINDOW_NS = 86_400 * NS_PER_SECOND
LARGEST_WINDOW_COUNT = 8
LARGEST_POINT_COUNT = 10_000
LARGEST_ANSWER_POINT_COUNT = 100_000
"""Points of all windows of all ports in one answer, which take about 4 MB."""

USUAL_WINDOWS_NS = (NS_PER_MS, 5 * NS_PER_MS, 100 * NS_PER_MS, NS_PER_SECOND)
"""Those of a question that names none."""


@frozen(kw_only=True)
class TrafficRequest(Checked, CrossChecked):
    """Asks for rates of the counters of a run.

    Empty `node` and `metric`: all of them, every counter of bytes. `start_ns` and `end_ns` are CLOCK_MONOTONIC of the
    host; None: from the first reading, to the last one.
    """

    run: str = field(metadata=RUN_ID)
    windows_ns: tuple[int, ...] = field(
        default=(), metadata=sequence(0, LARGEST_WINDOW_COUNT, whole(SMALLEST_WINDOW_NS, LARGEST_WINDOW_NS))
    )
    node: str = field(default="", metadata=NODE)
    metric: str = field(default="", metadata=text(128))
    start_ns: int | None = field(default=None, metadata=optional(whole(0, LARGEST_NS)))
    end_ns: int | None = field(default=None, metadata=optional(whole(1, LARGEST_NS)))
    max_point_count: int = field(default=0, metadata=whole(0, LARGEST_POINT_COUNT))

    @property
    def effective_windows_ns(self) -> tuple[int, ...]:
        """The windows asked for, rising, each once."""
        return tuple(sorted(set(self.windows_ns or USUAL_WINDOWS_NS)))

    def cross_violations(self) -> Iterable[Violation]:
        """The end is behind the start."""
        if self.start_ns is not None and self.end_ns is not None and self.end_ns <= self.start_ns:
            yield Violation("end_ns", f"{self.end_ns} is not above start_ns, {self.start_ns}")


@frozen(kw_only=True)
class TrafficPoint:
    """The rate over one window, or over several that stand together."""

    start_ns: int
    mean_bits_per_second: float
    least_bits_per_second: float
    peak_bits_per_second: float


@frozen(kw_only=True)
class TrafficWindow:
    """Rates over windows of one width; `covered_fraction` is the share of the time that readings tell of."""

    window_ns: int
    window_count: int
    mean_bits_per_second: float
    peak_bits_per_second: float
    peak_start_ns: int
    p99_bits_per_second: float
    covered_fraction: float
    points: tuple[TrafficPoint, ...] = ()


@frozen(kw_only=True)
class PortTraffic:
    """What one counter of one physical port counted, its devices summed.

    `interval_ns` is the median between two readings, `gap_count` how many came later than twice that. A reset is a
    counter that began again: what it counted meanwhile is not known, and not counted. Late readings, from before the
    latest one of their counter, are left out.
    """

    node: str
    boot_id: str
    physical_port: str
    devices: tuple[str, ...]
    metric: str
    start_ns: int
    end_ns: int
    total_bytes: int
    sample_count: int
    wrap_count: int
    reset_count: int
    gap_count: int
    duplicate_count: int
    late_count: int
    interval_ns: int
    windows: tuple[TrafficWindow, ...]


@frozen(kw_only=True)
class ListPhaseTrafficRequest(PageRequest):
    """Asks for one page of the traffic of the requests of a run, of `subject` alone where that is not empty."""

    run: str = field(metadata=RUN_ID)
    subject: str = field(default="", metadata=text(128))


@frozen(kw_only=True)
class PhaseTraffic:
    """Traffic of one counter of one port from the send of a request to its last token; None where nothing tells it.

    `node`, `physical_port` and `metric` are empty where no counter shares the clock of the request. Bytes of requests
    that overlap are not told apart: `prefill_bytes_per_prompt_token` is None then, and
    `round_prefill_bytes_per_prompt_token`, over all prompts of the round, counts.
    """

    subject: str
    round_index: int
    request_index: int
    prompt_tokens: int
    output_tokens: int
    node: str
    physical_port: str
    metric: str
    prefill_bytes: float | None = None
    prefill_bits_per_second: float | None = None
    prefill_bytes_per_prompt_token: float | None = None
    decode_bytes: float | None = None
    decode_bits_per_second: float | None = None
    overlapping_request_count: int = 0
    round_prefill_bytes_per_prompt_token: float | None = None
