"""`linkbound.estimator.v1.EstimatorService` over an `Estimator`.

Answers are computed on the event loop: one takes microseconds, less than handing it to a thread would.
"""

from __future__ import annotations

from typing import Any

import grpc

from estimator_service.service import Estimator
from linkbound.convert import collective_estimate, decode, link_comparison, prefill, tp_projection, training
from linkbound.estimator.v1 import estimator_service_pb2, estimator_service_pb2_grpc

Context = grpc.aio.ServicerContext[Any, Any]


class EstimatorServicer(estimator_service_pb2_grpc.EstimatorServiceServicer):
    """Answers with `estimator`. Errors of the domain are raised as they are; the interceptor makes statuses of them."""

    def __init__(self, estimator: Estimator) -> None:
        self._estimator = estimator

    async def EstimatePrefill(
        self, request: estimator_service_pb2.EstimatePrefillRequest, _context: Context
    ) -> estimator_service_pb2.EstimatePrefillResponse:
        """Bytes on the wire and the time bound of prompts."""
        answer = self._estimator.estimate_prefill(prefill.prefill_request_from_proto(request))
        return prefill.prefill_estimate_to_proto(answer)

    async def EstimateDecode(
        self, request: estimator_service_pb2.EstimateDecodeRequest, _context: Context
    ) -> estimator_service_pb2.EstimateDecodeResponse:
        """Bytes, pass floor and traffic while tokens are generated."""
        answer = self._estimator.estimate_decode(decode.decode_request_from_proto(request))
        return decode.decode_estimate_to_proto(answer)

    async def EstimateCollective(
        self, request: estimator_service_pb2.EstimateCollectiveRequest, _context: Context
    ) -> estimator_service_pb2.EstimateCollectiveResponse:
        """Bytes and bandwidth bound of one collective."""
        answer = self._estimator.estimate_collective(collective_estimate.collective_request_from_proto(request))
        return collective_estimate.collective_estimate_to_proto(answer)

    async def EstimateTrainingStep(
        self, request: estimator_service_pb2.EstimateTrainingStepRequest, _context: Context
    ) -> estimator_service_pb2.EstimateTrainingStepResponse:
        """Gradient exchange of data-parallel training."""
        answer = self._estimator.estimate_training_step(training.training_step_request_from_proto(request))
        return training.training_step_estimate_to_proto(answer)

    async def CompareLinks(
        self, request: estimator_service_pb2.CompareLinksRequest, _context: Context
    ) -> estimator_service_pb2.CompareLinksResponse:
        """One workload over two links."""
        answer = self._estimator.compare_links(link_comparison.link_comparison_request_from_proto(request))
        return link_comparison.link_comparison_to_proto(answer)

    async def ProjectTpSizes(
        self, request: estimator_service_pb2.ProjectTpSizesRequest, _context: Context
    ) -> estimator_service_pb2.ProjectTpSizesResponse:
        """One prompt workload over several tensor-parallel sizes."""
        answer = self._estimator.project_tp_sizes(tp_projection.tp_projection_request_from_proto(request))
        return tp_projection.tp_projection_to_proto(answer)
