"""A store whose commits happen when the test says so, behind the real stream."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from functools import partial
from typing import Any

from attrs import frozen

from ingest_service.service import RefusedBatch
from ingest_service.stream_session import StreamListener
from ingest_service.transport.ingest_servicer import IngestServicer
from ingest_service.transport.names import INGEST_SERVICE
from ingest_service.transport.sample_stream import StreamTiming
from ingest_service.transport.store_threads import StoreThreads
from linkbound.domain.errors import Error
from linkbound.domain.samples import BatchOutcome, OpenStreamRequest, SampleBatch, StreamLimits, StreamStart
from linkbound.ingest.v1.ingest_service_pb2_grpc import add_IngestServiceServicer_to_server
from serving.builder import ServiceBinding
from tests.integration.servers import PATIENCE_SECONDS, service_server


@frozen
class Prepared:
    """A batch on its way to the store."""

    sequence_number: int
    sample_count: int


class SlowStore:
    """A store whose commits happen when the test says so."""

    def __init__(self, max_in_flight_batches: int) -> None:
        limits = StreamLimits(max_in_flight_batches=max_in_flight_batches, max_batch_bytes=2**20)
        self.start = StreamStart(committed_sequence_number=0, limits=limits)
        self.lost_append_count = 0
        self.is_crowded = False
        self.listener: StreamListener | None = None
        self.room: Future[None] = Future()
        self.submitted: list[tuple[int, Future[BatchOutcome]]] = []
        self.refusals: list[Error] = []
        self.refused_batches: list[RefusedBatch] = []
        self.thread_names: list[str] = []
        self.closed = threading.Event()
        self._submitted = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def open_stream(self, _request: OpenStreamRequest) -> SlowStore:
        return self

    def listen(self, listener: StreamListener) -> None:
        self.listener = listener

    def prepared(self, batch: SampleBatch) -> Prepared:
        self.thread_names.append(threading.current_thread().name)
        return Prepared(batch.sequence_number, batch.sample_count)

    def refused(self, batch: RefusedBatch) -> Prepared:
        self.refused_batches.append(batch)
        return Prepared(batch.sequence_number, 0)

    def queue(self, prepared: Prepared) -> Future[BatchOutcome]:
        if self.refusals:
            raise self.refusals.pop(0)
        outcome: Future[BatchOutcome] = Future()
        self.submitted.append((prepared.sequence_number, outcome))
        self._loop.call_soon_threadsafe(self._submitted.set)
        return outcome

    def when_room(self) -> Future[None]:
        return self.room

    async def holds(self, count: int) -> None:
        """Wait until `count` batches came."""
        while len(self.submitted) < count:
            self._submitted.clear()
            async with asyncio.timeout(PATIENCE_SECONDS):
                await self._submitted.wait()

    def close(self) -> None:
        self.closed.set()

    def commit(self, number: int) -> None:
        (outcome,) = [future for submitted, future in self.submitted if submitted == number]
        outcome.set_result(BatchOutcome(committed_sequence_number=number))

    def fail(self, number: int, error: Error) -> None:
        (outcome,) = [future for submitted, future in self.submitted if submitted == number]
        outcome.set_exception(error)

    @property
    def numbers(self) -> list[int]:
        return [number for number, _ in self.submitted]


def stream_server(store: Any, timing: StreamTiming) -> Any:
    servicer = IngestServicer(store, StoreThreads(), asyncio.Event(), lambda: timing)
    return service_server(ServiceBinding(INGEST_SERVICE, partial(add_IngestServiceServicer_to_server, servicer)))


QUICK_ACKS = StreamTiming(ack_interval_seconds=0.01)
