"""What an earlier process left in the directory of a spool: its files are opened, cut, or set aside."""

from __future__ import annotations

import os
from pathlib import Path

from attrs import frozen

from linkbound.client.spool.segment import Segment, forget_unfinished, open_segment, segment_paths, set_aside


@frozen(kw_only=True)
class SpoolContent:
    """What an earlier process left behind, in numbers."""

    batch_count: int
    row_count: int
    damaged_batch_count: int
    damaged_file_count: int
    cut_bytes: int


@frozen(kw_only=True)
class Leftovers:
    """The files that can be used, in the order of their batches, and what could not be."""

    segments: tuple[Segment, ...]
    damaged_file_count: int
    cut_bytes: int

    def content(self, next_index: int) -> SpoolContent:
        """The same in numbers, where `next_index` is that of the batch that is appended next."""
        readable_count = sum(segment.next_index - segment.first_index for segment in self.segments)
        first_index = self.segments[0].first_index if self.segments else next_index
        return SpoolContent(
            batch_count=next_index - first_index,
            row_count=sum(segment.row_count for segment in self.segments),
            damaged_batch_count=next_index - first_index - readable_count,
            damaged_file_count=self.damaged_file_count,
            cut_bytes=self.cut_bytes,
        )


def open_leftovers(directory: Path) -> Leftovers:
    """Opens the files in `directory`. A torn end is cut; a file of which nothing can be used is renamed.

    Errors are those of the operating system.
    """
    forget_unfinished(directory)
    paths = segment_paths(directory)
    opened = [open_segment(path, is_last=path == paths[-1]) for path in paths]
    damaged = [path for path, found in zip(paths, opened, strict=True) if found.segment is None]
    for path in damaged:
        set_aside(path)
    segments = tuple(found.segment for found in opened if found.segment is not None)
    if segments:
        _sync(segments[-1].path)
    return Leftovers(
        segments=segments, damaged_file_count=len(damaged), cut_bytes=sum(found.cut_bytes for found in opened)
    )


def _sync(path: Path) -> None:
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fdatasync(file)
    finally:
        os.close(file)
