"""The replay of a scheduler: budgets, thresholds, order, arrivals, drafts and lengths."""

from typing import Any

import pytest

from estimator_service.core.schedule import (
    KNOWN_RULES,
    OutcomeCounter,
    Pass,
    Share,
    ShareKind,
    engine_rules,
    replay,
    schedule_pass,
    schedule_words,
    stretches,
)
from estimator_service.core.schedule.words import NO_ACCEPTANCE
from linkbound.domain.engine import SchedulerSettings
from linkbound.domain.errors import InvalidArgumentError
from linkbound.domain.schedule import PassShare, SchedulePass
from tests.unit.estimator.schedules import asked, outcomes, scheduled, settings, shown, timed


def test_one_prompt_is_read_in_passes_of_the_budget_and_then_generates() -> None:
    assert scheduled(settings(), asked((10_000, 5))) == [
        (((0, 4096),), 2),
        (((0, 1808),), 1),
        (((0, 1),), 4),
    ]


def test_a_lone_long_prompt_was_capped_before_0_31() -> None:
    capped = scheduled(settings(engine="vllm-0.30"), asked((10_000, 5)))
    assert capped == [(((0, 2048),), 4), (((0, 1808),), 1), (((0, 1),), 4)]


def test_the_cap_holds_beside_a_request_that_only_generates() -> None:
    found = scheduled(settings(), asked((10, 100), (8192, 1), passes=(0, 3)))
    assert found[2] == (((0, 1), (1, 2048)), 4)


def test_the_cap_holds_beside_a_request_that_only_waits() -> None:
    found = scheduled(settings(max_num_seqs=1), asked((4096, 1), (100, 1)))
    assert found == [(((0, 2048),), 2), (((1, 100),), 1)]


def test_the_cap_comes_and_goes_with_another_request() -> None:
    found = scheduled(settings(), asked((20_000, 1), (50, 3), passes=(0, 1)))
    assert found == [
        (((0, 4096),), 1),
        (((0, 2048), (1, 50)), 1),
        (((0, 2048), (1, 1)), 2),
        (((0, 4096),), 2),
        (((0, 1568),), 1),
    ]


@pytest.mark.parametrize("threshold", [0, 4096, 5000])
def test_a_threshold_that_is_0_or_not_below_the_budget_caps_nothing(threshold: int) -> None:
    found = scheduled(settings(long_prefill_token_threshold=threshold), asked((8000, 1), (8000, 1)))
    assert found[0] == (((0, 4096),), 1)


def test_running_requests_come_before_waiting_ones_in_the_order_of_their_admission() -> None:
    found = scheduled(settings(max_num_batched_tokens=10), asked((25, 3), (4, 2), (30, 1)))
    assert found == [
        (((0, 10),), 2),
        (((0, 5), (1, 4), (2, 1)), 1),
        (((0, 1), (1, 1), (2, 8)), 1),
        (((0, 1), (2, 9)), 1),
        (((2, 10),), 1),
        (((2, 2),), 1),
    ]


def test_no_more_than_max_num_seqs_run_and_a_place_is_taken_in_the_next_pass() -> None:
    found = scheduled(settings(max_num_seqs=1), asked((5, 2), (6, 2)))
    assert found == [(((0, 5),), 1), (((0, 1),), 1), (((1, 6),), 1), (((1, 1),), 1)]


def test_without_max_num_seqs_all_run_together() -> None:
    found = scheduled(settings(max_num_seqs=None), asked(*[(1, 2)] * 300))
    assert [len(shares) for shares, _ in found] == [300]


def test_requests_past_the_budget_wait_for_rows_although_they_run() -> None:
    found = scheduled(settings(max_num_batched_tokens=2), asked((1, 3), (1, 3), (1, 3), passes=(0, 0, 1)))
    assert found == [(((0, 1), (1, 1)), 3), (((2, 1),), 3)]


def test_requests_that_come_later_join_the_pass_before_which_they_come() -> None:
    found = scheduled(settings(), asked((10, 4), (20, 2), passes=(0, 2)))
    assert found == [(((0, 10),), 1), (((0, 1),), 1), (((0, 1), (1, 20)), 1), (((0, 1), (1, 1)), 1)]


def test_passes_until_the_next_arrival_have_no_rows() -> None:
    found = list(replay(settings(), asked((10, 1), (20, 1), passes=(3, 1000))))
    assert shown(found) == [((), 3), (((0, 10),), 1), ((), 996), (((1, 20),), 1)]
    assert [entry.number for entry in found] == [0, 3, 4, 1000]


def test_with_times_a_request_joins_the_first_pass_that_starts_after_it_came() -> None:
    def ten_seconds(found: Pass) -> float:
        return 10.0 * found.repeat

    requests = timed((0.0, 100, 6), (10.0, 7, 1), (31.0, 8, 1), (500.0, 9, 2))
    found = list(replay(settings(), requests, ten_seconds))
    assert shown(found) == [
        (((0, 100),), 1),
        (((0, 1), (1, 7)), 1),
        (((0, 1),), 2),
        (((0, 1), (2, 8)), 1),
        (((0, 1),), 1),
        (((3, 9),), 1),
        (((3, 1),), 1),
    ]
    assert [entry.start_seconds for entry in found] == [0.0, 10.0, 20.0, 40.0, 50.0, 500.0, 510.0]


def test_with_times_a_pass_that_starts_as_a_request_comes_has_it() -> None:
    found = scheduled(settings(), timed((0.0, 100, 9), (40.0, 7, 1)), lambda entry: 10.0 * entry.repeat)
    assert found == [(((0, 100),), 1), (((0, 1),), 3), (((0, 1), (1, 7)), 1), (((0, 1),), 4)]


def test_with_times_the_passes_of_a_long_repeat_are_split_where_one_comes() -> None:
    def growing(found: Pass) -> float:
        """A pass takes as long as its contexts, summed in closed form."""
        return sum(
            found.repeat * share.context_before + share.context_step * found.repeat * (found.repeat - 1) / 2
            for share in found.shares
        )

    requests = timed((0.0, 100, 1_000_000), (1e9, 50, 1))
    found = list(replay(settings(), requests, growing))
    joined = next(entry for entry in found if 1 in entry.requests)
    # 100 + 101 + ... over n passes is 100 n + n (n - 1) / 2, first at least 1e9 with n = 44622.
    assert joined.number == 1 + 44_622
    assert joined.start_seconds == 100 * 44_622 + 44_622 * 44_621 / 2


def test_a_clock_that_runs_backwards_is_a_fault_of_the_caller() -> None:
    with pytest.raises(ValueError, match="-1"):
        list(replay(settings(), timed((0.0, 1, 1)), lambda found: -1.0))


def test_a_generating_request_takes_its_drafts_along_and_advances_by_what_is_accepted() -> None:
    scheduler = settings(draft_token_count=4, accepted_draft_tokens_per_pass=2)
    found = list(replay(scheduler, asked((100, 10))))
    assert shown(found) == [(((0, 100),), 1), (((0, 5),), 3)]
    assert [(entry.contexts_before, entry.shares[0].context_step) for entry in found] == [((0,), 100), ((100,), 3)]


def test_a_fraction_of_a_draft_adds_up() -> None:
    scheduler = settings(draft_token_count=2, accepted_draft_tokens_per_pass=0.3)
    found = list(replay(scheduler, asked((10, 14)), longest_repeat=1))
    assert [entry.contexts_before[0] for entry in found] == [0, 10, 11, 12, 13, 15, 16, 17, 19, 20, 21]


def test_a_tenth_is_a_tenth() -> None:
    scheduler = settings(draft_token_count=1, accepted_draft_tokens_per_pass=0.1)
    assert outcomes(scheduler, asked((1, 1 + 11_000)))[0].last_token_pass == 10_000


def test_the_budget_cuts_drafts_of_the_last_request_and_only_what_is_verified_is_accepted() -> None:
    scheduler = settings(max_num_batched_tokens=8, draft_token_count=4, accepted_draft_tokens_per_pass=4)
    found = list(replay(scheduler, asked((4, 16), (4, 16))))
    assert shown(found) == [(((0, 4), (1, 4)), 1), (((0, 5), (1, 3)), 3), (((1, 5),), 2)]
    assert found[-1].contexts_before == (4 + 3 * 3,)


def test_a_budget_that_ends_before_a_request_leaves_it_where_it_is() -> None:
    scheduler = settings(max_num_batched_tokens=5, draft_token_count=4, accepted_draft_tokens_per_pass=0)
    found = scheduled(scheduler, asked((1, 3), (2, 2)))
    assert found == [(((0, 1), (1, 2)), 1), (((0, 5),), 2), (((1, 5),), 1)]


def test_a_single_token_that_joins_generating_requests_is_padded_to_their_rows() -> None:
    scheduler = settings(draft_token_count=3)
    assert scheduled(scheduler, asked((10, 20), (1, 2), passes=(0, 2)))[2] == (((0, 4), (1, 4)), 2)
    assert scheduled(scheduler, asked((10, 20), (1, 2), passes=(0, 0)))[0] == (((0, 10), (1, 1)), 1)


def test_a_single_token_waits_where_its_padding_has_no_room() -> None:
    scheduler = settings(draft_token_count=3, max_num_batched_tokens=7, accepted_draft_tokens_per_pass=3)
    assert scheduled(scheduler, asked((5, 9), (1, 1), passes=(0, 1))) == [
        (((0, 5),), 1),
        (((0, 4),), 2),
        (((1, 1),), 1),
    ]


def test_a_single_token_is_not_padded_past_the_longest_length() -> None:
    requests = asked((1, 3), (1, 1), passes=(0, 1))
    assert scheduled(settings(draft_token_count=3, max_model_len=5), requests)[1] == (((0, 3), (1, 4)), 1)
    assert scheduled(settings(draft_token_count=3, max_model_len=4), requests)[1] == (((0, 2), (1, 1)), 1)


def test_a_threshold_below_the_rows_of_generating_requests_cuts_drafts() -> None:
    scheduler = settings(long_prefill_token_threshold=2, draft_token_count=4, accepted_draft_tokens_per_pass=3)
    assert scheduled(scheduler, asked((2, 5), (2, 5))) == [(((0, 2), (1, 2)), 3)]


def test_a_request_ends_at_the_longest_length_and_loses_drafts_before_it() -> None:
    scheduler = settings(max_model_len=20, draft_token_count=4, accepted_draft_tokens_per_pass=1)
    found = list(replay(scheduler, asked((10, 100))))
    assert shown(found) == [(((0, 10),), 1), (((0, 5),), 3), (((0, 3),), 1), (((0, 1),), 1)]
    assert outcomes(scheduler, asked((10, 100)))[0].output_tokens == 10


def test_outcomes_say_when_tokens_come() -> None:
    requests = asked((8192, 40), (8192, 1), (100, 3), passes=(0, 0, 2))
    found = outcomes(settings(), requests)
    assert [(one.first_token_pass, one.last_token_pass, one.output_tokens) for one in found] == [
        (3, 42, 40),
        (3, 3, 1),
        (4, 6, 3),
    ]
    assert all(one.preemption_count == 0 for one in found)


def test_the_counter_knows_how_many_passes_there_were() -> None:
    requests = asked((8192, 40))
    counter = OutcomeCounter.of(settings(), requests)
    for found in replay(settings(), requests):
        counter.count(found)
    assert counter.pass_count == 2 + 39


def test_what_rows_are_is_said_share_by_share() -> None:
    found = list(replay(settings(draft_token_count=1), asked((5000, 3), (10, 9), passes=(0, 1))))
    assert [[share.kind for share in entry.shares] for entry in found[:3]] == [
        [ShareKind.PROMPT],
        [ShareKind.PROMPT_END, ShareKind.PROMPT_END],
        [ShareKind.GENERATING, ShareKind.GENERATING],
    ]
    first, second, third = (entry.shares[0] for entry in found[:3])
    assert (first.yields_token, second.yields_token, third.yields_token) == (False, True, True)
    assert (first.is_generating, second.is_generating, third.is_generating) == (False, False, True)
    assert found[1].first_tokens == (0, 1)


def test_a_pass_is_built_from_its_shares() -> None:
    shares = (
        Share(request=3, rows=5, context_before=7, context_step=2.5, kind=ShareKind.GENERATING),
        Share(request=1, rows=9, context_before=0, context_step=9, kind=ShareKind.PROMPT),
    )
    found = Pass.of_shares(shares, number=4, repeat=2, accepted_draft_tokens_per_pass=1.5)
    assert found.shares == shares
    assert (found.row_count, found.request_count, found.repeated(7).repeat) == (14, 2, 7)


def test_passes_of_the_same_rows_are_answered_together() -> None:
    answered = [schedule_pass(stretch) for stretch in stretches(replay(settings(), asked((1, 6), (1, 6))))]
    assert answered == [SchedulePass(scheduled=(PassShare(0, 1), PassShare(1, 1)), repeat=6)]


def test_engines_are_known_by_name_and_the_newest_is_taken_without_one() -> None:
    assert engine_rules("") is KNOWN_RULES[0]
    assert [engine_rules(rules.name) for rules in KNOWN_RULES] == list(KNOWN_RULES)


def test_an_unknown_engine_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        replay(settings(engine="sglang-9"), asked((1, 1)))
    (violation,) = caught.value.field_violations
    assert violation.field == "scheduler.engine"
    assert "'sglang-9'" in violation.description
    assert all(rules.name in violation.description for rules in KNOWN_RULES)


def said(sentence: str, scheduler_changes: dict[str, Any], *tokens: tuple[int, int]) -> bool:
    words = schedule_words(settings(**scheduler_changes), asked(*(tokens or ((10, 10),))))
    return any(sentence in said for said in words)


def test_words_say_which_rules_and_what_has_no_effect() -> None:
    assert said("scheduler of vllm-0.32", {"engine": "vllm-0.32"})
    assert said(
        "9000, is not below max_num_batched_tokens, 4096: it caps nothing", {"long_prefill_token_threshold": 9000}
    )
    assert not said("caps nothing", {})
    assert said("alone in the engine", {})
    assert not said("alone in the engine", {"engine": "vllm-0.30"})
    assert not said("alone in the engine", {"long_prefill_token_threshold": 0})
    assert said("below the 9 rows", {"max_num_batched_tokens": 8, "draft_token_count": 8})
    assert said("cuts drafts", {"long_prefill_token_threshold": 4, "draft_token_count": 4})
    assert not said("cuts drafts", {"long_prefill_token_threshold": 5, "draft_token_count": 4})
    assert said("adds up", {"draft_token_count": 4, "accepted_draft_tokens_per_pass": 1.5})
    assert not said("adds up", {"draft_token_count": 4, "accepted_draft_tokens_per_pass": 2})
    unknown = SchedulerSettings(max_num_batched_tokens=8, draft_token_count=4)
    assert NO_ACCEPTANCE in schedule_words(unknown, asked((10, 10)))
    assert not said("acceptance of drafts", {"draft_token_count": 4, "accepted_draft_tokens_per_pass": 0})
    assert said("1 of 2 outputs end at max_model_len, 50", {"max_model_len": 50}, (30, 20), (30, 21))
    assert said("never run out", {})
    assert not said("never run out", {"kv_block_count": 100})
    assert said("run together without a limit", {"max_num_seqs": None})
