"""`linkbound.estimator.v1.CatalogService` over an `Estimator`."""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar

import grpc
import structlog

from estimator_service.service import Estimator
from estimator_service.threads import in_thread
from linkbound.convert import calibration as convert_calibration
from linkbound.convert import catalog_service as convert
from linkbound.convert import engine_catalog
from linkbound.domain.paging import Page
from linkbound.estimator.v1 import catalog_service_pb2, catalog_service_pb2_grpc
from serving.logging import CATALOG_ENTRY_UNREADABLE

Context = grpc.aio.ServicerContext[Any, Any]
Entry = TypeVar("Entry")

_log = structlog.get_logger(__name__)


class CatalogServicer(catalog_service_pb2_grpc.CatalogServiceServicer):
    """Answers with the catalogue of `estimator`."""

    def __init__(self, estimator: Estimator) -> None:
        self._estimator = estimator

    async def ListModels(
        self, request: catalog_service_pb2.ListModelsRequest, _context: Context
    ) -> catalog_service_pb2.ListModelsResponse:
        """One page of the models."""
        page = _logged(self._estimator.list_models(convert.list_models_request_from_proto(request)))
        return convert.list_models_response_to_proto(page)

    async def GetModel(
        self, request: catalog_service_pb2.GetModelRequest, _context: Context
    ) -> catalog_service_pb2.GetModelResponse:
        """One model."""
        model = self._estimator.get_model(convert.get_model_request_from_proto(request))
        return convert.get_model_response_to_proto(model)

    async def ImportModel(
        self, request: catalog_service_pb2.ImportModelRequest, _context: Context
    ) -> catalog_service_pb2.ImportModelResponse:
        """The model in a config, stored where it is to be."""
        # Reading a large config takes a second, and writing waits for the disk.
        question = convert.import_model_request_from_proto(request)
        model = await asyncio.to_thread(self._estimator.import_model, question)
        return convert.import_model_response_to_proto(model)

    async def ListHardware(
        self, request: catalog_service_pb2.ListHardwareRequest, _context: Context
    ) -> catalog_service_pb2.ListHardwareResponse:
        """One page of the hardware."""
        page = _logged(self._estimator.list_hardware(convert.list_hardware_request_from_proto(request)))
        return convert.list_hardware_response_to_proto(page)

    async def GetHardware(
        self, request: catalog_service_pb2.GetHardwareRequest, _context: Context
    ) -> catalog_service_pb2.GetHardwareResponse:
        """One kind of hardware."""
        hardware = self._estimator.get_hardware(convert.get_hardware_request_from_proto(request))
        return convert.get_hardware_response_to_proto(hardware)

    async def FitCalibration(
        self, request: catalog_service_pb2.FitCalibrationRequest, _context: Context
    ) -> catalog_service_pb2.FitCalibrationResponse:
        """The fit of measured times, stored where it is named."""
        # Ten thousand points take a while, and writing waits for the disk.
        question = convert_calibration.fit_calibration_request_from_proto(request)
        calibration = await asyncio.to_thread(self._estimator.fit_calibration, question)
        return convert_calibration.fit_calibration_response_to_proto(calibration)

    async def ListCalibrations(
        self, request: catalog_service_pb2.ListCalibrationsRequest, _context: Context
    ) -> catalog_service_pb2.ListCalibrationsResponse:
        """One page of the calibrations."""
        page = _logged(
            self._estimator.list_calibrations(convert_calibration.list_calibrations_request_from_proto(request))
        )
        return convert_calibration.list_calibrations_response_to_proto(page)

    async def GetCalibration(
        self, request: catalog_service_pb2.GetCalibrationRequest, _context: Context
    ) -> catalog_service_pb2.GetCalibrationResponse:
        """One calibration."""
        calibration = self._estimator.get_calibration(convert_calibration.get_calibration_request_from_proto(request))
        return convert_calibration.get_calibration_response_to_proto(calibration)

    async def FitEngineCalibration(
        self, request: catalog_service_pb2.FitEngineCalibrationRequest, _context: Context
    ) -> catalog_service_pb2.FitEngineCalibrationResponse:
        """The fit of measured times of an engine, stored where it is named."""
        # Thousands of requests are replayed in rounds, and writing waits for the disk.
        return await in_thread(self._fit_engine_calibration, request)

    def _fit_engine_calibration(
        self, request: catalog_service_pb2.FitEngineCalibrationRequest
    ) -> catalog_service_pb2.FitEngineCalibrationResponse:
        question = engine_catalog.fit_engine_calibration_request_from_proto(request)
        return engine_catalog.fit_engine_calibration_response_to_proto(self._estimator.fit_engine_calibration(question))

    async def ListEngineCalibrations(
        self, request: catalog_service_pb2.ListEngineCalibrationsRequest, _context: Context
    ) -> catalog_service_pb2.ListEngineCalibrationsResponse:
        """One page of the engine calibrations."""
        question = engine_catalog.list_engine_calibrations_request_from_proto(request)
        # Each file is fitted as it is read for the first time.
        page = await in_thread(self._estimator.list_engine_calibrations, question)
        return engine_catalog.list_engine_calibrations_response_to_proto(_logged(page))

    async def GetEngineCalibration(
        self, request: catalog_service_pb2.GetEngineCalibrationRequest, _context: Context
    ) -> catalog_service_pb2.GetEngineCalibrationResponse:
        """One engine calibration."""
        name = engine_catalog.get_engine_calibration_request_from_proto(request)
        calibration = await in_thread(self._estimator.get_engine_calibration, name)
        return engine_catalog.get_engine_calibration_response_to_proto(calibration)


def _logged(page: Page[Entry]) -> Page[Entry]:
    """`page`, after a line in the log for each entry that it skips: who owns the files may not read the answers."""
    for unreadable in page.unreadable:
        _log.warning(CATALOG_ENTRY_UNREADABLE, name=unreadable.name, problem=unreadable.problem)
    return page
