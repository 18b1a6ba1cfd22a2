"""Laws of the replay: every token is scheduled once, nothing goes past a limit, and skipping ahead changes nothing."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from decimal import Decimal
from fractions import Fraction

from attrs import evolve, frozen
from hypothesis import assume, example, given
from hypothesis import strategies as st

from estimator_service.core.schedule import KNOWN_RULES, Pass, ShareKind, length_limit_tokens, limits_of, replay
from estimator_service.core.schedule.skipping import largest_that
from linkbound.domain.engine import EngineRequest, SchedulerSettings
from linkbound.domain.errors import InvalidArgumentError
from tests.unit.estimator.schedules import asked, settings, shown

NAMES = st.sampled_from([rules.name for rules in KNOWN_RULES])
ACCEPTED_SHARES = st.sampled_from([0.0, 0.1, 0.25, 0.5, 1 / 3, 0.8, 1.0])


@frozen(kw_only=True)
class Question:
    """A replay."""

    scheduler: SchedulerSettings
    requests: tuple[EngineRequest, ...]


@st.composite
def questions(draw: st.DrawFn, *, with_cache: bool = True, whole_acceptance: bool = False) -> Question:
    drafts = draw(st.integers(0, 4))
    tokens = st.tuples(st.integers(1, 60), st.integers(1, 40))
    prompts_and_outputs = draw(st.lists(tokens, min_size=1, max_size=7))
    arrivals = draw(st.lists(st.integers(0, 40), min_size=len(prompts_and_outputs), max_size=len(prompts_and_outputs)))
    accepted = drafts * draw(ACCEPTED_SHARES)
    longest = max(prompt for prompt, _ in prompts_and_outputs)
    block_tokens = draw(st.integers(1, 16))
    blocks = -(-(longest + 40 + drafts) // block_tokens) + draw(st.integers(0, 6))
    scheduler = settings(
        engine=draw(NAMES),
        max_num_batched_tokens=draw(st.integers(1, 80)),
        long_prefill_token_threshold=draw(st.integers(0, 50)),
        max_num_seqs=draw(st.none() | st.integers(1, 5)),
        max_model_len=draw(st.none() | st.integers(longest + 1, longest + 50)),
        kv_block_count=1 + blocks if with_cache and draw(st.booleans()) else None,
        kv_block_tokens=block_tokens,
        draft_token_count=drafts,
        accepted_draft_tokens_per_pass=math.floor(accepted) if whole_acceptance else accepted,
    )
    return Question(scheduler=scheduler, requests=asked(*prompts_and_outputs, passes=tuple(sorted(arrivals))))


def passes_of(question: Question, *, longest_repeat: int = 10**9) -> list[Pass]:
    """The passes; questions whose requests would never finish are left to the tests of violations."""
    try:
        return list(replay(question.scheduler, question.requests, longest_repeat=longest_repeat))
    except InvalidArgumentError:
        assume(False)
        raise


@given(questions())
def test_skipping_ahead_is_as_stepping_pass_by_pass(question: Question) -> None:
    skipped, stepped = passes_of(question), passes_of(question, longest_repeat=1)
    assert shown(skipped) == shown(stepped)
    assert [entry.number for entry in stepped] == list(range(len(stepped)))
    events = [
        [
            (entry.number + entry.repeat - 1, entry.first_tokens, entry.finished)
            for entry in found
            if entry.first_tokens or entry.finished
        ]
        for found in (skipped, stepped)
    ]
    assert events[0] == events[1]
    contexts = {entry.number: entry.contexts_before for entry in stepped}
    assert all(entry.contexts_before == contexts[entry.number] for entry in skipped)


@given(questions())
def test_no_pass_goes_past_the_budget_the_threshold_or_the_requests_that_may_run(question: Question) -> None:
    scheduler = question.scheduler
    threshold = scheduler.long_prefill_token_threshold
    unfinished = len(question.requests)
    for entry in passes_of(question):
        assert entry.row_count <= scheduler.max_num_batched_tokens
        assert len(set(entry.requests)) == entry.request_count <= (scheduler.max_num_seqs or unfinished)
        assert all(rows >= 1 for rows in entry.rows)
        if threshold and entry.request_count > 1:
            assert max(entry.rows) <= threshold
        if scheduler.max_model_len is not None:
            ends = zip(entry.contexts_before, entry.rows, strict=True)
            assert all(before + rows < scheduler.max_model_len for before, rows in ends)


@given(questions(whole_acceptance=True))
def test_every_token_is_computed_once_and_again_after_each_preemption(question: Question) -> None:
    """A request goes from nothing to its last token but one in a row, or as far as a preemption lets it."""
    limits = limits_of(question.scheduler)
    prompts = [request.prompt_tokens for request in question.requests]
    computed = [0] * len(prompts)
    generated = [0] * len(prompts)
    for entry in passes_of(question, longest_repeat=1):
        for request in entry.preempted:
            computed[request] = 0
        for share in entry.shares:
            request = share.request
            left = prompts[request] + generated[request] - computed[request]
            assert share.context_before == computed[request]
            if share.kind is ShareKind.GENERATING:
                assert left == 1
                assert share.rows <= 1 + limits.draft_tokens
                generated[request] += int(share.context_step)
                computed[request] += int(share.context_step)
            elif share.kind is ShareKind.PROMPT:
                assert share.rows < left
                computed[request] += share.rows
            else:
                is_padded = left == 1 and share.rows == 1 + limits.draft_tokens
                assert share.rows == left or is_padded
                generated[request] += 1
                computed[request] += left
        for request in entry.finished:
            asked_tokens = length_limit_tokens(question.requests[request], limits) - prompts[request]
            assert asked_tokens <= generated[request] <= asked_tokens + limits.draft_tokens


@given(st.integers(1, 50), st.integers(1, 8), st.decimals(0, 1, places=3), st.integers(2, 400))
def test_fractions_of_drafts_add_up_to_whole_ones(prompt: int, drafts: int, share: Decimal, output: int) -> None:
    accepted = drafts * share
    scheduler = settings(draft_token_count=drafts, accepted_draft_tokens_per_pass=float(accepted))
    found = list(replay(scheduler, asked((prompt, output)), longest_repeat=1))
    assert [entry.contexts_before[0] for entry in found[1:]] == [
        prompt + count + math.floor(count * Fraction(accepted)) for count in range(len(found) - 1)
    ]
    generated = 1 + len(found) - 1 + math.floor((len(found) - 1) * Fraction(accepted))
    assert output <= generated <= output + drafts


@given(questions(with_cache=False))
def test_requests_are_admitted_in_the_order_of_their_arrival(question: Question) -> None:
    seen: list[int] = []
    for entry in passes_of(question):
        seen += [request for request in entry.requests if request not in seen]
        assert list(entry.requests) == sorted(entry.requests)
        for request in entry.requests:
            assert entry.number >= (question.requests[request].arrival_pass or 0)
    assert seen == sorted(seen) == list(range(len(question.requests)))


@given(questions())
def test_blocks_of_the_requests_in_a_pass_fit_the_cache(question: Question) -> None:
    scheduler = question.scheduler
    limits = limits_of(scheduler)
    assume(limits.usable_blocks is not None)
    for entry in passes_of(question, longest_repeat=1):
        ends = zip(entry.contexts_before, entry.rows, strict=True)
        assert sum(limits.blocks_for(before + rows) for before, rows in ends) <= (limits.usable_blocks or 0)


@given(questions())
def test_a_pass_without_rows_waits_for_an_arrival_or_has_preempted(question: Question) -> None:
    arrivals = {request.arrival_pass for request in question.requests}
    for entry in passes_of(question):
        if not entry.requests and not entry.preempted:
            assert entry.number + entry.repeat in arrivals


@given(questions())
def test_every_request_gets_its_first_token_once_and_then_its_last(question: Question) -> None:
    first: Counter[int] = Counter()
    last: Counter[int] = Counter()
    for entry in passes_of(question):
        first.update(entry.first_tokens)
        last.update(entry.finished)
        assert set(last) <= set(first)
    everyone = Counter(range(len(question.requests)))
    assert first == everyone == last


@given(questions(), st.integers(1, 1000))
def test_times_of_equal_passes_are_as_arrivals_by_pass(question: Question, microseconds: int) -> None:
    """Where each pass takes as long and has rows, a time is a pass."""
    by_pass = passes_of(question)
    assume(all(entry.requests for entry in by_pass))
    seconds = microseconds * 2.0**-20
    by_time = tuple(
        evolve(request, arrival_pass=None, arrival_seconds=(request.arrival_pass or 0) * seconds)
        for request in question.requests
    )
    found = list(replay(question.scheduler, by_time, lambda entry: entry.repeat * seconds))
    assert shown(found) == shown(by_pass)
    assert all(entry.start_seconds == entry.number * seconds for entry in found)


@given(st.integers(1, 2000), st.integers(1, 2000))
def test_the_largest_number_is_found_in_few_tries(largest: int, most: int) -> None:
    tried: list[int] = []

    def holds(number: int) -> bool:
        tried.append(number)
        return number <= largest

    assert largest_that(holds, most) == min(largest, most)
    assert len(tried) <= 12


@given(st.integers(1, 10**9), st.integers(1, 10**9), st.integers(0, 4))
@example(10**9, 10**7, 4)
def test_entries_do_not_grow_with_tokens(prompt: int, output: int, drafts: int) -> None:
    scheduler = settings(draft_token_count=drafts, kv_block_count=10**9, accepted_draft_tokens_per_pass=drafts / 2)
    requests = asked((prompt, output), (prompt // 2 + 1, output), (7, output // 3 + 1))
    entries = list(itertools.islice(replay(scheduler, requests), 40))
    assert len(entries) < 40
