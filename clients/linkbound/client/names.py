"""Names as callers give them: an id, or a resource name as an answer in JSON shows it."""

from __future__ import annotations

from typing import cast

from linkbound.domain.names import (
    CALIBRATIONS,
    ENGINE_CALIBRATIONS,
    HARDWARE,
    MODELS,
    NICS,
    RUNS,
    SWITCHES,
    resource_id,
)


def model_id(model: str) -> str:
    """The id of a model named `glm-5.3` or `models/glm-5.3`."""
    return cast("str", _id(MODELS, model))


def hardware_id(hardware: str) -> str:
    """The id of hardware named `dgx-spark` or `hardware/dgx-spark`."""
    return cast("str", _id(HARDWARE, hardware))


def calibration_id(calibration: str) -> str:
    """The id of a calibration named `spark-200g` or `calibrations/spark-200g`."""
    return cast("str", _id(CALIBRATIONS, calibration))


def engine_calibration_id(engine_calibration: str) -> str:
    """The id of an engine calibration named `spark-8` or `engineCalibrations/spark-8`."""
    return cast("str", _id(ENGINE_CALIBRATIONS, engine_calibration))


def switch_id(switch: str) -> str:
    """The id of a switch named `crs804` or `switches/crs804`."""
    return cast("str", _id(SWITCHES, switch))


def nic_id(nic: str) -> str:
    """The id of a network adapter named `dgx-spark` or `nics/dgx-spark`."""
    return cast("str", _id(NICS, nic))


def run_id(run: str) -> str:
    """The id of a run named `study-109g` or `runs/study-109g`."""
    return cast("str", _id(RUNS, run))


def _id(collection: str, name: object) -> object:
    # What is no text is passed on: the rules of the request judge it.
    return resource_id(collection, name) if isinstance(name, str) else name
