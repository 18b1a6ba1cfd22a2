"""`linkbound.estimator.v1.EstimatorService` over an `Estimator`.

Answers are computed on the event loop: one takes microseconds, less than handing it to a thread would.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc

from estimator_service.service import Estimator
from estimator_service.transport.batch import batch_estimate
from estimator_service.transport.schedule_stream import schedule_responses
from estimator_service.transport.sweep_stream import sweep_responses
from linkbound.convert import (
    collective_estimate,
    decode,
    layout_comparison,
    layout_recommendation,
    link_comparison,
    memory,
    planning,
    prefill,
    sizing,
    sweep,
    tp_projection,
    training,
)
from linkbound.estimator.v1 import (
    estimator_service_pb2,
    estimator_service_pb2_grpc,
    layout_pb2,
    memory_pb2,
    planning_pb2,
    schedule_pb2,
    sizing_pb2,
    sweep_pb2,
)

Context = grpc.aio.ServicerContext[Any, Any]


class EstimatorServicer(estimator_service_pb2_grpc.EstimatorServiceServicer):
    """Answers with `estimator`. Errors of the domain are raised as they are; the interceptor makes statuses of them.

    Sweeps and schedules end once `draining` is set: they go on elsewhere.
    """

    def __init__(self, estimator: Estimator, draining: asyncio.Event) -> None:
        self._estimator = estimator
        self._draining = draining

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

    async def CompareLayouts(
        self, request: layout_pb2.CompareLayoutsRequest, _context: Context
    ) -> layout_pb2.CompareLayoutsResponse:
        """Every way to cut one instance of a model over the same nodes."""
        answer = self._estimator.compare_layouts(layout_comparison.layout_comparison_request_from_proto(request))
        return layout_comparison.layout_comparison_to_proto(answer)

    async def RecommendLayout(
        self, request: layout_pb2.RecommendLayoutRequest, _context: Context
    ) -> layout_pb2.RecommendLayoutResponse:
        """How to run a model on the nodes at hand."""
        asked = layout_recommendation.layout_recommendation_request_from_proto(request)
        return layout_recommendation.layout_recommendation_to_proto(self._estimator.recommend_layout(asked))

    async def CheckMemoryFit(
        self, request: memory_pb2.CheckMemoryFitRequest, _context: Context
    ) -> memory_pb2.CheckMemoryFitResponse:
        """What a model and its requests need in memory, and whether it is there."""
        answer = self._estimator.check_memory_fit(memory.memory_fit_request_from_proto(request))
        return memory.memory_fit_to_proto(answer)

    async def FindSlowestLink(
        self, request: planning_pb2.FindSlowestLinkRequest, _context: Context
    ) -> planning_pb2.FindSlowestLinkResponse:
        """The slowest link that keeps a TTFT target."""
        answer = self._estimator.find_slowest_link(planning.slowest_link_request_from_proto(request))
        return planning.slowest_link_to_proto(answer)

    async def SizeCluster(
        self, request: sizing_pb2.SizeClusterRequest, _context: Context
    ) -> sizing_pb2.SizeClusterResponse:
        """Switches and cables for a number of nodes at a rate, best first."""
        answer = self._estimator.size_cluster(sizing.size_cluster_request_from_proto(request))
        return sizing.cluster_sizing_to_proto(answer)

    async def CheckPlan(
        self, request: planning_pb2.CheckPlanRequest, _context: Context
    ) -> planning_pb2.CheckPlanResponse:
        """The planning checklist, answered for one case."""
        answer = self._estimator.check_plan(planning.plan_request_from_proto(request))
        return planning.plan_check_to_proto(answer)

    async def BatchEstimate(
        self, request: estimator_service_pb2.BatchEstimateRequest, _context: Context
    ) -> estimator_service_pb2.BatchEstimateResponse:
        """Many questions, each with an answer or a status of its own."""
        return await batch_estimate(self._estimator, request)

    def StreamSweep(
        self, request: sweep_pb2.StreamSweepRequest, _context: Context
    ) -> AsyncIterator[sweep_pb2.StreamSweepResponse]:
        """Prompts at every point of a sweep, as columns."""
        return sweep_responses(self._estimator, sweep.sweep_request_from_proto(request), self._draining)

    def EstimateSchedule(
        self, request: schedule_pb2.EstimateScheduleRequest, _context: Context
    ) -> AsyncIterator[schedule_pb2.EstimateScheduleResponse]:
        """The passes that an engine makes of requests, then what follows from them."""
        return schedule_responses(self._estimator, request, self._draining)
