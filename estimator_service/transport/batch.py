"""`BatchEstimate`: each question is read, answered and written by itself, so that one that fails fails alone."""

from __future__ import annotations

import asyncio
import math
import time

from estimator_service.service import Estimator
from estimator_service.transport.names import ERROR_DOMAIN
from linkbound.convert.batch import batch_answer_to_proto, batch_question_from_proto
from linkbound.domain.batch import LARGEST_QUESTION_COUNT
from linkbound.domain.errors import InvalidArgumentError, Violation
from linkbound.estimator.v1 import estimator_service_pb2
from serving.errors import status_proto
from serving.interceptors import as_domain_error
from serving.rpc import CURRENT_RPC

TURN_SECONDS = 0.005
"""For this long questions are answered before other calls of the event loop have their turn.

A question that takes longer, such as one that brings a config of megabytes, has a turn of its own.
"""


async def batch_estimate(
    estimator: Estimator, request: estimator_service_pb2.BatchEstimateRequest
) -> estimator_service_pb2.BatchEstimateResponse:
    """The answers in the order of the questions. Raises InvalidArgumentError for none and for too many."""
    question_count = len(request.questions)
    if not 1 <= question_count <= LARGEST_QUESTION_COUNT:
        violation = f"{question_count} items are not 1 to {LARGEST_QUESTION_COUNT} items"
        raise InvalidArgumentError([Violation("questions", violation)])
    answers: list[estimator_service_pb2.BatchAnswer] = []
    turn_ends = -math.inf
    for question in request.questions:
        if time.monotonic() >= turn_ends:
            await asyncio.sleep(0)
            turn_ends = time.monotonic() + TURN_SECONDS
        answers.append(_answer(estimator, question))
    CURRENT_RPC.get().add_rows(question_count)
    return estimator_service_pb2.BatchEstimateResponse(answers=answers)


def _answer(estimator: Estimator, question: estimator_service_pb2.BatchQuestion) -> estimator_service_pb2.BatchAnswer:
    try:
        return batch_answer_to_proto(estimator.answer(batch_question_from_proto(question)))
    except Exception as failure:
        error = as_domain_error(failure, CURRENT_RPC.get().request_id)
        return estimator_service_pb2.BatchAnswer(error=status_proto(error, ERROR_DOMAIN))
