"""What every writer is made of: keeping in one task, delivering in another, and whoever waits for either."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from linkbound.client.batch_keeper import BatchKeeper, MemoryKeeper
from linkbound.client.changes import Changes
from linkbound.client.closing import Closing, closed_error
from linkbound.client.keeping import ROOM_POLL_SECONDS, Keeping
from linkbound.client.spool_keeper import SpoolKeeper
from linkbound.client.writer_options import WriterOptions
from linkbound.client.writer_parts import Delivery, Patience, RowSource, WriterRole
from linkbound.domain.errors import Error, FailedPreconditionError, ResourceExhaustedError, UnavailableError


class WriterCore:
    """Keeps batches and has them delivered, from `enter` to `leave`."""

    def __init__(
        self,
        role: WriterRole,
        options: WriterOptions,
        closing: Closing,
        source: RowSource,
        start_delivery: Callable[[BatchKeeper, Changes, Patience], Delivery],
        close_connection: Callable[[], Awaitable[None]],
    ) -> None:
        self._role = role
        self._options = options
        self._closing = closing
        self._source = source
        self._start_delivery = start_delivery
        self._close_connection = close_connection
        self._changes = Changes()
        self.keeping = Keeping(role, options.spool, self._changes)
        """What was passed on and is not kept yet."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._keeper: BatchKeeper | None = None
        self._delivery: Delivery | None = None
        self._delivering: asyncio.Task[None] | None = None
        self._keeping_task: asyncio.Task[None] | None = None
        self._failure: Exception | None = None
        self._is_leaving = False
        self._is_stopping = False

    @property
    def pending_row_count(self) -> int:
        """Rows that were written and are not known to be stored."""
        return self._unkept_row_count + (0 if self._delivery is None else self._delivery.undelivered_row_count)

    # From the first to the last

    async def enter(self) -> None:
        """Start; without a spool, return once the service answered."""
        if self._loop is not None:
            raise FailedPreconditionError("a writer is entered once", reason="WRITER_CLOSED")
        self._loop = asyncio.get_running_loop()
        self._closing.add(self._abandon_from_any_thread)
        try:
            self._keeper = await self._open_keeper()
            self._delivery = self._start(self._keeper)
            if self._options.spool is None:
                await self._wait_until(self._has_opened, self._wait_for_change)
        except BaseException:
            await self._stop()
            raise

    async def leave(self, error: BaseException | None) -> None:
        """Wait until everything is stored, and end. `error` is that of the block, which comes first."""
        try:
            if self._failure is None:
                await self._wait_for_the_end()
        except Error as failure:
            self._fail(failure)
        finally:
            await self._stop()
        self._tell_lost()
        if self._failure is None or (self._is_delivered and not self._unkept_row_count):
            return
        if error is None:
            raise self._failure
        if error is not self._failure:
            error.add_note(f"{self._undelivered}: {self._failure}")

    # For who writes

    async def wait_for_room(self) -> None:
        """Return once more may be passed on. Raises the error that ended the writer."""
        await self._wait_until(lambda: self.keeping.has_room, self._wait_for_change_or_room)

    async def wait_until_kept(self, taken_count: int) -> None:
        """Return once so many of the batches that were passed on are kept, or cannot be while there is no room."""
        await self._wait_until(lambda: self.keeping.has_kept(taken_count), self._wait_for_change)

    async def wait_until_delivered(self) -> None:
        """Return once everything is stored. Raises the error that ended the writer."""
        self._source.pass_on()
        await self._wait_until(lambda: self.keeping.is_done and self._is_delivered, self._progress_timer())

    # Waiting

    async def _wait_until(self, is_met: Callable[[], bool], wait: Callable[[asyncio.Event], Awaitable[object]]) -> None:
        if self._loop is None or self._is_leaving:
            raise not_open_error()
        while True:
            changed = self._changes.following
            if self._failure is not None:
                raise self._failure
            if is_met():
                return
            if self._delivering is not None and self._delivering.done():
                raise not_open_error()
            await wait(changed)

    async def _wait_for_change(self, changed: asyncio.Event) -> None:
        await changed.wait()

    async def _wait_for_change_or_room(self, changed: asyncio.Event) -> None:
        timeout_seconds = None if self._options.spool is None else self._options.timeout_seconds
        try:
            async with asyncio.timeout(timeout_seconds):
                await changed.wait()
        except TimeoutError:
            raise ResourceExhaustedError(
                f"the spool of {self._role.name} is full, and got no room within {timeout_seconds:g} s",
                reason="SPOOL_FULL",
                retry_delay_seconds=ROOM_POLL_SECONDS,
            ) from None

    def _progress_timer(self) -> Callable[[asyncio.Event], Awaitable[object]]:
        """Waits for a change, with a spool as long as things move on: the delivery itself never gives up then."""
        begin_time = asyncio.get_running_loop().time()
        timeout_seconds, delivery = self._options.timeout_seconds, self._delivery
        if self._options.spool is None or timeout_seconds is None or delivery is None:
            return self._wait_for_change

        async def wait(changed: asyncio.Event) -> None:
            try:
                async with asyncio.timeout_at(max(begin_time, delivery.progress_time) + timeout_seconds):
                    await changed.wait()
            except TimeoutError:
                raise self._with_counts(_not_stored_error(timeout_seconds)) from None

        return wait

    def _has_opened(self) -> bool:
        return self._delivery is not None and self._delivery.has_opened

    @property
    def _is_delivered(self) -> bool:
        return self._delivery is None or self._delivery.is_delivered

    @property
    def _unkept_row_count(self) -> int:
        return self._source.row_count() + self.keeping.waiting_row_count

    # Starting and ending

    async def _open_keeper(self) -> BatchKeeper:
        if self._options.spool is None:
            return MemoryKeeper(self._role.opening)
        return await SpoolKeeper.open(self._options.spool, self._role.run, self._role.writer_id, self._role.opening)

    def _start(self, keeper: BatchKeeper) -> Delivery:
        patience = Patience(
            timeout_seconds=self._options.timeout_seconds, waits_out_faults=self._options.spool is not None
        )
        delivery = self._start_delivery(keeper, self._changes, patience)
        self._delivering = asyncio.create_task(self._guarded(delivery.run))
        self._keeping_task = asyncio.create_task(self._guarded(lambda: self.keeping.run(keeper, delivery)))
        for task in (self._delivering, self._keeping_task):
            task.add_done_callback(lambda _: self._changes.announce())
        return delivery

    async def _wait_for_the_end(self) -> None:
        """Wait until everything is stored. Raises UnavailableError where a spool is left with something in it."""
        self._source.pass_on()
        wait = self._progress_timer()
        self._is_leaving = True
        while self._delivering is not None and not self._delivering.done():
            if self.keeping.is_done and self._delivery is not None:
                self._delivery.end()
            await wait(self._changes.following)

    async def _stop(self) -> None:
        """End what runs. What was written before goes into the spool even where it cannot be delivered."""
        self._source.pass_on()
        self._is_leaving = self._is_stopping = True
        self._closing.remove(self._abandon_from_any_thread)
        self.keeping.stop()
        try:
            await _cancelled(self._delivering)
            if self._keeping_task is not None:
                await asyncio.wait([self._keeping_task])
        finally:
            try:
                if self._keeper is not None:
                    await self._keeper.close(0 if self._delivery is None else self._delivery.committed_number)
            finally:
                await self._close_connection()

    def _abandon_from_any_thread(self) -> None:
        if self._loop is None:
            return
        with contextlib.suppress(RuntimeError):
            if asyncio.get_running_loop() is self._loop:
                self._abandon()
                return
        # The loop is gone if the writer ended at the same moment.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._abandon)

    def _abandon(self) -> None:
        if self._delivering is None or not self._delivering.done():
            self._fail(closed_error())
        if self._delivering is not None:
            self._delivering.cancel()

    async def _guarded(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except asyncio.CancelledError:
            if self._is_stopping:
                raise
            # The client was closed, or its channel: gRPC then cancels every call.
            self._fail(closed_error())
        except Exception as error:
            self._fail(error)

    # What is told of it

    def _fail(self, error: Exception) -> None:
        if self._failure is None:
            self._failure = self._with_counts(error)
            self._changes.announce()

    def _with_counts(self, error: Exception) -> Exception:
        """`error` with what becomes of the rows that are not stored."""
        key = self._role.count_key("undelivered" if self._options.spool is None else "spooled")
        if isinstance(error, Error) and self.pending_row_count and key not in error.metadata:
            error.metadata[key] = str(self.pending_row_count)
            error.add_note(self._undelivered)
        return error

    def _tell_lost(self) -> None:
        """Add to the failure what did not even get into the spool."""
        lost_count = self._unkept_row_count
        if isinstance(self._failure, Error) and self._options.spool is not None and lost_count:
            self._failure.metadata[self._role.count_key("undelivered")] = str(lost_count)
            self._failure.metadata[self._role.count_key("spooled")] = str(self.pending_row_count - lost_count)
            self._failure.add_note(f"{self._role.were(lost_count)} not even spooled")

    @property
    def _undelivered(self) -> str:
        """What becomes of the rows that are not stored, in words."""
        count = self.pending_row_count
        spool = self._options.spool
        return f"{self._role.were(count)} not delivered" if spool is None else f"{self._role.stay(count)} in the spool"


async def _cancelled(task: asyncio.Task[None] | None) -> None:
    if task is not None and not task.done():
        task.cancel()
        await asyncio.wait([task])


def not_open_error() -> FailedPreconditionError:
    """The error of a writer that is used outside its block."""
    return FailedPreconditionError("the writer is not open", reason="WRITER_CLOSED")


def _not_stored_error(timeout_seconds: float) -> UnavailableError:
    return UnavailableError(f"the service stored nothing within {timeout_seconds:g} s", reason="NOT_DELIVERED")
