"""The tables of `docs/accuracy.md` about engines over another link, and the command that puts them there.

python -m tests.golden.engine_accuracy write    put the tables into the page
python -m tests.golden.engine_accuracy check    fail where the page differs
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from estimator_service.core.engine_times.comparison import ChangeRow, SpeedRow, change_rows, speed_rows
from estimator_service.core.engine_times.fit import fit_engine
from linkbound.domain.engine import EngineMetric
from linkbound.domain.estimate import Estimate
from tests.golden.engine_tables import measured_engine

PAGE = Path(__file__).parents[2] / "docs" / "accuracy.md"
STUDY_BOUNDS_SECONDS: Mapping[str, float] = {"P1": 0.12, "P2": 0.92, "P3": 3.69, "P4": 3.69, "P5": 7.39, "P6": 7.39}
"""What the first study bounds the increases of single and last TTFTs by. Source: its section 8.4."""

_METRICS = {EngineMetric.TTFT: "TTFT", EngineMetric.LAST_TTFT: "last TTFT", EngineMetric.MEAN_TTFT: "mean TTFT"}


def study_table() -> list[str]:
    """The eight increases of the first study, from 200 to 109 Gb/s."""
    titles = (
        *("row", "200 Gb/s", "109 Gb/s", "increase", "study's bound", "at least", "expected", "at most", "half width"),
        *("error", "inside", "if parted", "inside if parted"),
    )
    return list(_table(titles, (_study_cells(row) for row in _changes("engine_study.toml"))))


def recording_table() -> list[str]:
    """The first tokens of the recording, from 400 to 200 Mb/s."""
    titles = (
        *("row", "400 Mb/s", "200 Mb/s", "predicted", "error"),
        *("increase", "at least", "expected", "at most", "inside"),
    )
    return list(_table(titles, (_recording_cells(row) for row in _changes("engine_recording.toml"))))


def speed_table() -> list[str]:
    """The output speeds of the recording, in tokens per second of each request."""
    measured = measured_engine("engine_recording.toml")
    rows = speed_rows(fit_engine(measured.seen, measured.model), measured.unseen, measured.model)
    return list(_table(("row", "400 Mb/s", "200 Mb/s", "predicted", "error"), map(_speed_cells, rows)))


TABLES = {"first study": study_table, "recording": recording_table, "output speeds": speed_table}


def rendered(page: str) -> str:
    """`page` with its tables as the code makes them. Raises ValueError where the marks of one are missing."""
    for name, table in TABLES.items():
        begin, end = f"<!-- table: {name}, written by tests.golden.engine_accuracy -->", f"<!-- end of: {name} -->"
        before, found_begin, rest = page.partition(begin)
        _, found_end, after = rest.partition(end)
        if not found_begin or not found_end:
            raise ValueError(f"{PAGE.name} lacks the marks of the table {name!r}")
        page = "".join([before, begin, "\n", *(f"{line}\n" for line in table()), end, after])
    return page


def _changes(file_name: str) -> Iterator[ChangeRow]:
    measured = measured_engine(file_name)
    return change_rows(fit_engine(measured.seen, measured.model), measured.unseen, measured.model)


def _study_cells(row: ChangeRow) -> Iterator[str]:
    bound = None if row.metric is EngineMetric.MEAN_TTFT else STUDY_BOUNDS_SECONDS[row.label]
    yield f"{row.label} {_METRICS[row.metric]}"
    yield from (f"{row.old_seconds:.2f}", f"{row.new_seconds:.2f}", f"{row.measured_extra_seconds:.2f}")
    yield "-" if bound is None else f"{bound:.2f}"
    yield from _interval(row.extra)
    yield f"{row.half_width_ratio:.1%}"
    yield _error(row.extra_error_ratio)
    yield _yes_or_no(row.is_inside)
    parted = row.extra_if_parted
    yield "-" if parted is None else f"{parted.lower:.2f} to {parted.upper:.2f}"
    yield "-" if row.is_inside_if_parted is None else _yes_or_no(row.is_inside_if_parted)


def _recording_cells(row: ChangeRow) -> Iterator[str]:
    yield f"{row.label}, {row.request + 1}." if row.label == "L4" else row.label
    yield from (f"{row.old_seconds:.2f}", f"{row.new_seconds:.2f}", _expected(row.seconds))
    yield _error(row.seconds_error_ratio)
    yield f"{row.measured_extra_seconds:.2f}"
    yield from _interval(row.extra)
    yield _yes_or_no(row.is_inside)


def _speed_cells(row: SpeedRow) -> Iterator[str]:
    yield row.label
    yield from (f"{row.old_tokens_per_second:.2f}", f"{row.new_tokens_per_second:.2f}")
    yield f"{row.expected_tokens_per_second:.2f}"
    yield _error(row.error_ratio)


def _interval(estimate: Estimate) -> Iterator[str]:
    yield f"{estimate.lower:.2f}"
    yield _expected(estimate)
    yield "-" if estimate.upper is None else f"{estimate.upper:.2f}"


def _expected(estimate: Estimate) -> str:
    return "-" if estimate.expected is None else f"{estimate.expected:.2f}"


def _error(ratio: float) -> str:
    # The increase of P1 is a hundredth of a second: a ratio to it says nothing.
    return f"{ratio:+.1%}" if abs(ratio) < 1 else "-"


def _yes_or_no(is_so: object) -> str:
    return "yes" if is_so else "no"


def _table(titles: Sequence[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    for cells in (titles, ["---"] * len(titles), *rows):
        yield f"| {' | '.join(cells)} |"


def main() -> int:
    """Run the command line; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["write", "check"])
    command = parser.parse_args().command
    current = PAGE.read_text(encoding="utf-8")
    wanted = rendered(current)
    if command == "write":
        PAGE.write_text(wanted, encoding="utf-8")
        return 0
    if current != wanted:
        sys.stderr.write("docs/accuracy.md differs; run: python -m tests.golden.engine_accuracy write\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
