"""Converters of the calls of the catalogue that are about engine calibrations."""

from __future__ import annotations

from linkbound.convert.engine import (
    engine_calibration_from_proto,
    engine_calibration_to_proto,
    engine_table_from_proto,
    engine_table_to_proto,
)
from linkbound.convert.paging import unreadable_entry_from_proto, unreadable_entry_to_proto
from linkbound.convert.values import each
from linkbound.domain.engine import EngineCalibration, FitEngineCalibrationRequest
from linkbound.domain.names import ENGINE_CALIBRATIONS, resource_id, resource_name
from linkbound.domain.paging import Page, PageRequest
from linkbound.estimator.v1 import catalog_service_pb2


def fit_engine_calibration_request_to_proto(
    value: FitEngineCalibrationRequest,
) -> catalog_service_pb2.FitEngineCalibrationRequest:
    """A question to fit measured times of an engine as a message."""
    return catalog_service_pb2.FitEngineCalibrationRequest(
        table=engine_table_to_proto(value.table),
        engine_calibration=(
            resource_name(ENGINE_CALIBRATIONS, value.engine_calibration) if value.engine_calibration else ""
        ),
        sources=value.sources,
    )


def fit_engine_calibration_request_from_proto(
    message: catalog_service_pb2.FitEngineCalibrationRequest,
) -> FitEngineCalibrationRequest:
    """A question to fit measured times of an engine from its message.

    Raises InvalidArgumentError with every violation.
    """
    return FitEngineCalibrationRequest(
        table=engine_table_from_proto(message.table),
        engine_calibration=resource_id(ENGINE_CALIBRATIONS, message.engine_calibration),
        sources=tuple(message.sources),
    )


def fit_engine_calibration_response_to_proto(
    value: EngineCalibration,
) -> catalog_service_pb2.FitEngineCalibrationResponse:
    """The answer with a fit as a message."""
    return catalog_service_pb2.FitEngineCalibrationResponse(engine_calibration=engine_calibration_to_proto(value))


def fit_engine_calibration_response_from_proto(
    message: catalog_service_pb2.FitEngineCalibrationResponse,
) -> EngineCalibration:
    """A fit from the answer's message."""
    return engine_calibration_from_proto(message.engine_calibration)


def list_engine_calibrations_request_to_proto(value: PageRequest) -> catalog_service_pb2.ListEngineCalibrationsRequest:
    """A question for a page of engine calibrations as a message."""
    return catalog_service_pb2.ListEngineCalibrationsRequest(page_size=value.page_size, page_token=value.page_token)


def list_engine_calibrations_request_from_proto(
    message: catalog_service_pb2.ListEngineCalibrationsRequest,
) -> PageRequest:
    """A question for a page of engine calibrations from its message.

    Raises InvalidArgumentError with every violation.
    """
    return PageRequest(page_size=message.page_size, page_token=message.page_token)


def list_engine_calibrations_response_to_proto(
    value: Page[EngineCalibration],
) -> catalog_service_pb2.ListEngineCalibrationsResponse:
    """A page of engine calibrations as a message."""
    return catalog_service_pb2.ListEngineCalibrationsResponse(
        engine_calibrations=each(engine_calibration_to_proto, value.entries),
        next_page_token=value.next_page_token,
        unreadable=each(unreadable_entry_to_proto, value.unreadable),
    )


def list_engine_calibrations_response_from_proto(
    message: catalog_service_pb2.ListEngineCalibrationsResponse,
) -> Page[EngineCalibration]:
    """A page of engine calibrations from its message."""
    return Page(
        entries=each(engine_calibration_from_proto, message.engine_calibrations),
        next_page_token=message.next_page_token,
        unreadable=each(unreadable_entry_from_proto, message.unreadable),
    )


def get_engine_calibration_request_to_proto(
    engine_calibration_id: str,
) -> catalog_service_pb2.GetEngineCalibrationRequest:
    """The name of an engine calibration as a message."""
    return catalog_service_pb2.GetEngineCalibrationRequest(
        engine_calibration=resource_name(ENGINE_CALIBRATIONS, engine_calibration_id)
    )


def get_engine_calibration_request_from_proto(message: catalog_service_pb2.GetEngineCalibrationRequest) -> str:
    """The id of an engine calibration from the message that names it."""
    return resource_id(ENGINE_CALIBRATIONS, message.engine_calibration)


def get_engine_calibration_response_to_proto(
    value: EngineCalibration,
) -> catalog_service_pb2.GetEngineCalibrationResponse:
    """The answer with one engine calibration as a message."""
    return catalog_service_pb2.GetEngineCalibrationResponse(engine_calibration=engine_calibration_to_proto(value))


def get_engine_calibration_response_from_proto(
    message: catalog_service_pb2.GetEngineCalibrationResponse,
) -> EngineCalibration:
    """One engine calibration from the answer's message."""
    return engine_calibration_from_proto(message.engine_calibration)
