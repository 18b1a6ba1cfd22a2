"""Many questions in one call, each with an answer or an error of its own."""

from __future__ import annotations

from attrs import field, frozen

from linkbound.domain.collective_estimate import CollectiveEstimate, CollectiveRequest
from linkbound.domain.decode import DecodeEstimate, DecodeRequest
from linkbound.domain.errors import Error
from linkbound.domain.link_comparison import LinkComparison, LinkComparisonRequest
from linkbound.domain.memory import MemoryFit, MemoryFitRequest
from linkbound.domain.prefill import PrefillEstimate, PrefillRequest
from linkbound.domain.rules import Checked, instance, sequence
from linkbound.domain.tp_projection import TpProjection, TpProjectionRequest
from linkbound.domain.training import TrainingStepEstimate, TrainingStepRequest

LARGEST_QUESTION_COUNT = 1000

BatchQuestion = (
    PrefillRequest
    | DecodeRequest
    | CollectiveRequest
    | TrainingStepRequest
    | LinkComparisonRequest
    | TpProjectionRequest
    | MemoryFitRequest
)
"""A question that may stand in a batch."""

BatchAnswer = (
    PrefillEstimate
    | DecodeEstimate
    | CollectiveEstimate
    | TrainingStepEstimate
    | LinkComparison
    | TpProjection
    | MemoryFit
)
"""The answer to one of them, in the same order of kinds."""

_QUESTION = instance(
    (
        PrefillRequest,
        DecodeRequest,
        CollectiveRequest,
        TrainingStepRequest,
        LinkComparisonRequest,
        TpProjectionRequest,
        MemoryFitRequest,
    )
)


@frozen(kw_only=True)
class BatchRequest(Checked):
    """The questions; kinds may be mixed."""

    questions: tuple[BatchQuestion, ...] = field(metadata=sequence(1, LARGEST_QUESTION_COUNT, _QUESTION))


@frozen(kw_only=True)
class BatchEstimate:
    """`answers[i]` answers `questions[i]`, or is the error that the question alone would have ended with."""

    answers: tuple[BatchAnswer | Error, ...]
