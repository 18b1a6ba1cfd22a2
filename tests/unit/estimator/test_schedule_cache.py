"""The replay of a scheduler: blocks of the KV cache, preemption, and requests that would never finish."""

from typing import Any

import pytest

from estimator_service.core.schedule import replay
from linkbound.domain.engine import EngineRequest, SchedulerSettings
from linkbound.domain.errors import InvalidArgumentError, Violation
from tests.unit.estimator.schedules import asked, outcomes, scheduled, settings, shown, timed


def cache(blocks: int, block_tokens: int = 10, **changes: Any) -> SchedulerSettings:
    """Settings with so many blocks that requests can have, beside the engine's own."""
    return settings(kv_block_count=blocks + 1, kv_block_tokens=block_tokens, **changes)


def violations(scheduler: SchedulerSettings, requests: tuple[EngineRequest, ...]) -> list[Violation]:
    with pytest.raises(InvalidArgumentError) as caught:
        list(replay(scheduler, requests))
    return list(caught.value.field_violations)


def test_a_request_is_admitted_when_blocks_for_its_whole_prompt_are_free() -> None:
    # The first holds 4 of 10 blocks; the second needs 7 and waits although a first chunk of it would fit.
    found = scheduled(cache(10, max_num_batched_tokens=50), asked((40, 2), (70, 1)))
    assert found == [(((0, 40),), 1), (((0, 1),), 1), (((1, 50),), 1), (((1, 20),), 1)]


def test_blocks_that_are_just_enough_are_enough() -> None:
    found = scheduled(cache(10, max_num_batched_tokens=200), asked((39, 2), (60, 1)))
    assert found[0] == (((0, 39), (1, 60)), 1)


def test_who_waits_first_holds_up_who_would_fit() -> None:
    found = scheduled(cache(10, max_num_batched_tokens=50), asked((40, 3), (70, 1), (10, 1)))
    assert found[:2] == [(((0, 40),), 1), (((0, 1),), 2)]


def test_the_last_admitted_is_preempted_and_begins_anew_with_what_it_generated() -> None:
    # Both hold 2 blocks of 4 until one needs a third, after 1 + 10 tokens.
    requests = asked((10, 15), (10, 15))
    found = list(replay(cache(4), requests))
    assert shown(found) == [
        (((0, 10), (1, 10)), 1),
        (((0, 1), (1, 1)), 10),
        (((0, 1),), 4),
        (((1, 21),), 1),
        (((1, 1),), 3),
    ]
    assert [entry.preempted for entry in found if entry.preempted] == [(1,)]
    assert [one.preemption_count for one in outcomes(cache(4), requests)] == [0, 1]
    assert [one.first_token_pass for one in outcomes(cache(4), requests)] == [0, 0]


def test_no_request_is_admitted_in_a_pass_that_preempted() -> None:
    # The preemption frees 2 blocks, of which 1 is taken: the newcomer of 1 block would fit, behind who begins anew.
    found = scheduled(cache(4), asked((10, 15), (10, 15), (5, 1), passes=(0, 0, 11)))
    assert found[2] == (((0, 1),), 4)
    assert found[3] == (((1, 21), (2, 5)), 1)


def test_several_are_preempted_and_go_on_in_their_order() -> None:
    found = list(replay(cache(6), asked((29, 20), (9, 20), (8, 20))))
    preempted = [entry.preempted for entry in found if entry.preempted]
    assert preempted[0] == (2,)
    assert all(one.output_tokens == 20 for one in outcomes(cache(6), asked((29, 20), (9, 20), (8, 20))))
    admitted_again = [entry.requests for entry in found if entry.contexts_before and 0 in entry.contexts_before]
    assert admitted_again[0] == (0, 1, 2)


def test_slots_of_the_next_drafts_need_blocks() -> None:
    # 7 tokens and 3 drafts fill a block; 8 tokens need a second one.
    drafts = {"draft_token_count": 3, "accepted_draft_tokens_per_pass": 0}
    assert scheduled(cache(2, **drafts), asked((7, 1), (7, 1)))[0] == (((0, 7), (1, 7)), 1)
    assert scheduled(cache(2, **drafts), asked((8, 1), (7, 1)))[0] == (((0, 8),), 1)


def test_no_slots_are_needed_past_the_longest_length() -> None:
    scheduler = cache(2, draft_token_count=3, max_model_len=10)
    assert scheduled(scheduler, asked((9, 1), (9, 1)))[0] == (((0, 9), (1, 9)), 1)


def test_requests_near_their_longest_length_need_no_blocks_past_it() -> None:
    scheduler = cache(4, draft_token_count=3, accepted_draft_tokens_per_pass=0, max_model_len=20)
    found = list(replay(scheduler, asked((10, 10), (10, 10))))
    assert not any(entry.preempted for entry in found)
    assert found[-1].number + found[-1].repeat == 10


def test_all_blocks_come_back_from_requests_that_ended_at_their_longest_length() -> None:
    scheduler = cache(6, draft_token_count=3, accepted_draft_tokens_per_pass=0, max_model_len=20)
    requests = asked((10, 10), (10, 10), (17, 1), (17, 1), (17, 1), passes=(0, 0, 20, 20, 20))
    assert scheduled(scheduler, requests)[-1] == (((2, 17), (3, 17), (4, 17)), 1)


def test_a_lone_request_that_preempts_itself_goes_on_as_long_as_it_gains_a_token_by_it() -> None:
    # 2 blocks: 20 tokens. With 14, 4 rows and 3 slots do not fit, 14 tokens and 3 slots do: begun anew for each token.
    scheduler = cache(2, draft_token_count=3, accepted_draft_tokens_per_pass=0)
    found = list(replay(scheduler, asked((14, 4))))
    assert shown(found) == [
        (((0, 14),), 1),
        ((), 1),
        (((0, 15),), 1),
        ((), 1),
        (((0, 16),), 1),
        ((), 1),
        (((0, 17),), 1),
    ]
    assert outcomes(scheduler, asked((14, 4)))[0].preemption_count == 3


def test_a_request_that_would_begin_anew_without_end_is_refused_before_the_first_pass() -> None:
    scheduler = cache(2, draft_token_count=3, accepted_draft_tokens_per_pass=0)
    (violation,) = violations(scheduler, asked((14, 5), (1, 1)))
    assert violation.field == "requests[0].output_tokens"
    assert "with 4 of them" in violation.description
    assert "3 blocks of 10 tokens with the slots of 3 drafts, and the cache has 2" in violation.description


def test_a_request_that_might_jump_over_the_end_is_refused_where_it_does_not() -> None:
    scheduler = cache(2, draft_token_count=3, accepted_draft_tokens_per_pass=1.5)
    passes = replay(scheduler, asked((14, 6)))
    assert next(passes).rows == (14,)
    with pytest.raises(InvalidArgumentError, match="preempts it without end"):
        list(passes)


def test_a_prompt_that_no_cache_of_that_size_holds_is_refused_and_so_is_every_other_one() -> None:
    found = violations(cache(3), asked((31, 1), (30, 1), (1000, 1)))
    assert [violation.field for violation in found] == ["requests[0].prompt_tokens", "requests[2].prompt_tokens"]
    assert "need 4 blocks of 10 tokens, and the cache has 3" in found[0].description
    assert "never admits" in found[0].description


def test_an_output_that_outgrows_the_cache_is_refused() -> None:
    found = violations(cache(3), asked((20, 12)))
    assert [violation.field for violation in found] == ["requests[0].output_tokens"]
    assert scheduled(cache(3), asked((20, 11)))[-1] == (((0, 1),), 10)


def test_a_prompt_that_leaves_no_room_for_an_output_is_refused() -> None:
    found = violations(settings(max_model_len=100), asked((99, 5), (100, 1), (101, 1)))
    assert [violation.field for violation in found] == ["requests[1].prompt_tokens", "requests[2].prompt_tokens"]
    assert "max_model_len, 100" in found[0].description


def test_arrivals_out_of_order_are_refused() -> None:
    (violation,) = violations(settings(), asked((1, 1), (1, 1), passes=(4, 3)))
    assert violation.field == "requests[1].arrival_pass"


def test_arrivals_by_time_need_the_times_of_passes() -> None:
    (violation,) = violations(settings(), timed((0.0, 1, 1)))
    assert violation.field == "requests[0].arrival_seconds"


def test_a_violation_comes_with_the_call_and_not_with_the_first_pass() -> None:
    with pytest.raises(InvalidArgumentError):
        replay(cache(3), asked((31, 1)))
