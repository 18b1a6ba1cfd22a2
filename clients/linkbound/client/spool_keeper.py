"""Keeps batches in a spool; whatever touches the disk runs in one thread, so that no event loop waits for it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from linkbound.client.batch_keeper import KeeperFullError, KeptBatch, PackedBatch
from linkbound.client.spool.directory import SpoolDirectory, SpoolFullError
from linkbound.client.spool.leftovers import SpoolContent
from linkbound.client.spool.options import Spool
from linkbound.client.spool.segment import StoredBatch
from linkbound.domain.errors import FailedPreconditionError
from linkbound.domain.words import counted

T = TypeVar("T")
_log = logging.getLogger(__name__)


class SpoolKeeper:
    """A `BatchKeeper` over a spool; `open` makes one."""

    def __init__(self, directory: SpoolDirectory, thread: ThreadPoolExecutor, sync_seconds: float | None) -> None:
        self._directory = directory
        self._thread = thread
        self._sync_seconds = sync_seconds
        self._syncing: asyncio.Task[None] | None = None
        self.is_settled = False
        self.is_blank = True
        self.last_number = 0
        self.first_kept_number = 0
        self.appended_row_count = directory.appended_row_count
        self._look()

    @classmethod
    async def open(cls, spool: Spool, run: str, writer_id: str, opening: bytes) -> SpoolKeeper:
        """Open the spool of a writer and tell the log what an earlier process left in it.

        Raises UnavailableError (SPOOL_LOCKED) and FailedPreconditionError (SPOOL_UNUSABLE).
        """
        thread = ThreadPoolExecutor(1, thread_name_prefix="linkbound-spool")
        try:
            directory = await _in_thread(thread, lambda: SpoolDirectory(spool, run, writer_id, opening))
        except BaseException:
            thread.shutdown(wait=False)
            raise
        _tell(directory)
        return cls(directory, thread, spool.sync_seconds)

    async def settle(self, committed_number: int) -> int:
        """Number what is kept, on the disk before this returns."""
        skipped_count = await self._run(lambda: self._directory.settle(committed_number))
        if skipped_count and self._directory.content.batch_count:
            _log.warning(
                "the spool %s is behind its writer: the service holds %s that it does not know of, up to number %d;"
                " what follows is numbered behind them",
                self._directory.path,
                counted(skipped_count, "batch", "batches"),
                committed_number,
            )
        return skipped_count

    async def append(self, batch: PackedBatch, delivered_number: int) -> None:
        """Keep a batch."""
        try:
            await self._run(lambda: self._append(batch, delivered_number))
        except SpoolFullError:
            raise KeeperFullError from None
        self.appended_row_count += batch.row_count
        if self._sync_seconds and self._syncing is None:
            self._syncing = asyncio.create_task(self._sync_later(self._sync_seconds))

    async def read(self, number: int) -> KeptBatch:
        """The batch to send under `number`."""
        return await self._run(lambda: self._read(number))

    async def first(self) -> KeptBatch:
        """The first batch that can be given back, whatever its number."""
        return await self._run(self._first)

    async def opening_of(self, number: int) -> bytes:
        """What the batch belongs to."""
        return await self._run(lambda: self._directory.opening_of(self._index_of(number)))

    async def rows_up_to(self, number: int) -> int:
        """How many rows those of batches up to `number` are."""
        return await self._run(lambda: self._directory.rows_up_to(self._directory.numbering.last_index_up_to(number)))

    async def release(self, number: int) -> None:
        """Remove files that hold batches up to `number` alone."""
        await self._run(lambda: self._directory.release(self._directory.numbering.last_index_up_to(number)))

    async def close_gap(self, number: int) -> None:
        """Leave out the batch with this number: the next one takes it. None from `number` on may ever be stored."""
        await self._run(lambda: self._close_gap(number))

    async def close(self, delivered_number: int) -> None:
        """Put everything on the disk and let go of it. Up to `delivered_number` the service holds it."""
        if self._syncing is not None:
            self._syncing.cancel()
            await asyncio.gather(self._syncing, return_exceptions=True)
        try:
            await _in_thread(self._thread, lambda: self._close(delivered_number))
        finally:
            self._thread.shutdown(wait=False)

    async def _run(self, work: Callable[[], T]) -> T:
        """What `work` returns; the properties tell what it changed."""
        return await _in_thread(self._thread, lambda: self._looking_after(work))

    def _looking_after(self, work: Callable[[], T]) -> T:
        try:
            return work()
        finally:
            self._look()

    def _look(self) -> None:
        directory = self._directory
        numbering = directory.numbering
        self.is_settled = numbering.is_settled
        self.is_blank = directory.next_index == directory.first_index
        self.last_number = numbering.number_of(directory.next_index) - 1 if self.is_settled else 0
        self.first_kept_number = self._first_kept_number()

    def _first_kept_number(self) -> int:
        directory = self._directory
        numbering = directory.numbering
        if numbering.unsettled_from is None or directory.first_index < numbering.unsettled_from:
            return numbering.first_number(directory.first_index)
        # Nothing is kept that was ever sent: the next number that a spool with a past knows of, if it has one.
        return numbering.settled_number + 1 if numbering.ranges else 0

    def _append(self, batch: PackedBatch, delivered_number: int) -> None:
        numbering = self._directory.numbering
        delivered_index = numbering.last_index_up_to(delivered_number)
        if numbering.unsettled_from is not None:
            delivered_index = min(delivered_index, numbering.unsettled_from - 1)
        self._directory.append(batch.kind, batch.row_count, batch.payload, delivered_index)

    def _close(self, delivered_number: int) -> None:
        numbering = self._directory.numbering
        self._directory.close(numbering.last_index_up_to(delivered_number) if numbering.is_settled else 0)

    def _read(self, number: int) -> KeptBatch:
        directory = self._directory
        index = directory.numbering.index_of(number)
        if index is None:
            return KeptBatch(number=number, opening=directory.opening_of(self._index_of(number)))
        stored = directory.read(index)
        if stored is not None:
            return _kept(number, stored)
        row_count = directory.rows_up_to(index) - directory.rows_up_to(index - 1)
        return KeptBatch(number=number, row_count=row_count, opening=directory.opening_of(index))

    def _close_gap(self, number: int) -> None:
        index = self._directory.numbering.index_of(number)
        if index is not None:
            self._directory.close_gap(index)

    def _first(self) -> KeptBatch:
        directory = self._directory
        for index in range(directory.first_index, directory.next_index):
            stored = directory.read(index)
            if stored is not None:
                return _kept(0, stored)
        return KeptBatch(number=0, opening=directory.opening_of(directory.next_index))

    def _index_of(self, number: int) -> int:
        """The index of the batch, or of the next one where the numbers jump over it."""
        return self._directory.numbering.last_index_up_to(number - 1) + 1

    async def _sync_later(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        self._syncing = None
        try:
            await self._run(self._directory.sync)
        except FailedPreconditionError as error:
            _log.error("%s; a loss of power may take what was written since", error.message)


def _kept(number: int, stored: StoredBatch) -> KeptBatch:
    return KeptBatch(
        number=number, kind=stored.kind, row_count=stored.row_count, payload=stored.payload, opening=stored.opening
    )


async def _in_thread(thread: ThreadPoolExecutor, work: Callable[[], T]) -> T:
    try:
        return await asyncio.get_running_loop().run_in_executor(thread, work)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise FailedPreconditionError(
            f"the spool cannot be used: {where}{error.strerror}", reason="SPOOL_UNUSABLE"
        ) from error


def _tell(directory: SpoolDirectory) -> None:
    """Tell the log what was found, where there is anything to tell."""
    content: SpoolContent = directory.content
    if content.batch_count:
        _log.info(
            "the spool %s holds %s of an earlier process, with %s",
            directory.path,
            counted(content.batch_count, "batch", "batches"),
            counted(content.row_count, "row"),
        )
    if content.damaged_batch_count or content.damaged_file_count or content.cut_bytes:
        _log.warning(
            "the spool %s was damaged: %s cannot be read, %s set aside, %s cut from its end",
            directory.path,
            counted(content.damaged_batch_count, "batch", "batches"),
            counted(content.damaged_file_count, "file"),
            counted(content.cut_bytes, "byte"),
        )
