"""`BatchEstimate` on the wire: an answer for each question, or the status that it alone would have ended with."""

from __future__ import annotations

from linkbound.client.remote.errors import error_of_status
from linkbound.convert.batch import batch_answer_from_proto, batch_question_to_proto
from linkbound.convert.values import each
from linkbound.domain.batch import BatchAnswer, BatchEstimate, BatchRequest
from linkbound.domain.errors import Error
from linkbound.estimator.v1 import estimator_service_pb2


def batch_request_message(request: BatchRequest) -> estimator_service_pb2.BatchEstimateRequest:
    """The questions as a message."""
    return estimator_service_pb2.BatchEstimateRequest(questions=each(batch_question_to_proto, request.questions))


def batch_estimate_of_message(message: estimator_service_pb2.BatchEstimateResponse) -> BatchEstimate:
    """The answers from their message."""
    return BatchEstimate(answers=each(_answer_or_error, message.answers))


def _answer_or_error(message: estimator_service_pb2.BatchAnswer) -> BatchAnswer | Error:
    return error_of_status(message.error) if message.HasField("error") else batch_answer_from_proto(message)
