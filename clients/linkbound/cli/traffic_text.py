"""Traffic as text: rates over windows port by port, and what requests sent before and after their first token."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from linkbound.cli import text
from linkbound.cli.table import Column, right, table
from linkbound.domain.traffic import NS_PER_MS, NS_PER_SECOND, PhaseTraffic, PortTraffic, TrafficWindow
from linkbound.domain.words import counted, duration

NOTHING = "-"

_WINDOW_COLUMNS = (
    Column("node"),
    Column("port"),
    Column("counter"),
    right("window"),
    right("peak"),
    right("99 %"),
    right("mean"),
    right("covered"),
)
_PHASE_COLUMNS = (
    Column("test"),
    right("round"),
    right("request"),
    Column("port"),
    Column("counter"),
    right("prompt"),
    right("prefill"),
    right("mean"),
    right("per token"),
    right("decode"),
    right("mean"),
    right("overlaps"),
    right("round per token"),
)


def window_width(window_ns: int) -> str:
    """A width as it is typed: `1ms`, `2.5ms`, `10s`."""
    if window_ns < NS_PER_SECOND:
        return f"{window_ns / NS_PER_MS:g}ms"
    return f"{window_ns / NS_PER_SECOND:g}s"


def windows_table(ports: Sequence[PortTraffic]) -> str:
    """One line per port and window."""
    return table(_WINDOW_COLUMNS, [_window_cells(port, window) for port in ports for window in port.windows])


def notes(ports: Sequence[PortTraffic]) -> str:
    """How much was read of each port, and what went wrong in it."""
    return "\n".join(f"{port.node} {port.physical_port} {port.metric}: {', '.join(_note(port))}" for port in ports)


def phases_table(rows: Sequence[PhaseTraffic]) -> str:
    """One line per request and counter of a port."""
    return table(_PHASE_COLUMNS, [_phase_cells(row) for row in rows])


def _window_cells(port: PortTraffic, window: TrafficWindow) -> list[str]:
    return [
        port.node,
        port.physical_port,
        port.metric,
        window_width(window.window_ns),
        text.bits_per_second(window.peak_bits_per_second),
        text.bits_per_second(window.p99_bits_per_second),
        text.bits_per_second(window.mean_bits_per_second),
        text.percent(window.covered_fraction),
    ]


def _note(port: PortTraffic) -> Iterator[str]:
    seconds = (port.end_ns - port.start_ns) / NS_PER_SECOND
    yield f"{text.size_bytes(port.total_bytes)} in {duration(seconds)}"
    yield f"{counted(port.sample_count, 'reading')} every {duration(port.interval_ns / NS_PER_SECOND)}"
    if len(port.devices) > 1:
        yield f"sum of {' and '.join(port.devices)}"
    for count, noun in (
        (port.wrap_count, "wrap"),
        (port.reset_count, "reset"),
        (port.gap_count, "gap"),
        (port.duplicate_count, "duplicate"),
        (port.late_count, "late reading"),
    ):
        if count:
            yield counted(count, noun)


def _phase_cells(row: PhaseTraffic) -> list[str]:
    return [
        row.subject,
        str(row.round_index),
        str(row.request_index),
        row.physical_port or NOTHING,
        row.metric or "no counter on its clock",
        f"{row.prompt_tokens:,}",
        _or_nothing(row.prefill_bytes, text.size_bytes),
        _or_nothing(row.prefill_bits_per_second, text.bits_per_second),
        _or_nothing(row.prefill_bytes_per_prompt_token, _whole_bytes),
        _or_nothing(row.decode_bytes, text.size_bytes),
        _or_nothing(row.decode_bits_per_second, text.bits_per_second),
        str(row.overlapping_request_count),
        _or_nothing(row.round_prefill_bytes_per_prompt_token, _whole_bytes),
    ]


def _whole_bytes(value: float) -> str:
    return f"{value:,.0f} B"


def _or_nothing(value: float | None, form: Callable[[float], str]) -> str:
    return NOTHING if value is None else form(value)
