"""The catalogue: models, hardware and calibrations, and how own ones come into it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from linkbound.client import names, operations
from linkbound.client.options import UNSET, Timeout
from linkbound.client.question import Listing, Question, question
from linkbound.domain.calibration import Calibration, CalibrationRequest, CollectiveTable, FitCalibrationRequest
from linkbound.domain.catalog import Hardware, HardwareRequest, ImportModelRequest, Model, ModelRequest
from linkbound.domain.rules import as_tuple

if TYPE_CHECKING:
    from linkbound.domain.engine import EngineCalibration, EngineTable


def list_models(*, timeout_seconds: Timeout = UNSET) -> Listing[Model]:
    """Every model of the catalogue in the order of the ids; the timeout is that of one page.

    One whose file is broken is skipped with an UnreadableEntryWarning. Raises the errors of the connection, while
    iterating.
    """
    return Listing(operations.LIST_MODELS, timeout_seconds)


def get_model(model: str, *, timeout_seconds: Timeout = UNSET) -> Question[Model]:
    """The model with the id `model`.

    Raises InvalidArgumentError, NotFoundError with near names, and the errors of the connection.
    """
    request = ModelRequest(model=names.model_id(model))
    return question(operations.GET_MODEL, request.model, timeout_seconds)


def import_model(
    config_json: str,
    *,
    model: str = "",
    display_name: str = "",
    validate_only: bool = False,
    quantization_json: str = "",
    weight_bits_per_parameter: float | None = None,
    timeout_seconds: Timeout = UNSET,
) -> Question[Model]:
    """The model in `config_json`, the contents of a Hugging Face `config.json`, kept as `model`.

    With `validate_only` it is read and answered, and not kept; `model` may be left out then. The same content under
    the same name again is the model that exists. `quantization_json` is the contents of the file beside the config that
    says how the weights are quantised, such as `hf_quant_config.json`, where the config does not;
    `weight_bits_per_parameter` replaces what both say. The answer holds what was not understood, what was assumed and
    what could not be determined. Formulas: `docs/formulas.md`, parameters, caches and collectives of a pass.

    Raises InvalidArgumentError, AlreadyExistsError where the name is taken by other content,
    FailedPreconditionError where the catalogue is read-only, and the errors of the connection.
    """
    request = ImportModelRequest(
        model=names.model_id(model),
        config_json=config_json,
        display_name=display_name,
        validate_only=validate_only,
        quantization_json=quantization_json,
        weight_bits_per_parameter=weight_bits_per_parameter,
    )
    return question(operations.IMPORT_MODEL, request, timeout_seconds)


def list_hardware(*, timeout_seconds: Timeout = UNSET) -> Listing[Hardware]:
    """All hardware of the catalogue in the order of the ids; the timeout is that of one page.

    One whose file is broken is skipped with an UnreadableEntryWarning. Raises the errors of the connection, while
    iterating.
    """
    return Listing(operations.LIST_HARDWARE, timeout_seconds)


def get_hardware(hardware: str, *, timeout_seconds: Timeout = UNSET) -> Question[Hardware]:
    """The hardware with the id `hardware`.

    Raises InvalidArgumentError, NotFoundError with near names, and the errors of the connection.
    """
    request = HardwareRequest(hardware=names.hardware_id(hardware))
    return question(operations.GET_HARDWARE, request.hardware, timeout_seconds)


def fit_calibration(
    table: CollectiveTable,
    *,
    calibration: str = "",
    sources: Sequence[str] = (),
    timeout_seconds: Timeout = UNSET,
) -> Question[Calibration]:
    """The fit of measured times of one kind of collective, stored under the id `calibration` where that is given.

    `sources` say where the times come from. The same times and sources under the same name again are the
    calibration that exists. Formulas: `docs/formulas.md`, collective time.

    Raises InvalidArgumentError, AlreadyExistsError where the name is taken by other content,
    FailedPreconditionError where the catalogue cannot be written, and the errors of the connection.
    """
    request = FitCalibrationRequest(
        table=table, calibration=names.calibration_id(calibration), sources=as_tuple(sources)
    )
    return question(operations.FIT_CALIBRATION, request, timeout_seconds)


def list_calibrations(*, timeout_seconds: Timeout = UNSET) -> Listing[Calibration]:
    """Every calibration of the catalogue in the order of the ids; the timeout is that of one page.

    One whose file is broken is skipped with an UnreadableEntryWarning. Raises the errors of the connection, while
    iterating.
    """
    return Listing(operations.LIST_CALIBRATIONS, timeout_seconds)


def get_calibration(calibration: str, *, timeout_seconds: Timeout = UNSET) -> Question[Calibration]:
    """The calibration with the id `calibration`.

    Raises InvalidArgumentError, NotFoundError with near names, and the errors of the connection.
    """
    request = CalibrationRequest(calibration=names.calibration_id(calibration))
    return question(operations.GET_CALIBRATION, request.calibration, timeout_seconds)


def fit_engine_calibration(
    table: EngineTable,
    *,
    engine_calibration: str = "",
    sources: Sequence[str] = (),
    timeout_seconds: Timeout = UNSET,
) -> Question[EngineCalibration]:
    """The fit of what the passes of an engine take, stored under the id `engine_calibration` where that is given.

    `sources` say where the times come from. The same times and sources under the same name again are the engine
    calibration that exists. Formulas: `docs/formulas.md`, engine times.

    Raises InvalidArgumentError, NotFoundError for an unknown model, AlreadyExistsError where the name is taken by other
    content, FailedPreconditionError where the catalogue cannot be written, and the errors of the connection.
    """
    from linkbound.domain.engine import FitEngineCalibrationRequest

    request = FitEngineCalibrationRequest(
        table=table,
        engine_calibration=names.engine_calibration_id(engine_calibration),
        sources=as_tuple(sources),
    )
    return question(operations.FIT_ENGINE_CALIBRATION, request, timeout_seconds)


def list_engine_calibrations(*, timeout_seconds: Timeout = UNSET) -> Listing[EngineCalibration]:
    """Every engine calibration of the catalogue in the order of the ids; the timeout is that of one page.

    One whose file is broken is skipped with an UnreadableEntryWarning. Raises the errors of the connection, while
    iterating.
    """
    return Listing(operations.LIST_ENGINE_CALIBRATIONS, timeout_seconds)


def get_engine_calibration(engine_calibration: str, *, timeout_seconds: Timeout = UNSET) -> Question[EngineCalibration]:
    """The engine calibration with the id `engine_calibration`.

    Raises InvalidArgumentError, NotFoundError with near names, and the errors of the connection.
    """
    from linkbound.domain.engine import EngineCalibrationRequest

    request = EngineCalibrationRequest(engine_calibration=names.engine_calibration_id(engine_calibration))
    return question(operations.GET_ENGINE_CALIBRATION, request.engine_calibration, timeout_seconds)
