"""The spool of one writer on disk: what it keeps, what it lets go of, and what damage does to it."""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from linkbound.client.spool import segment as segment_module
from linkbound.client.spool.directory import SpoolDirectory, SpoolFullError
from linkbound.client.spool.frames import HEADER_BYTES, SAMPLES, frames_in
from linkbound.client.spool.options import SMALLEST_LIMIT_BYTES, Spool
from linkbound.client.spool.segment import segment_paths

LIMIT_BYTES = SMALLEST_LIMIT_BYTES
FULL_FILE_BYTES = LIMIT_BYTES // 16
OPENING = b"opening"


@contextmanager
def spool(tmp_path: Path, opening: bytes = OPENING, limit_bytes: int = LIMIT_BYTES) -> Iterator[SpoolDirectory]:
    directory = SpoolDirectory(Spool(tmp_path, limit_bytes=limit_bytes), "r", "w", opening)
    try:
        yield directory
    finally:
        directory.close()


def payload(index: int, size_bytes: int = 2000) -> bytes:
    return f"batch {index} ".encode() * (size_bytes // 10)


def fill(directory: SpoolDirectory, count: int, delivered_index: int = 0) -> None:
    for _ in range(count):
        directory.append(SAMPLES, 3, payload(directory.next_index), delivered_index)


def readable(directory: SpoolDirectory) -> list[int]:
    """Indexes of the batches that come back as they were written; nothing else ever comes back."""
    indexes = []
    for index in range(1, directory.next_index):
        batch = directory.read(index)
        if batch is not None:
            assert (batch.kind, batch.row_count, batch.payload) == (SAMPLES, 3, payload(index))
            indexes.append(index)
    return indexes


def files(directory: SpoolDirectory) -> list[Path]:
    return segment_paths(directory.path)


def as_a_kill_leaves_it(directory: SpoolDirectory, place: Path) -> Path:
    """A copy of the files as they are while the process that writes them runs; returns the newest one."""
    shutil.copytree(directory.path.parent.parent, place)
    return segment_paths(place / directory.path.parent.name / directory.path.name)[-1]


def test_what_is_appended_can_be_read_at_once(tmp_path: Path) -> None:
    with spool(tmp_path) as directory:
        for index in range(1, 30):
            fill(directory, 1)
            batch = directory.read(index)
            assert batch is not None
            assert (batch.payload, batch.opening) == (payload(index), OPENING)
        assert readable(directory) == list(range(1, 30))
        assert (directory.first_index, directory.next_index, directory.appended_row_count) == (1, 30, 87)
        assert len(files(directory)) > 1


def test_batches_can_be_read_in_any_order_while_more_come(tmp_path: Path) -> None:
    with spool(tmp_path) as directory:
        fill(directory, 40)
        for index in (40, 1, 23, 2, 39, 8):
            fill(directory, 1)
            batch = directory.read(index)
            assert batch is not None
            assert batch.payload == payload(index)
        assert directory.read(99) is None


def test_rows_are_counted_up_to_any_batch(tmp_path: Path) -> None:
    with spool(tmp_path) as directory:
        fill(directory, 30)
        assert [directory.rows_up_to(index) for index in (0, 1, 17, 30, 31)] == [0, 3, 51, 90, 90]
        directory.release(20)
        assert [directory.rows_up_to(index) for index in (20, 25, 30)] == [60, 75, 90]
        assert directory.appended_row_count == 90


def test_a_closed_spool_is_found_as_it_was_left(tmp_path: Path) -> None:
    with spool(tmp_path) as directory:
        fill(directory, 30)
    with spool(tmp_path, b"other") as directory:
        assert readable(directory) == list(range(1, 31))
        assert (directory.content.batch_count, directory.content.row_count) == (30, 90)
        assert (directory.content.cut_bytes, directory.content.damaged_batch_count) == (0, 0)
        fill(directory, 1)
        assert [directory.opening_of(index) for index in (1, 30, 31, 32)] == [OPENING, OPENING, b"other", b"other"]
        assert directory.rows_up_to(31) == 93


def test_a_killed_process_loses_nothing_that_it_appended(tmp_path: Path) -> None:
    with spool(tmp_path / "spool") as directory:
        fill(directory, 30)
        as_a_kill_leaves_it(directory, tmp_path / "copy")
    with spool(tmp_path / "copy") as directory:
        assert readable(directory) == list(range(1, 31))


def test_files_go_when_everything_in_them_is_released(tmp_path: Path) -> None:
    with spool(tmp_path) as directory:
        fill(directory, 50)
        file_count = len(files(directory))
        directory.release(25)
        assert 1 < len(files(directory)) < file_count
        assert directory.first_index <= 26
        kept = readable(directory)
        assert kept == list(range(directory.first_index, 51))
        directory.release(50)
        assert len(files(directory)) == 1
        assert directory.next_index == 51


def test_an_empty_spool_remembers_how_far_it_was(tmp_path: Path) -> None:
    with spool(tmp_path) as directory:
        fill(directory, 20)
        directory.settle(100)
        # Delivered, and in the way of what is to be appended.
        fill(directory, 200, delivered_index=220)
    with spool(tmp_path) as directory:
        directory.release(directory.next_index)
        assert files(directory) == []
    with spool(tmp_path) as directory:
        assert (directory.first_index, directory.next_index) == (221, 221)
        assert directory.numbering.settled_number == 320


def test_a_full_spool_refuses_the_newest_and_keeps_the_rest(tmp_path: Path) -> None:
    with spool(tmp_path) as directory:
        with pytest.raises(SpoolFullError):
            fill(directory, 1000)
        count = directory.next_index - 1
        assert readable(directory) == list(range(1, count + 1))
        assert LIMIT_BYTES - 3 * FULL_FILE_BYTES < directory.size_bytes <= LIMIT_BYTES
        with pytest.raises(SpoolFullError):
            fill(directory, 1, delivered_index=1)
        directory.release(count // 2)
        fill(directory, 1)
        assert directory.next_index == count + 2


def test_what_is_delivered_makes_way_only_where_there_is_no_room(tmp_path: Path) -> None:
    with spool(tmp_path) as directory:
        fill(directory, 30, delivered_index=30)
        assert directory.first_index == 1
        fill(directory, 130, delivered_index=30)
        assert directory.first_index > 1
        assert readable(directory) == list(range(directory.first_index, directory.next_index))


@pytest.mark.parametrize("torn_bytes", [1, HEADER_BYTES - 1, HEADER_BYTES, HEADER_BYTES + 100])
def test_a_batch_that_was_written_by_half_is_cut_off(tmp_path: Path, torn_bytes: int) -> None:
    with spool(tmp_path / "spool") as directory:
        fill(directory, 3)
        path = as_a_kill_leaves_it(directory, tmp_path / "copy")
    content = path.read_bytes()
    last = list(frames_in(content))[-1]
    path.write_bytes(content[: last.offset + torn_bytes])
    with spool(tmp_path / "copy") as directory:
        assert readable(directory) == [1, 2]
        assert (directory.next_index, directory.content.cut_bytes) == (3, torn_bytes)
        fill(directory, 1)
        assert readable(directory) == [1, 2, 3]


def test_a_file_whose_only_batch_was_torn_makes_way_for_the_next_one(tmp_path: Path) -> None:
    with spool(tmp_path / "alive") as directory:
        fill(directory, 1)
        newest = as_a_kill_leaves_it(directory, tmp_path / "killed")
    newest.write_bytes(newest.read_bytes()[:-1])
    with spool(tmp_path / "killed") as directory:
        fill(directory, 1)
        directory.settle(0)
        directory.release(0)
        assert readable(directory) == [1]
    with spool(tmp_path / "killed") as directory:
        assert readable(directory) == [1]


def test_a_power_loss_that_left_zeros_is_cut_off(tmp_path: Path) -> None:
    with spool(tmp_path / "spool") as directory:
        fill(directory, 3)
        path = as_a_kill_leaves_it(directory, tmp_path / "copy")
    last = list(frames_in(path.read_bytes()))[-1]
    with path.open("r+b") as file:
        file.seek(last.payload_offset + 5)
        file.write(bytes(5000))
    with spool(tmp_path / "copy") as directory:
        assert readable(directory) == [1, 2]
        assert directory.next_index == 3


@pytest.mark.parametrize("part", ["header", "payload"])
def test_a_damaged_batch_in_the_middle_is_not_read_and_costs_no_other(tmp_path: Path, part: str) -> None:
    with spool(tmp_path) as directory:
        fill(directory, 30)
        path = files(directory)[1]
        frame = list(frames_in(path.read_bytes()))[3]
    content = bytearray(path.read_bytes())
    content[frame.offset + 9 if part == "header" else frame.payload_offset + 9] ^= 255
    path.write_bytes(content)
    with spool(tmp_path) as directory:
        assert readable(directory) == [index for index in range(1, 31) if index != frame.index]
        assert directory.next_index == 31


def test_a_file_that_is_gone_or_useless_is_counted(tmp_path: Path) -> None:
    with spool(tmp_path) as directory:
        fill(directory, 40)
        first, second, third, *_ = files(directory)
        spans = [int(path.stem) for path in files(directory)]
    second.unlink()
    third.write_bytes(b"\0" * 100)
    with spool(tmp_path) as directory:
        lost = list(range(spans[1], spans[3]))
        assert readable(directory) == [index for index in range(1, 41) if index not in lost]
        assert directory.content.damaged_batch_count == len(lost)
        assert directory.content.damaged_file_count == 1
        assert third.with_suffix(".damaged").exists()
        # What is missing belongs to nothing; what it is sent under does not matter.
        assert directory.opening_of(lost[0]) == OPENING
    assert first.exists()


def test_files_that_were_never_finished_are_removed(tmp_path: Path) -> None:
    with spool(tmp_path) as directory:
        fill(directory, 1)
        unfinished = directory.path / "00000000000000000002.new"
        unfinished.write_bytes(b"LBsp")
    with spool(tmp_path) as directory:
        assert not unfinished.exists()
        assert readable(directory) == [1]


class FullDisk:
    """A file system that takes so many bytes more; the rest of a write does not fit."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.room_bytes = 10**9
        self._write = os.write
        monkeypatch.setattr(os, "write", self.write)
        self._create = segment_module.create_segment
        monkeypatch.setattr("linkbound.client.spool.directory.create_segment", self.create)

    def write(self, file: int, content: bytes) -> int:
        if self.room_bytes == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = self._write(file, content[: self.room_bytes])
        self.room_bytes -= written
        return written

    def create(self, directory: Path, first_index: int, opening: bytes) -> segment_module.Segment:
        if self.room_bytes == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self._create(directory, first_index, opening)


def test_a_full_file_system_is_a_full_spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = FullDisk(monkeypatch)
    with spool(tmp_path) as directory:
        fill(directory, 3)
        disk.room_bytes = 1000
        for _ in range(2):
            with pytest.raises(SpoolFullError):
                fill(directory, 1)
        assert readable(directory) == [1, 2, 3]
        disk.room_bytes = 10**9
        fill(directory, 2)
        assert readable(directory) == [1, 2, 3, 4, 5]
    with spool(tmp_path) as directory:
        assert readable(directory) == [1, 2, 3, 4, 5]
        disk.room_bytes = 0
        with pytest.raises(SpoolFullError):
            fill(directory, 1)
        assert readable(directory) == [1, 2, 3, 4, 5]


def test_what_is_delivered_makes_room_on_a_full_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = FullDisk(monkeypatch)
    with spool(tmp_path) as directory:
        fill(directory, 30)
        unlink, remove = Path.unlink, monkeypatch.setattr

        def freeing(path: Path, *, missing_ok: bool = False) -> None:
            disk.room_bytes += path.stat().st_size
            unlink(path, missing_ok=missing_ok)

        remove(Path, "unlink", freeing)
        disk.room_bytes = 0
        fill(directory, 1, delivered_index=30)
        assert directory.next_index == 32
        batch = directory.read(31)
        assert batch is not None
        assert batch.payload == payload(31)


def test_another_trouble_of_the_disk_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with spool(tmp_path) as directory:
        fill(directory, 1)
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", fail)
            with pytest.raises(OSError, match="Input/output"):
                fill(directory, 1)
        fill(directory, 1)
        assert readable(directory) == [1, 2]


def test_each_writer_has_a_place_of_its_own(tmp_path: Path) -> None:
    options = Spool(str(tmp_path))
    spools = [SpoolDirectory(options, run, writer, OPENING) for run in ("r", "s") for writer in ("..", ".", "w", "w:1")]
    assert len({directory.path for directory in spools}) == len(spools)
    assert all(directory.path.parent.parent == tmp_path for directory in spools)
    for directory in spools:
        directory.close()
