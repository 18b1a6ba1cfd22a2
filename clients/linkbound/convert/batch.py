"""Converters of `BatchEstimate` in `linkbound/estimator/v1/estimator_service.proto`, one question at a time.

An error travels as a status, which the error tables of both sides make: `serving.errors`, `linkbound.client.remote`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import frozen

from linkbound.convert import (
    collective_estimate,
    decode,
    link_comparison,
    memory,
    prefill,
    tp_projection,
    training,
)
from linkbound.domain.batch import BatchAnswer, BatchQuestion
from linkbound.domain.collective_estimate import CollectiveEstimate, CollectiveRequest
from linkbound.domain.decode import DecodeEstimate, DecodeRequest
from linkbound.domain.errors import InternalError, InvalidArgumentError, Violation
from linkbound.domain.link_comparison import LinkComparison, LinkComparisonRequest
from linkbound.domain.memory import MemoryFit, MemoryFitRequest
from linkbound.domain.prefill import PrefillEstimate, PrefillRequest
from linkbound.domain.tp_projection import TpProjection, TpProjectionRequest
from linkbound.domain.training import TrainingStepEstimate, TrainingStepRequest
from linkbound.estimator.v1 import estimator_service_pb2


@frozen
class _Arm:
    """One arm of a oneof: its name, and both directions of what it holds."""

    name: str
    to_proto: Callable[[Any], Any]
    from_proto: Callable[[Any], Any]


_QUESTIONS: Mapping[type, _Arm] = {
    PrefillRequest: _Arm("prefill", prefill.prefill_request_to_proto, prefill.prefill_request_from_proto),
    DecodeRequest: _Arm("decode", decode.decode_request_to_proto, decode.decode_request_from_proto),
    CollectiveRequest: _Arm(
        "collective",
        collective_estimate.collective_request_to_proto,
        collective_estimate.collective_request_from_proto,
    ),
    TrainingStepRequest: _Arm(
        "training_step", training.training_step_request_to_proto, training.training_step_request_from_proto
    ),
    LinkComparisonRequest: _Arm(
        "link_comparison",
        link_comparison.link_comparison_request_to_proto,
        link_comparison.link_comparison_request_from_proto,
    ),
    TpProjectionRequest: _Arm(
        "tp_projection", tp_projection.tp_projection_request_to_proto, tp_projection.tp_projection_request_from_proto
    ),
    MemoryFitRequest: _Arm("memory_fit", memory.memory_fit_request_to_proto, memory.memory_fit_request_from_proto),
}

_ANSWERS: Mapping[type, _Arm] = {
    PrefillEstimate: _Arm("prefill", prefill.prefill_estimate_to_proto, prefill.prefill_estimate_from_proto),
    DecodeEstimate: _Arm("decode", decode.decode_estimate_to_proto, decode.decode_estimate_from_proto),
    CollectiveEstimate: _Arm(
        "collective",
        collective_estimate.collective_estimate_to_proto,
        collective_estimate.collective_estimate_from_proto,
    ),
    TrainingStepEstimate: _Arm(
        "training_step", training.training_step_estimate_to_proto, training.training_step_estimate_from_proto
    ),
    LinkComparison: _Arm(
        "link_comparison", link_comparison.link_comparison_to_proto, link_comparison.link_comparison_from_proto
    ),
    TpProjection: _Arm("tp_projection", tp_projection.tp_projection_to_proto, tp_projection.tp_projection_from_proto),
    MemoryFit: _Arm("memory_fit", memory.memory_fit_to_proto, memory.memory_fit_from_proto),
}

_QUESTIONS_BY_NAME = {arm.name: arm for arm in _QUESTIONS.values()}
_ANSWERS_BY_NAME = {arm.name: arm for arm in _ANSWERS.values()}


def batch_question_to_proto(value: BatchQuestion) -> estimator_service_pb2.BatchQuestion:
    """A question as a message."""
    arm = _QUESTIONS[type(value)]
    content: dict[str, Any] = {arm.name: arm.to_proto(value)}
    return estimator_service_pb2.BatchQuestion(**content)


def batch_question_from_proto(message: estimator_service_pb2.BatchQuestion) -> BatchQuestion:
    """A question from its message. Raises InvalidArgumentError with every violation, as of the question alone."""
    name = message.WhichOneof("question")
    if name is None:
        raise InvalidArgumentError([Violation("question", "is missing, or of a kind that this version does not know")])
    question: BatchQuestion = _QUESTIONS_BY_NAME[name].from_proto(getattr(message, name))
    return question


def batch_answer_to_proto(value: BatchAnswer) -> estimator_service_pb2.BatchAnswer:
    """An answer as a message."""
    arm = _ANSWERS[type(value)]
    content: dict[str, Any] = {arm.name: arm.to_proto(value)}
    return estimator_service_pb2.BatchAnswer(**content)


def batch_answer_from_proto(message: estimator_service_pb2.BatchAnswer) -> BatchAnswer:
    """An answer from its message, which holds no error. Raises InternalError (MALFORMED_ANSWER) where it holds none."""
    arm = _ANSWERS_BY_NAME.get(message.WhichOneof("answer") or "")
    if arm is None:
        raise InternalError("a question of the batch has no answer", reason="MALFORMED_ANSWER")
    answer: BatchAnswer = arm.from_proto(getattr(message, arm.name))
    return answer
