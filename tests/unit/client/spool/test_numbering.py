import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkbound.client.spool.numbering import (
    Numbering,
    NumberRange,
    SpoolState,
    state_from_text,
    state_to_text,
)


def numbers(numbering: Numbering, *indexes: int) -> list[int]:
    return [numbering.number_of(index) for index in indexes]


def test_a_new_writer_begins_with_one() -> None:
    numbering = Numbering()
    assert not numbering.is_settled
    assert numbering.settle(0) == 0
    assert numbers(numbering, 1, 2, 3) == [1, 2, 3]


def test_a_new_spool_of_an_old_writer_goes_on_behind_what_is_stored() -> None:
    numbering = Numbering()
    assert numbering.settle(7) == 7
    assert numbers(numbering, 1, 2) == [8, 9]
    assert [numbering.index_of(number) for number in (7, 8, 9)] == [None, 1, 2]


def test_a_process_that_lost_nothing_goes_on_where_the_last_one_ended() -> None:
    numbering = Numbering()
    numbering.settle(0)
    numbering.begin(10)
    assert (numbering.is_settled, numbering.settled_number) == (False, 9)
    # Fewer are stored than were written: what is missing is kept, or was released for good.
    assert numbering.settle(5) == 0
    assert numbers(numbering, 5, 9, 10) == [5, 9, 10]
    assert numbering.ranges == [NumberRange(1, 0)]


def test_what_was_sent_and_lost_with_the_power_keeps_its_number() -> None:
    numbering = Numbering()
    numbering.settle(0)
    # 10 to 12 were sent and are stored, and the spool lost them: the next batch is not number 10.
    numbering.begin(10)
    assert numbering.settle(12) == 3
    assert numbers(numbering, 9, 10, 11) == [9, 13, 14]
    assert [numbering.index_of(number) for number in (9, 10, 12, 13)] == [9, None, None, 10]
    assert [numbering.last_index_up_to(number) for number in (9, 10, 12, 13)] == [9, 9, 9, 10]


def test_a_process_that_ended_before_it_was_settled_leaves_its_batches_without_numbers() -> None:
    numbering = Numbering()
    numbering.settle(0)
    numbering.begin(10)
    numbering.begin(12)
    assert numbering.unsettled_from == 10
    numbering.settle(20)
    assert numbers(numbering, 9, 10, 11, 12) == [9, 21, 22, 23]


def test_indexes_that_were_lost_with_the_power_are_used_again_without_a_number() -> None:
    numbering = Numbering()
    numbering.begin(1)
    numbering.begin(8)
    assert numbering.unsettled_from == 1
    numbering.settle(0)
    numbering.begin(10)
    numbering.begin(6)
    assert numbering.unsettled_from == 6
    assert numbering.settle(9) == 4
    assert numbers(numbering, 5, 6) == [5, 10]


def test_a_batch_that_is_left_out_gives_its_number_to_the_next() -> None:
    numbering = Numbering()
    numbering.settle(0)
    numbering.close_gap(3)
    assert numbers(numbering, 2, 4, 5) == [2, 3, 4]
    assert [numbering.index_of(number) for number in (2, 3, 4)] == [2, 4, 5]
    numbering.close_gap(4)
    assert numbers(numbering, 2, 5, 6) == [2, 3, 4]
    # Left out at the very end, a batch has no number at all.
    assert numbering.number_of(6) - 1 == 3
    numbering.begin(7)
    numbering.settle(8)
    numbering.close_gap(5)
    assert numbers(numbering, 2, 6, 7) == [2, 3, 8]


def test_what_is_not_kept_any_more_is_forgotten() -> None:
    numbering = Numbering([NumberRange(1, 0), NumberRange(5, 2), NumberRange(9, 3)], None)
    numbering.forget_before(4)
    assert len(numbering.ranges) == 3
    numbering.forget_before(9)
    assert numbering.ranges == [NumberRange(9, 3)]
    assert numbering.number_of(9) == 12


def test_a_numbering_is_settled_once() -> None:
    numbering = Numbering()
    numbering.settle(0)
    with pytest.raises(ValueError, match="has a number"):
        numbering.settle(1)
    with pytest.raises(ValueError, match="has a number"):
        _ = numbering.settled_number


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 8)), min_size=1, max_size=8))
def test_whatever_processes_lose_no_number_stands_for_two_batches(processes: list[tuple[int, int]]) -> None:
    """Each process writes some batches; before it, as many numbers as its second figure were stored and lost."""
    numbering, next_index, last_number = Numbering(), 1, 0
    given_numbers: list[int] = []
    for batch_count, lost_count in processes:
        numbering.begin(next_index)
        numbering.settle(last_number + lost_count)
        given_numbers += [numbering.number_of(next_index + i) for i in range(batch_count)]
        next_index += batch_count
        last_number = given_numbers[-1]
        assert given_numbers[-batch_count] > last_number - batch_count
    assert given_numbers == sorted(set(given_numbers))
    assert [numbering.index_of(number) for number in given_numbers] == list(range(1, next_index))
    assert [numbering.last_index_up_to(number) for number in given_numbers] == list(range(1, next_index))
    state = SpoolState(numbering=numbering, next_index=next_index)
    assert state_from_text(state_to_text(state)) == state
