"""The spool of one writer: segment files, a state file and a lock in one directory. Belongs to one thread at a time.

The files hold batches in the order of their indexes. A batch is appended once, read as often as it has to be sent, and
its file is removed once the service holds everything in it for good. Removing a file takes no room, so a spool on a
disk that is full empties itself as the service takes what is in it; a database file could not (`docs/adr/0033`).
"""

from __future__ import annotations

import errno

from linkbound.client.spool.frames import HEADER_BYTES
from linkbound.client.spool.leftovers import SpoolContent, open_leftovers
from linkbound.client.spool.lock import SpoolLock
from linkbound.client.spool.numbering import Numbering, SpoolState
from linkbound.client.spool.options import MEBIBYTE_BYTES, Spool, writer_directory
from linkbound.client.spool.segment import (
    Segment,
    SegmentReader,
    SegmentWriter,
    StoredBatch,
    create_segment,
    sync_directory,
)
from linkbound.client.spool.state_file import StateFile

STATE_FILE_NAME = "state"

LARGEST_SEGMENT_BYTES = 8 * MEBIBYTE_BYTES
SEGMENTS_PER_SPOOL = 16
"""At least: a spool is emptied file by file, and one that is full has this part of it unused at most."""

_RANGE_COUNT = 80
"""As many as fit into a slot of the state file. Each append of records that is left out begins one."""

_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class SpoolFullError(Exception):
    """The spool has no room for the batch, by its limit or by its file system."""


class SpoolDirectory:
    """The spool of the writer `writer_id` of `run`; batches that are appended belong to `opening`.

    Raises UnavailableError (SPOOL_LOCKED) on construction. Errors besides are those of the operating system.
    """

    def __init__(self, spool: Spool, run: str, writer_id: str, opening: bytes) -> None:
        self.path = writer_directory(spool.directory, run, writer_id)
        self._limit_bytes = spool.limit_bytes
        self._segment_bytes = min(LARGEST_SEGMENT_BYTES, spool.limit_bytes // SEGMENTS_PER_SPOOL)
        self._is_synced_at_once = spool.sync_seconds == 0
        self._opening = opening
        self._segments: list[Segment] = []
        self._writer: SegmentWriter | None = None
        self._reader: SegmentReader | None = None
        self._released_row_count = 0
        self._delivered_index = 0
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = SpoolLock(self.path)
        try:
            self._state_file = StateFile(self.path / STATE_FILE_NAME)
            try:
                self.content = self._open()
            except BaseException:
                self._state_file.close()
                raise
        except BaseException:
            self._lock.release()
            raise

    @property
    def next_index(self) -> int:
        """Index of the batch that is appended next."""
        return self._next_index

    @property
    def first_index(self) -> int:
        """Lowest index that is kept; the next one where none is."""
        return self._segments[0].first_index if self._segments else self._next_index

    @property
    def appended_row_count(self) -> int:
        """Rows that this process found or appended."""
        return self._released_row_count + sum(segment.row_count for segment in self._segments)

    @property
    def size_bytes(self) -> int:
        """What the batches take on the disk."""
        return sum(segment.size_bytes for segment in self._segments)

    def settle(self, committed_sequence_number: int) -> int:
        """Give every batch a number, for good (`Numbering.settle`)."""
        skipped_count = self.numbering.settle(committed_sequence_number)
        self._write_state()
        return skipped_count

    def close_gap(self, index: int) -> None:
        """Leave out the batch `index`, for good (`Numbering.close_gap`)."""
        self.numbering.close_gap(index)
        self._write_state()

    def append(self, kind: int, row_count: int, payload: bytes, delivered_index: int) -> None:
        """Keep a batch. Where there is no room otherwise, batches up to `delivered_index` make way.

        Those are durable at the service: only damage to its log could take them yet. Raises SpoolFullError.
        """
        self._make_room(HEADER_BYTES + len(payload), delivered_index)
        try:
            self._append(kind, row_count, payload)
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise
            if not self._release_delivered(delivered_index):
                raise SpoolFullError from error
            self._append_or_full(kind, row_count, payload)
        self._next_index += 1
        if self._is_synced_at_once:
            self.sync()

    def read(self, index: int) -> StoredBatch | None:
        """A batch that was appended; None where it is damaged."""
        reader = self._reader_of(index)
        return reader.read(index) if reader is not None else None

    def opening_of(self, index: int) -> bytes:
        """What the batch `index` belongs to, damaged or not."""
        segment = self._segment_of(index)
        return segment.opening if segment is not None else self._opening

    def rows_up_to(self, index: int) -> int:
        """How many of `appended_row_count` are those of batches up to `index`."""
        rows = self._released_row_count + sum(s.row_count for s in self._segments if s.next_index <= index + 1)
        reader = self._reader_of(index)
        if reader is not None and reader.segment.next_index > index + 1:
            rows += reader.rows_up_to(index)
        return rows

    def release(self, index: int) -> None:
        """Nothing can take the batches up to `index` from the service any more: remove files that hold no others."""
        while self._segments and self._segments[0] is not self._active and self._segments[0].next_index <= index + 1:
            self._remove_first()

    def sync(self) -> None:
        """Return once everything appended outlives a loss of power."""
        if self._writer is not None:
            self._writer.sync()

    def close(self, delivered_index: int = 0) -> None:
        """Put everything on the disk and let go of it. Up to `delivered_index` the service holds everything."""
        try:
            self.sync()
            self._end_active()
            if delivered_index > self._delivered_index:
                self._delivered_index = delivered_index
                self._write_state()
        finally:
            if self._writer is not None:
                self._writer.close()
            if self._reader is not None:
                self._reader.close()
            self._state_file.close()
            self._lock.release()

    @property
    def _active(self) -> Segment | None:
        return self._writer.segment if self._writer is not None else None

    def _open(self) -> SpoolContent:
        leftovers = open_leftovers(self.path)
        self._segments = list(leftovers.segments)
        state = self._state_file.state or SpoolState(numbering=Numbering(), next_index=1)
        self._next_index = max([state.next_index, *(segment.next_index for segment in self._segments)])
        self._delivered_index = state.delivered_index
        self.numbering = state.numbering
        # Durable before anything is appended: what this process writes is not to be taken for what was sent before.
        self.numbering.begin(self._next_index)
        self._write_state()
        return leftovers.content(self._next_index)

    def _write_state(self) -> None:
        self.numbering.forget_oldest(_RANGE_COUNT)
        self._state_file.write(
            SpoolState(numbering=self.numbering, next_index=self._next_index, delivered_index=self._delivered_index)
        )

    def _make_room(self, needed_bytes: int, delivered_index: int) -> None:
        is_new_file = self._active is None or self._active.size_bytes >= self._segment_bytes
        overhead_bytes = 2 * HEADER_BYTES + len(self._opening) if is_new_file else 0
        if self.size_bytes + needed_bytes + overhead_bytes <= self._limit_bytes:
            return
        self._release_delivered(
            delivered_index, self._limit_bytes - needed_bytes - 2 * HEADER_BYTES - len(self._opening)
        )
        if self.size_bytes + needed_bytes + overhead_bytes > self._limit_bytes:
            raise SpoolFullError

    def _append_or_full(self, kind: int, row_count: int, payload: bytes) -> None:
        try:
            self._append(kind, row_count, payload)
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise
            raise SpoolFullError from error

    def _append(self, kind: int, row_count: int, payload: bytes) -> None:
        if self._writer is not None and self._writer.segment.size_bytes >= self._segment_bytes:
            self._writer.sync()
            self._end_active()
        if self._writer is None:
            if self._segments and self._segments[-1].first_index == self._next_index:
                # A loss of power left it without a batch; the new file has its name and takes its place.
                self._segments.pop()
            segment = create_segment(self.path, self._next_index, self._opening)
            self._segments.append(segment)
            self._writer = SegmentWriter(segment)
        self._writer.append(kind, row_count, payload)

    def _end_active(self) -> None:
        if self._writer is not None:
            writer, self._writer = self._writer, None
            writer.end()

    def _release_delivered(self, delivered_index: int, size_bytes: int = 0) -> bool:
        """Remove files of delivered batches until no more than `size_bytes` are left; whether there were any."""
        if self._active is not None and self._active.next_index <= delivered_index + 1:
            self._end_active()
        count = len(self._segments)
        while (
            self._segments
            and self.size_bytes > size_bytes
            and self._segments[0] is not self._active
            and self._segments[0].next_index <= delivered_index + 1
        ):
            self._remove_first()
        return len(self._segments) < count

    def _remove_first(self) -> None:
        if len(self._segments) == 1:
            # No file tells the next index any more.
            self._write_state()
        segment = self._segments.pop(0)
        if self._reader is not None and self._reader.segment is segment:
            self._reader.close()
            self._reader = None
        segment.path.unlink(missing_ok=True)
        sync_directory(self.path)
        self._released_row_count += segment.row_count
        self.numbering.forget_before(self.first_index)

    def _segment_of(self, index: int) -> Segment | None:
        return next((segment for segment in self._segments if segment.holds(index)), None)

    def _reader_of(self, index: int) -> SegmentReader | None:
        if self._reader is not None and self._reader.segment.holds(index):
            return self._reader
        segment = self._segment_of(index)
        if segment is None:
            return None
        if self._reader is not None:
            self._reader.close()
        self._reader = SegmentReader(segment)
        return self._reader
