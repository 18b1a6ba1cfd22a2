"""One file of a spool: batches with successive indexes that belong to one opening."""

from __future__ import annotations

import contextlib
import os
from array import array
from pathlib import Path

from attrs import define, field, frozen

from linkbound.client.spool.frames import (
    END,
    FORMAT_VERSION,
    HEADER_BYTES,
    OPENING,
    Frame,
    frame_at,
    frame_bytes,
    frames_in,
)

SUFFIX = ".segment"
_NEW_SUFFIX = ".new"
_DAMAGED_SUFFIX = ".damaged"

NOWHERE = 2**64 - 1
"""Stands for the offset of a batch that cannot be found in its file."""


@frozen(kw_only=True)
class StoredBatch:
    """A batch as it was written."""

    kind: int
    row_count: int
    payload: bytes = field(repr=False)
    opening: bytes = field(repr=False)


@define(kw_only=True)
class Segment:
    """A file whose batches have the indexes from `first_index` to one below `next_index`; damaged ones among them."""

    path: Path
    first_index: int
    next_index: int
    row_count: int
    size_bytes: int
    opening: bytes

    def holds(self, index: int) -> bool:
        """Whether the batch belongs here."""
        return self.first_index <= index < self.next_index


@frozen(kw_only=True)
class OpenedSegment:
    """What was found in a file: None where nothing of it can be used. The bytes of a torn tail were cut off."""

    segment: Segment | None
    cut_bytes: int = 0


def path_of(directory: Path, first_index: int) -> Path:
    """The file that begins with this index."""
    return directory / f"{first_index:020d}{SUFFIX}"


def segment_paths(directory: Path) -> list[Path]:
    """The files of a spool, in the order of their indexes."""
    return sorted(path for path in directory.glob(f"*{SUFFIX}") if path.stem.isdecimal())


def forget_unfinished(directory: Path) -> None:
    """Remove files that were never put in place."""
    for path in directory.glob(f"*{_NEW_SUFFIX}"):
        path.unlink(missing_ok=True)


def set_aside(path: Path) -> None:
    """Keep a file of which nothing can be used, for people to look at."""
    path.rename(path.with_suffix(_DAMAGED_SUFFIX))


def create_segment(directory: Path, first_index: int, opening: bytes) -> Segment:
    """A new file without batches. Errors are those of the operating system; then there is no file."""
    path = path_of(directory, first_index)
    unfinished = path.with_suffix(_NEW_SUFFIX)
    content = frame_bytes(OPENING, first_index, FORMAT_VERSION, opening)
    try:
        with unfinished.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        unfinished.rename(path)
        sync_directory(directory)
    except OSError:
        unfinished.unlink(missing_ok=True)
        raise
    return Segment(
        path=path,
        first_index=first_index,
        next_index=first_index,
        row_count=0,
        size_bytes=len(content),
        opening=opening,
    )


def sync_directory(directory: Path) -> None:
    """Make the names in `directory` outlive a loss of power."""
    file = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def open_segment(path: Path, *, is_last: bool) -> OpenedSegment:
    """The file at `path` as an earlier process left it. The tail of the last one may be torn, and is cut then."""
    found = look_into(path, is_last=is_last)
    if found.cut_bytes:
        os.truncate(path, path.stat().st_size - found.cut_bytes)
    return found


def look_into(path: Path, *, is_last: bool) -> OpenedSegment:
    """The same, and the file stays as it is: somebody may be writing it."""
    first_index = int(path.stem)
    ended = _ended_segment(path, first_index)
    if ended is not None:
        return OpenedSegment(segment=ended)
    content = path.read_bytes()
    frames = list(frames_in(content))
    if not _is_opening(frames, content, first_index):
        return OpenedSegment(segment=None)
    if is_last:
        # A batch that was being written when its process or the power ended. What is damaged further in stays.
        while not frames[-1].holds(content[frames[-1].payload_offset : frames[-1].end_offset]):
            frames.pop()
    cut_bytes = len(content) - frames[-1].end_offset if is_last else 0
    batches = [frame for frame in frames if frame.kind not in (OPENING, END)]
    segment = Segment(
        path=path,
        first_index=first_index,
        next_index=batches[-1].index + 1 if batches else first_index,
        row_count=sum(frame.row_count for frame in batches),
        size_bytes=len(content) - cut_bytes,
        opening=content[frames[0].payload_offset : frames[0].end_offset],
    )
    return OpenedSegment(segment=segment, cut_bytes=cut_bytes)


def _is_opening(frames: list[Frame], content: bytes, first_index: int) -> bool:
    if not frames or frames[0].offset or frames[0].kind != OPENING or frames[0].index != first_index:
        return False
    opening = frames[0]
    return opening.row_count == FORMAT_VERSION and opening.holds(content[opening.payload_offset : opening.end_offset])


def _ended_segment(path: Path, first_index: int) -> Segment | None:
    """The file at `path` without reading all of it, where its last frame says that it was closed in order."""
    with path.open("rb") as file:
        size_bytes = file.seek(0, os.SEEK_END)
        if size_bytes < 2 * HEADER_BYTES:
            return None
        file.seek(size_bytes - HEADER_BYTES)
        end = frame_at(file.read(HEADER_BYTES), 0)
        file.seek(0)
        opening = frame_at(file.read(HEADER_BYTES), 0)
        if end is None or end.kind != END or opening is None:
            return None
        payload = file.read(opening.payload_bytes)
    if opening.kind != OPENING or opening.index != first_index or not opening.holds(payload):
        return None
    return Segment(
        path=path,
        first_index=first_index,
        next_index=end.index,
        row_count=end.row_count,
        size_bytes=size_bytes,
        opening=payload,
    )


class SegmentWriter:
    """Appends to the newest file. Errors are those of the operating system; what they interrupt is cut off again."""

    def __init__(self, segment: Segment) -> None:
        self.segment = segment
        self._file = os.open(segment.path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        self._is_synced = True

    def append(self, kind: int, row_count: int, payload: bytes) -> None:
        """Write a batch behind the others."""
        segment = self.segment
        self._write(frame_bytes(kind, segment.next_index, row_count, payload))
        segment.next_index += 1
        segment.row_count += row_count

    def sync(self) -> None:
        """Return once everything written is on the disk."""
        if not self._is_synced:
            os.fdatasync(self._file)
            self._is_synced = True

    def end(self) -> None:
        """Close the file in order."""
        # Without room for its last frame, it is read as a whole when it is opened.
        with contextlib.suppress(OSError):
            self._write(frame_bytes(END, self.segment.next_index, self.segment.row_count, b""))
        self.close()

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _write(self, content: bytes) -> None:
        segment = self.segment
        self._is_synced = False
        try:
            written_bytes = os.write(self._file, content)
            while written_bytes < len(content):
                written_bytes += os.write(self._file, memoryview(content)[written_bytes:])
        except OSError:
            os.ftruncate(self._file, segment.size_bytes)
            raise
        segment.size_bytes += len(content)


class SegmentReader:
    """Reads batches of one file, mostly one after the other, while more are appended to it."""

    def __init__(self, segment: Segment) -> None:
        self.segment = segment
        self._file = os.open(segment.path, os.O_RDONLY | os.O_CLOEXEC)
        self._offsets: array[int] = array("Q")
        self._row_counts: array[int] = array("Q")
        self._scanned_bytes = 0

    def read(self, index: int) -> StoredBatch | None:
        """The batch `index`; None where it is damaged."""
        self._scan_to_end()
        position = index - self.segment.first_index
        offset = self._offsets[position] if position < len(self._offsets) else NOWHERE
        if offset == NOWHERE:
            return None
        frame = frame_at(os.pread(self._file, HEADER_BYTES, offset), 0)
        if frame is None or frame.index != index:
            return None
        payload = os.pread(self._file, frame.payload_bytes, offset + HEADER_BYTES)
        if not frame.holds(payload):
            return None
        return StoredBatch(kind=frame.kind, row_count=frame.row_count, payload=payload, opening=self.segment.opening)

    def rows_up_to(self, index: int) -> int:
        """Rows of the batches up to `index`, as far as they can be found."""
        self._scan_to_end()
        return sum(self._row_counts[: max(0, index + 1 - self.segment.first_index)])

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _scan_to_end(self) -> None:
        """Find the batches that were appended since the last look."""
        if self._scanned_bytes == self.segment.size_bytes:
            return
        begin = self._scanned_bytes
        content = os.pread(self._file, self.segment.size_bytes - begin, begin)
        for frame in frames_in(content):
            position = frame.index - self.segment.first_index
            if frame.kind in (OPENING, END) or position < len(self._offsets):
                continue
            self._note_missing(position - len(self._offsets))
            self._offsets.append(begin + frame.offset)
            self._row_counts.append(frame.row_count)
        self._scanned_bytes = begin + len(content)
        self._note_missing(self.segment.next_index - self.segment.first_index - len(self._offsets))
        if NOWHERE in self._offsets:
            # The sum is known from the end of the file; whose rows are missing is not.
            self._row_counts[self._offsets.index(NOWHERE)] += self.segment.row_count - sum(self._row_counts)

    def _note_missing(self, count: int) -> None:
        self._offsets.extend([NOWHERE] * count)
        self._row_counts.extend([0] * count)
