"""What lies in a spool directory, for people. Nothing is changed, and nobody who writes is disturbed."""

from __future__ import annotations

from pathlib import Path

from attrs import field, frozen

from linkbound.client.spool.directory import STATE_FILE_NAME
from linkbound.client.spool.lock import holder_of
from linkbound.client.spool.segment import look_into, segment_paths
from linkbound.client.spool.state_file import read_state

_SUFFIX = ".spool"


@frozen(kw_only=True)
class SpoolSummary:
    """What one writer of one run has in its spool: batches that are delivered go file by file, and late.

    `undelivered_batch_count` is what the process that let go of it last knew; one that was killed knew nothing.
    `opening` is that of the newest file, as bytes; empty where no file can be read. `first_number` is None while the
    service has not told any process which numbers are taken.
    """

    run: str
    writer_id: str
    path: Path
    batch_count: int
    undelivered_batch_count: int
    row_count: int
    size_bytes: int
    first_number: int | None
    damaged_file_count: int
    holder_pid: int | None
    opening: bytes = field(repr=False)


def spools_in(directory: Path) -> list[SpoolSummary]:
    """The spools of every writer in `directory`, by run and writer. Errors are those of the operating system."""
    return [_summary(path) for path in sorted(directory.glob(f"*/*{_SUFFIX}")) if path.is_dir()]


def _summary(path: Path) -> SpoolSummary:
    paths = segment_paths(path)
    found = [look_into(file, is_last=file == paths[-1]) for file in paths]
    segments = [entry.segment for entry in found if entry.segment is not None]
    state = read_state(path / STATE_FILE_NAME)
    first_number = None
    if state is not None and segments and (state.numbering.unsettled_from or 2**63) > segments[0].first_index:
        first_number = state.numbering.number_of(segments[0].first_index)
    next_index = max([1 if state is None else state.next_index, *(segment.next_index for segment in segments)])
    delivered_index = 0 if state is None else state.delivered_index
    batch_count = sum(segment.next_index - segment.first_index for segment in segments)
    return SpoolSummary(
        run=path.parent.name,
        writer_id=path.name.removesuffix(_SUFFIX),
        path=path,
        batch_count=batch_count,
        undelivered_batch_count=min(batch_count, next_index - 1 - delivered_index),
        row_count=sum(segment.row_count for segment in segments),
        size_bytes=sum(segment.size_bytes for segment in segments),
        first_number=first_number,
        damaged_file_count=len(found) - len(segments) + len(list(path.glob("*.damaged"))),
        holder_pid=holder_of(path),
        opening=segments[-1].opening if segments else b"",
    )
