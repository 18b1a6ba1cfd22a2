import asyncio
import sys
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Self, cast

import platformdirs
import pytest

from ingest_service.service import Ingest
from ingest_service.stream_session import StreamListener
from linkbound import (
    AbortedError,
    DeadlineExceededError,
    Error,
    EstimatorClient,
    FailedPreconditionError,
    IngestClient,
    InvalidArgumentError,
    OutOfRangeError,
    PrefillWorkload,
    ResourceExhaustedError,
    SweepAxis,
    SweepVariable,
    TrainingStep,
    UnavailableError,
    Violation,
)
from linkbound.client.local.blocking import LocalBackend, default_data_directory
from linkbound.client.local.samples import LocalConnector
from linkbound.client.operations import APPEND
from linkbound.client.sample_stream import BatchRefusal
from linkbound.convert.sample_payload import NO_SAMPLES
from linkbound.domain.records import AppendRequest
from linkbound.domain.samples import BatchOutcome, OpenStreamRequest, SampleBatch
from tests.unit.client.test_aio_sample_writer import REQUEST

STEPS = (TrainingStep(subject="s", node_count=1, step_seconds=1.0),)


class Slow:
    """An application object whose appends never become durable."""

    def append(self, request: AppendRequest) -> object:
        return Future()


def test_nothing_is_opened_before_the_first_call(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    with IngestClient(data_directory=directory) as client:
        assert not directory.exists()
        assert list(client.list_runs()) == []
        assert (directory / "linkbound.duckdb").exists()


def test_closing_stores_what_was_taken_in_and_frees_the_store(tmp_path: Path) -> None:
    with IngestClient(data_directory=tmp_path) as client:
        client.create_run("r1")
        client.append("r1", writer_id="w", sequence_number=1, records=STEPS)
    with IngestClient(data_directory=str(tmp_path)) as client:
        assert client.get_run("r1").row_counts.training_step_count == 1


def test_a_store_that_is_open_elsewhere_is_unavailable(tmp_path: Path) -> None:
    with IngestClient(data_directory=tmp_path) as first, IngestClient(data_directory=tmp_path) as second:
        first.create_run("r1")
        with pytest.raises(UnavailableError) as caught:
            second.get_run("r1")
        assert caught.value.reason == "STORE_LOCKED"


def test_an_append_that_is_not_durable_in_time_exceeds_its_deadline() -> None:
    request = AppendRequest(run="r1", writer_id="w", sequence_number=1, records=STEPS)
    with pytest.raises(DeadlineExceededError, match="append"):
        LocalBackend(Slow).call(APPEND, request, 0.05)


def test_the_default_directory_is_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(platformdirs, "user_data_path", lambda name: tmp_path / name)
    assert default_data_directory() == tmp_path / "linkbound"
    with IngestClient() as client:
        client.create_run("r1")
    assert (tmp_path / "linkbound" / "linkbound.duckdb").exists()


def test_without_the_services_extra_the_missing_module_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    for name in [name for name in sys.modules if name == "duckdb" or name.startswith("ingest_service")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with IngestClient() as client, pytest.raises(FailedPreconditionError, match=r"linkbound\[services\]") as caught:
        client.get_run("r1")
    assert (caught.value.reason, caught.value.metadata) == ("SERVICES_EXTRA_MISSING", {"module": "duckdb"})


def test_a_closed_backend_opens_nothing_again() -> None:
    backend = LocalBackend(Slow)
    backend.application()
    backend.close()
    for use in (backend.application, lambda: backend.wait_until_ready(None)):
        with pytest.raises(FailedPreconditionError) as caught:
            use()
        assert caught.value.reason == "CLIENT_CLOSED"


class SlowOpening:
    """An ingest service whose streams open when they are let."""

    def __init__(self) -> None:
        self.is_opening = threading.Event()
        self.may_open = threading.Event()
        self.closed_count = 0

    def open_stream(self, request: OpenStreamRequest) -> Self:
        self.is_opening.set()
        self.may_open.wait()
        return self

    def close(self) -> None:
        self.closed_count += 1

    def listen(self, listener: StreamListener) -> None:
        """Nothing happens."""


async def test_a_stream_that_opens_after_the_timeout_is_closed() -> None:
    ingest = SlowOpening()
    connector = LocalConnector(lambda: cast("Ingest", ingest))
    connecting = asyncio.create_task(connector.connect(REQUEST))
    await asyncio.to_thread(ingest.is_opening.wait)
    connecting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await connecting
    assert ingest.closed_count == 0
    ingest.may_open.set()
    await asyncio.get_running_loop().shutdown_default_executor()
    assert ingest.closed_count == 1


async def test_a_stream_that_opened_just_before_the_timeout_is_closed() -> None:
    ingest = SlowOpening()
    ingest.may_open.set()
    connector = LocalConnector(lambda: cast("Ingest", ingest))
    connecting = asyncio.create_task(connector.connect(REQUEST))
    await asyncio.sleep(0)
    # The thread is done with it, the event loop has not heard of it.
    assert ingest.is_opening.wait(30)
    connecting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await connecting
    await asyncio.get_running_loop().shutdown_default_executor()
    assert ingest.closed_count == 1


def full(retry_delay_seconds: float | None) -> ResourceExhaustedError:
    return ResourceExhaustedError("full", retry_delay_seconds=retry_delay_seconds)


@pytest.mark.parametrize(
    ("error", "stays"),
    [
        (InvalidArgumentError([Violation("columns", "odd")]), True),
        (OutOfRangeError("a gap"), True),
        (AbortedError("other content", reason="WRITER_CONFLICT"), True),
        (AbortedError("anything else"), False),
        (full(0.1), True),
        (full(None), False),
        (FailedPreconditionError("sealed", reason="RUN_SEALED"), False),
        (UnavailableError("closed"), False),
    ],
)
async def test_what_concerns_one_batch_does_not_end_the_stream(error: Error, *, stays: bool) -> None:
    class Refusing(SlowOpening):
        def submit(self, _batch: SampleBatch) -> Future[BatchOutcome]:
            raise error

    ingest = Refusing()
    ingest.may_open.set()
    stream = await LocalConnector(lambda: cast("Ingest", ingest)).connect(REQUEST)
    await stream.send(1, NO_SAMPLES)
    if stays:
        assert await stream.receive() == BatchRefusal(1, error)
    else:
        with pytest.raises(type(error)):
            await stream.receive()


def test_a_sweep_without_numpy_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("estimator_service.sweep")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "numpy", None)
    axis = SweepAxis(variable=SweepVariable.PROMPT_TOKENS, values=(1000,))
    workload = PrefillWorkload(model="glm-5.3", tensor_parallel_size=8, prompt_tokens=1)
    with EstimatorClient("local:") as client:
        sweep = client.stream_sweep(workload=workload, link="200g", axes=[axis])
        with pytest.raises(FailedPreconditionError, match=r"pip install 'linkbound\[services\]'") as caught:
            next(sweep)
    assert (caught.value.reason, caught.value.metadata) == ("SWEEPS_UNAVAILABLE", {"module": "numpy"})
