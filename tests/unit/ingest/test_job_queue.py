"""The queue before the writer thread: its limits, and the groups that are taken from it."""

import threading

import pytest

from ingest_service.core.append import Append, AppendKind
from ingest_service.store.append_committer import AppendRows
from ingest_service.store.job_queue import GATHERED_ROW_COUNT, AppendJob, Command, JobQueue, Nothing
from linkbound.domain.errors import ResourceExhaustedError, UnavailableError

MANY = 10**9


def job(row_count: int, byte_count: int, kind: AppendKind = AppendKind.STREAM) -> AppendJob:
    append = Append(run_id="r", writer_id="w", sequence_number=1, kind=kind, digest=b"")
    return AppendJob(AppendRows(append=append, rows=None, row_count=row_count), byte_count)


def filled(*jobs: AppendJob | Command[None]) -> JobQueue:
    queue = JobQueue(MANY, MANY)
    for queued in jobs:
        queue.put(queued)
    return queue


def group_sizes(queue: JobQueue, row_limit: int, byte_limit: int, group_count: int) -> list[int]:
    groups = [queue.take(row_limit, byte_limit) for _ in range(group_count)]
    return [len(group) for group in groups if isinstance(group, list)]


def assert_full(queue: JobQueue, refused: AppendJob) -> None:
    with pytest.raises(ResourceExhaustedError) as caught:
        queue.put(refused)
    assert caught.value.reason == "QUEUE_FULL"


def test_bytes_are_limited_where_no_rows_are_queued() -> None:
    queue = JobQueue(MANY, 100)
    queue.put(job(0, 60))
    assert_full(queue, job(0, 60))
    queue.put(job(0, 40))


def test_an_append_without_rows_counts_as_one() -> None:
    queue = JobQueue(2, MANY)
    queue.put(job(0, 1))
    queue.put(job(0, 1))
    assert_full(queue, job(0, 1))


@pytest.mark.parametrize(("rows", "size_bytes"), [(1000, 1), (1, 1000), (0, 1000)])
def test_one_append_is_let_in_however_large(rows: int, size_bytes: int) -> None:
    queue = JobQueue(10, 10)
    queue.put(Command(lambda: None))
    queue.put(job(rows, size_bytes))
    assert_full(queue, job(1, 1))


def test_what_was_taken_makes_room() -> None:
    queue = JobQueue(2, 100)
    for _ in range(3):
        queue.put(job(0, 60))
        assert group_sizes(queue, MANY, MANY, 1) == [1]


def test_a_group_is_bounded_by_bytes() -> None:
    assert group_sizes(filled(*[job(1, 40)] * 5), MANY, 100, 3) == [2, 2, 1]


def test_a_group_is_bounded_by_rows_and_counts_one_for_an_append_without_any() -> None:
    assert group_sizes(filled(*[job(0, 1)] * 5), 2, MANY, 3) == [2, 2, 1]
    assert group_sizes(filled(job(3, 1), job(1, 1), job(1, 1)), 4, MANY, 2) == [2, 1]


def test_a_group_holds_one_append_however_large() -> None:
    assert group_sizes(filled(job(9, 9), job(9, 9)), 1, 1, 2) == [1, 1]


def test_a_command_ends_a_group() -> None:
    queue = filled(job(1, 1), Command(lambda: None), job(1, 1))
    assert group_sizes(queue, MANY, MANY, 1) == [1]
    assert isinstance(queue.take(MANY, MANY), Command)
    assert group_sizes(queue, MANY, MANY, 1) == [1]


def test_who_waits_for_room_is_told_once_the_queue_is_half_empty() -> None:
    queue = JobQueue(10, MANY)
    for _ in range(10):
        queue.put(job(1, 1))
    room = queue.when_room()
    assert not room.done()
    assert group_sizes(queue, 4, MANY, 1) == [4]
    assert not room.done()
    assert group_sizes(queue, 1, MANY, 1) == [1]
    assert room.done()


def test_who_asks_for_room_where_there_is_some_is_told_at_once() -> None:
    assert JobQueue(10, MANY).when_room().done()


def test_a_queue_that_closes_lets_nobody_wait() -> None:
    queue = JobQueue(1, MANY)
    queue.put(job(1, 1))
    room = queue.when_room()
    queue.close(lambda: UnavailableError("closed"))
    assert room.done()
    assert group_sizes(queue, MANY, MANY, 1) == [1]
    assert queue.take(MANY, MANY) is Nothing.MORE


def test_work_is_waited_for_as_long_as_asked() -> None:
    assert JobQueue(MANY, MANY).take(MANY, MANY, wait_seconds=0.0) is Nothing.YET


def test_few_appends_wait_for_others_and_not_longer_than_asked() -> None:
    queue = filled(job(1, 1))
    taken = queue.take(MANY, MANY, gather_seconds=0.001)
    assert isinstance(taken, list)
    assert len(taken) == 1


@pytest.mark.parametrize(
    "jobs",
    [
        [job(GATHERED_ROW_COUNT, 1)],
        [job(1, 1)] * GATHERED_ROW_COUNT,
        [job(1, 1), Command(lambda: None)],
        [job(1, 1), job(1, 1, AppendKind.UNARY)],
    ],
)
def test_enough_batches_a_command_and_records_are_not_kept_waiting(jobs: list[AppendJob | Command[None]]) -> None:
    # A wait as long as this one would never end.
    assert filled(*jobs).take(MANY, MANY, gather_seconds=threading.TIMEOUT_MAX)


def test_what_comes_while_appends_are_gathered_ends_the_wait_once_it_is_enough() -> None:
    queue = filled(job(1, 1))
    taken: list[object] = []
    taking = threading.Thread(target=lambda: taken.append(queue.take(MANY, MANY, gather_seconds=threading.TIMEOUT_MAX)))
    taking.start()
    queue.put(job(1, 1))
    queue.put(job(GATHERED_ROW_COUNT, 1))
    taking.join(60)
    assert not taking.is_alive()
    assert isinstance(taken[0], list)
    assert len(taken[0]) == 3
