"""A small engine whose times are made up of known parts, row by row."""

from __future__ import annotations

from attrs import evolve, frozen

from estimator_service.core.schedule import Pass, replay
from linkbound.domain.engine import EnginePoint, EngineRequest, EngineTable, SchedulerSettings
from linkbound.domain.layout import ParallelLayout
from linkbound.domain.link import Link
from tests.unit.estimator.models import small_model

MODEL = evolve(small_model(), hidden_size=10_000, collectives=())
"""Sends nothing: what passes take is arithmetic alone."""
SENDING_MODEL = small_model()
"""60 bytes of each row and 1,024 of each row of logits, of one of two ranks."""
MEGABIT = 10**6
LINK = Link(line_rate_bits_per_second=MEGABIT)
SCHEDULER = SchedulerSettings(max_num_batched_tokens=400, long_prefill_token_threshold=200, max_num_seqs=8)


@frozen(kw_only=True)
class Parts:
    """Seconds of each part of a pass that reads prompts, and of one that only generates."""

    row: float = 1e-3
    attended_token: float = 0.0
    prompt_pass: float = 0.0
    chunk_token: float = 0.0
    further_request: float = 0.0
    decode_pass: float = 0.02
    decode_request: float = 0.0
    context_token: float = 0.0

    def seconds(self, found: Pass) -> float:
        """All `repeat` passes, one after the other and row by row."""
        return sum(self._one(found, number) for number in range(found.repeat))

    def _one(self, found: Pass, number: int) -> float:
        further = found.request_count - 1
        contexts = [share.context_before + number * share.context_step for share in found.shares]
        if all(share.is_generating for share in found.shares):
            return self.decode_pass + self.decode_request * further + self.context_token * sum(contexts)
        rows = attended = chunk = 0.0
        for share, context in zip(found.shares, contexts, strict=True):
            for row in range(share.rows):
                rows += 1
                attended += context + row + 1
                chunk += share.rows
        return (
            self.prompt_pass
            + self.row * rows
            + self.attended_token * attended
            + self.chunk_token * chunk
            + self.further_request * further
        )


def request(prompt_tokens: int, output_tokens: int = 20, **arrival: float) -> EngineRequest:
    return EngineRequest(prompt_tokens=prompt_tokens, output_tokens=output_tokens, **arrival)  # type: ignore[arg-type]  # a pass or a time


def measured_point(
    label: str, requests: tuple[EngineRequest, ...], parts: Parts, scheduler: SchedulerSettings = SCHEDULER
) -> EnginePoint:
    """What such an engine takes for requests that arrive with the first pass: every TTFT, and the mean speed."""
    seconds, first, speeds = 0.0, {}, []
    for found in replay(scheduler, requests):
        seconds += parts.seconds(found)
        first.update(dict.fromkeys(found.first_tokens, seconds))
        speeds += [(requests[index].output_tokens - 1) / (seconds - first[index]) for index in found.finished]
    return EnginePoint(
        label=label,
        requests=requests,
        ttft_seconds=tuple(sorted(first.values())),
        output_tokens_per_second=sum(speeds) / len(speeds),
    )


def engine_table(*points: EnginePoint, link: Link = LINK, scheduler: SchedulerSettings = SCHEDULER) -> EngineTable:
    return EngineTable(
        model="small",
        layout=ParallelLayout(tensor_parallel_size=2),
        link=link,
        scheduler=scheduler,
        points=points,
    )


def measured_table(parts: Parts) -> EngineTable:
    """Prompts of many lengths alone, and several together."""
    alone = (50, 100, 150, 250, 400, 800, 1200, 2000, 3000)
    together = ((300, 300), (100, 100, 100, 100), (500, 400, 300), (1000, 1000), (150, 1200))
    return engine_table(
        *(measured_point(f"{tokens}", (request(tokens),), parts) for tokens in alone),
        *(measured_point("+".join(map(str, tokens)), tuple(map(request, tokens)), parts) for tokens in together),
    )
