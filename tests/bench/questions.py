"""What is asked: the same prompts everywhere, and a sweep around them."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve

from linkbound.convert.prefill import prefill_request_to_proto
from linkbound.domain.batch import BatchQuestion
from linkbound.domain.collective import CollectiveKind
from linkbound.domain.collective_estimate import CollectiveRequest
from linkbound.domain.decode import DecodeRequest
from linkbound.domain.link import Link
from linkbound.domain.prefill import PrefillRequest
from linkbound.domain.sweep import SweepAxis, SweepRange, SweepRequest, SweepVariable
from linkbound.domain.training import TrainingStepRequest
from linkbound.domain.workload import DecodeWorkload, PrefillWorkload

FAST, SLOW = Link(line_rate_bits_per_second=200 * 10**9), Link(line_rate_bits_per_second=100 * 10**9)
WORKLOAD = PrefillWorkload(model="glm-5.3", tensor_parallel_size=8, prompt_tokens=8192)
PREFILL = PrefillRequest(workload=WORKLOAD, link=FAST, to_link=SLOW)
PREFILL_BYTES = prefill_request_to_proto(PREFILL).SerializeToString()

MIXED: tuple[BatchQuestion, ...] = (
    PREFILL,
    DecodeRequest(workload=DecodeWorkload(model="glm-5.3", tensor_parallel_size=8), link=FAST),
    CollectiveRequest(kind=CollectiveKind.ALL_REDUCE, rank_count=8, message_bytes=10**6, link=FAST),
    TrainingStepRequest(gradient_bytes=15_231_233_024, rank_count=4, link=FAST, compute_step_seconds=2.289),
)
BATCH = MIXED * 250
"""As many questions as a batch may have."""


def unlike_prefills(count: int) -> Iterator[bytes]:
    """Messages of prompts of other lengths over links of other rates, no two alike, each as long as `PREFILL_BYTES`.

    The answers have the size of its answer too: no number leaves the range of as many bytes in a message.
    """
    for index in range(count):
        question = PrefillRequest(
            workload=evolve(WORKLOAD, prompt_tokens=WORKLOAD.prompt_tokens + index % 1000),
            link=Link(line_rate_bits_per_second=200 * 10**9 + index),
            to_link=Link(line_rate_bits_per_second=100 * 10**9 + index),
        )
        yield prefill_request_to_proto(question).SerializeToString()


def sweep_of(point_count: int) -> SweepRequest:
    """Tensor-parallel sizes by rates by prompt tokens, with a change of link; a multiple of 400 points."""
    return SweepRequest(
        workload=evolve(WORKLOAD, prompt_tokens=1),
        link=FAST,
        to_link=SLOW,
        axes=(
            SweepAxis(variable=SweepVariable.TENSOR_PARALLEL_SIZE, values=(2, 4, 8, 16)),
            SweepAxis(
                variable=SweepVariable.TO_LINK_BITS_PER_SECOND,
                range=SweepRange(first=10**10, step=10**9, value_count=100),
            ),
            SweepAxis(
                variable=SweepVariable.PROMPT_TOKENS,
                range=SweepRange(first=1, step=1, value_count=point_count // 400),
            ),
        ),
    )
