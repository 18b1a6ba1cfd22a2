"""Converters of `linkbound/estimator/v1/calibration.proto`, and of the calls of the catalogue that are about it."""

from __future__ import annotations

from linkbound.convert.collective import collective_kind_from_proto, collective_kind_to_proto
from linkbound.convert.paging import unreadable_entry_from_proto, unreadable_entry_to_proto
from linkbound.convert.values import EnumConverter, each, each_up_to
from linkbound.domain.calibration import (
    LARGEST_POINT_COUNT,
    Calibration,
    CalibrationResidual,
    CollectivePoint,
    CollectiveTable,
    CollectiveTiming,
    FitCalibrationRequest,
    ProtocolChange,
)
from linkbound.domain.names import CALIBRATIONS, resource_id, resource_name
from linkbound.domain.paging import Page, PageRequest
from linkbound.estimator.v1 import calibration_pb2, catalog_service_pb2

_TIMING = EnumConverter(CollectiveTiming, calibration_pb2.CollectiveTiming)

collective_timing_to_proto = _TIMING.to_proto
collective_timing_from_proto = _TIMING.from_proto


def collective_point_to_proto(value: CollectivePoint) -> calibration_pb2.CollectivePoint:
    """One measured size as a message."""
    return calibration_pb2.CollectivePoint(message_bytes=value.message_bytes, seconds=value.seconds)


def collective_point_from_proto(message: calibration_pb2.CollectivePoint) -> CollectivePoint:
    """One measured size from its message."""
    return CollectivePoint(message_bytes=message.message_bytes, seconds=message.seconds)


def collective_table_to_proto(value: CollectiveTable) -> calibration_pb2.CollectiveTable:
    """Measured times as a message."""
    return calibration_pb2.CollectiveTable(
        kind=collective_kind_to_proto(value.kind),
        rank_count=value.rank_count,
        ranks_per_node=value.ranks_per_node,
        points=each(collective_point_to_proto, value.points),
        timing=collective_timing_to_proto(value.timing),
    )


def collective_table_from_proto(message: calibration_pb2.CollectiveTable) -> CollectiveTable:
    """Measured times from their message."""
    return CollectiveTable(
        kind=collective_kind_from_proto(message.kind),
        rank_count=message.rank_count,
        ranks_per_node=message.ranks_per_node if message.HasField("ranks_per_node") else 1,
        points=each_up_to(LARGEST_POINT_COUNT, collective_point_from_proto, message.points),
        timing=collective_timing_from_proto(message.timing),
    )


def calibration_residual_to_proto(value: CalibrationResidual) -> calibration_pb2.CalibrationResidual:
    """What a fit leaves at one point as a message."""
    return calibration_pb2.CalibrationResidual(message_bytes=value.message_bytes, error_ratio=value.error_ratio)


def calibration_residual_from_proto(message: calibration_pb2.CalibrationResidual) -> CalibrationResidual:
    """What a fit leaves at one point from its message."""
    return CalibrationResidual(message_bytes=message.message_bytes, error_ratio=message.error_ratio)


def protocol_change_to_proto(value: ProtocolChange) -> calibration_pb2.ProtocolChange:
    """A stretch in which a library changes its ways as a message."""
    return calibration_pb2.ProtocolChange(
        from_message_bytes=value.from_message_bytes, to_message_bytes=value.to_message_bytes
    )


def protocol_change_from_proto(message: calibration_pb2.ProtocolChange) -> ProtocolChange:
    """A stretch in which a library changes its ways from its message."""
    return ProtocolChange(from_message_bytes=message.from_message_bytes, to_message_bytes=message.to_message_bytes)


def calibration_to_proto(value: Calibration) -> calibration_pb2.Calibration:
    """A fit as a message."""
    return calibration_pb2.Calibration(
        name=resource_name(CALIBRATIONS, value.calibration_id) if value.calibration_id else "",
        table=collective_table_to_proto(value.table),
        fixed_seconds=value.fixed_seconds,
        bus_bandwidth_bytes_per_second=value.bus_bandwidth_bytes_per_second,
        residuals=each(calibration_residual_to_proto, value.residuals),
        interval_fraction=value.interval_fraction,
        protocol_changes=each(protocol_change_to_proto, value.protocol_changes),
        assumptions=value.assumptions,
        sources=value.sources,
    )


def calibration_from_proto(message: calibration_pb2.Calibration) -> Calibration:
    """A fit from its message."""
    return Calibration(
        calibration_id=resource_id(CALIBRATIONS, message.name),
        table=collective_table_from_proto(message.table),
        fixed_seconds=message.fixed_seconds,
        bus_bandwidth_bytes_per_second=message.bus_bandwidth_bytes_per_second,
        residuals=each(calibration_residual_from_proto, message.residuals),
        interval_fraction=message.interval_fraction,
        protocol_changes=each(protocol_change_from_proto, message.protocol_changes),
        assumptions=tuple(message.assumptions),
        sources=tuple(message.sources),
    )


def fit_calibration_request_to_proto(value: FitCalibrationRequest) -> catalog_service_pb2.FitCalibrationRequest:
    """A question to fit measured times as a message."""
    return catalog_service_pb2.FitCalibrationRequest(
        table=collective_table_to_proto(value.table),
        calibration=resource_name(CALIBRATIONS, value.calibration) if value.calibration else "",
        sources=value.sources,
    )


def fit_calibration_request_from_proto(message: catalog_service_pb2.FitCalibrationRequest) -> FitCalibrationRequest:
    """A question to fit measured times from its message. Raises InvalidArgumentError with every violation."""
    return FitCalibrationRequest(
        table=collective_table_from_proto(message.table),
        calibration=resource_id(CALIBRATIONS, message.calibration),
        sources=tuple(message.sources),
    )


def fit_calibration_response_to_proto(value: Calibration) -> catalog_service_pb2.FitCalibrationResponse:
    """The answer with a fit as a message."""
    return catalog_service_pb2.FitCalibrationResponse(calibration=calibration_to_proto(value))


def fit_calibration_response_from_proto(message: catalog_service_pb2.FitCalibrationResponse) -> Calibration:
    """A fit from the answer's message."""
    return calibration_from_proto(message.calibration)


def list_calibrations_request_to_proto(value: PageRequest) -> catalog_service_pb2.ListCalibrationsRequest:
    """A question for a page of calibrations as a message."""
    return catalog_service_pb2.ListCalibrationsRequest(page_size=value.page_size, page_token=value.page_token)


def list_calibrations_request_from_proto(message: catalog_service_pb2.ListCalibrationsRequest) -> PageRequest:
    """A question for a page of calibrations from its message. Raises InvalidArgumentError with every violation."""
    return PageRequest(page_size=message.page_size, page_token=message.page_token)


def list_calibrations_response_to_proto(value: Page[Calibration]) -> catalog_service_pb2.ListCalibrationsResponse:
    """A page of calibrations as a message."""
    return catalog_service_pb2.ListCalibrationsResponse(
        calibrations=each(calibration_to_proto, value.entries),
        next_page_token=value.next_page_token,
        unreadable=each(unreadable_entry_to_proto, value.unreadable),
    )


def list_calibrations_response_from_proto(message: catalog_service_pb2.ListCalibrationsResponse) -> Page[Calibration]:
    """A page of calibrations from its message."""
    return Page(
        entries=each(calibration_from_proto, message.calibrations),
        next_page_token=message.next_page_token,
        unreadable=each(unreadable_entry_from_proto, message.unreadable),
    )


def get_calibration_request_to_proto(calibration_id: str) -> catalog_service_pb2.GetCalibrationRequest:
    """The name of a calibration as a message."""
    return catalog_service_pb2.GetCalibrationRequest(calibration=resource_name(CALIBRATIONS, calibration_id))


def get_calibration_request_from_proto(message: catalog_service_pb2.GetCalibrationRequest) -> str:
    """The id of a calibration from the message that names it."""
    return resource_id(CALIBRATIONS, message.calibration)


def get_calibration_response_to_proto(value: Calibration) -> catalog_service_pb2.GetCalibrationResponse:
    """The answer with one calibration as a message."""
    return catalog_service_pb2.GetCalibrationResponse(calibration=calibration_to_proto(value))


def get_calibration_response_from_proto(message: catalog_service_pb2.GetCalibrationResponse) -> Calibration:
    """One calibration from the answer's message."""
    return calibration_from_proto(message.calibration)
