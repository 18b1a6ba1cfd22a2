import gc
import signal
import threading

import pytest

from linkbound.client.closing import Closing
from linkbound.client.sample_writer import SampleWriter
from linkbound.domain.errors import FailedPreconditionError, UnavailableError
from tests.unit.client.memory_service import MemoryService, break_off, break_off_after_storing, once
from tests.unit.client.test_aio_sample_writer import REQUEST, options, samples

THREAD_NAME = "linkbound-sample-writer"


def running_writer_threads() -> int:
    return sum(thread.name == THREAD_NAME for thread in threading.enumerate())


def test_it_writes_resumes_and_flushes_like_the_asyncio_writer() -> None:
    service = MemoryService(committed=2, faults=[once(break_off, at=3), once(break_off_after_storing, at=4)])
    with SampleWriter(service, REQUEST, options(60), Closing()) as writer:
        assert writer.committed == 2
        for value in range(4):
            writer.write(samples(value))
        writer.flush()
        assert writer.committed == 6
    assert service.stored_numbers == [3, 4, 5, 6]
    assert (writer.rejected, writer.rejection_message) == (0, "")


def test_its_thread_ends_with_the_block() -> None:
    with SampleWriter(MemoryService(), REQUEST, options(60), Closing()):
        assert running_writer_threads() == 1
    assert running_writer_threads() == 0


def test_its_thread_ends_if_entering_fails() -> None:
    service = MemoryService(connect_errors=[UnavailableError("refused")] * 1000)
    with pytest.raises(UnavailableError), SampleWriter(service, REQUEST, options(0.2), Closing()):
        pytest.fail("the block must not run")
    assert running_writer_threads() == 0


def test_undelivered_samples_raise_at_exit() -> None:
    service = MemoryService(faults=[lambda _stream, _batch: True])
    with pytest.raises(UnavailableError) as caught, SampleWriter(service, REQUEST, options(0.2), Closing()) as writer:
        writer.write(samples(1, count=5))
    assert caught.value.metadata["undeliveredSampleCount"] == "5"


def test_an_error_of_the_block_comes_first() -> None:
    service = MemoryService()

    def write_and_fail() -> None:
        with SampleWriter(service, REQUEST, options(60), Closing()) as writer:
            writer.write(samples(1))
            raise KeyError("of the block")

    with pytest.raises(KeyError):
        write_and_fail()
    assert service.stored_numbers == [1]


def test_it_is_used_within_its_block_only() -> None:
    writer = SampleWriter(MemoryService(), REQUEST, options(60), Closing())
    with pytest.raises(FailedPreconditionError):
        writer.write(samples(1))
    with writer:
        pass
    for use in (lambda: writer.write(samples(1)), writer.flush, writer.__enter__):
        with pytest.raises(FailedPreconditionError) as caught:
            use()
        assert caught.value.reason == "WRITER_CLOSED"


def interrupt() -> None:
    """What Ctrl-C does."""
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def test_an_interrupt_of_leaving_tears_nothing_down_alive(caplog: pytest.LogCaptureFixture) -> None:
    service = MemoryService(faults=[lambda _stream, _batch: True])
    interrupter = threading.Timer(0.2, interrupt)

    def write_and_leave() -> None:
        with SampleWriter(service, REQUEST, options(None), Closing()) as writer:
            writer.write(samples(1))
            interrupter.start()

    with pytest.raises(KeyboardInterrupt):
        write_and_leave()
    gc.collect()
    assert service.closed_count == 1
    assert all(stream.is_closed for stream in service.streams)
    assert running_writer_threads() == 0
    assert caplog.records == []


def test_an_interrupt_of_entering_tears_nothing_down_alive(caplog: pytest.LogCaptureFixture) -> None:
    service = MemoryService(connect_errors=[UnavailableError("refused")] * 1000)
    threading.Timer(0.2, interrupt).start()
    with pytest.raises(KeyboardInterrupt), SampleWriter(service, REQUEST, options(None), Closing()):
        pytest.fail("the block must not run")
    gc.collect()
    assert service.closed_count == 1
    assert running_writer_threads() == 0
    assert caplog.records == []
