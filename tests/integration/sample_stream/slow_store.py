"""A store whose commits happen when the test says so, behind the real stream."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from functools import partial
from typing import Any

from ingest_service.service import RefusedBatch
from ingest_service.transport.ingest_servicer import IngestServicer
from ingest_service.transport.names import INGEST_SERVICE
from ingest_service.transport.sample_stream import StreamTiming
from ingest_service.transport.store_threads import StoreThreads
from linkbound.domain.errors import Error
from linkbound.domain.samples import BatchOutcome, OpenStreamRequest, SampleBatch, StreamLimits
from linkbound.ingest.v1.ingest_service_pb2_grpc import add_IngestServiceServicer_to_server
from serving.builder import ServiceBinding
from tests.integration.servers import PATIENCE_SECONDS, service_server


class SlowStore:
    """A store whose commits happen when the test says so."""

    def __init__(self, max_in_flight_batches: int) -> None:
        self.committed_sequence_number = 0
        self.limits = StreamLimits(max_in_flight_batches=max_in_flight_batches, max_batch_bytes=2**20)
        self.submitted: list[tuple[int, Future[BatchOutcome]]] = []
        self.refusals: list[Error] = []
        self.refused: list[RefusedBatch] = []
        self.thread_names: list[str] = []
        self.closed = threading.Event()
        self._submitted = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def open_stream(self, _request: OpenStreamRequest) -> SlowStore:
        return self

    def submit(self, batch: SampleBatch) -> Future[BatchOutcome]:
        if self.refusals:
            raise self.refusals.pop(0)
        outcome: Future[BatchOutcome] = Future()
        self.thread_names.append(threading.current_thread().name)
        self.submitted.append((batch.sequence_number, outcome))
        self._loop.call_soon_threadsafe(self._submitted.set)
        return outcome

    def refuse(self, batch: RefusedBatch) -> Future[BatchOutcome]:
        outcome: Future[BatchOutcome] = Future()
        self.submitted.append((batch.sequence_number, outcome))
        self.refused.append(batch)
        self._loop.call_soon_threadsafe(self._submitted.set)
        return outcome

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
