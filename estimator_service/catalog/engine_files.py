"""Engine calibrations of the catalogue: one TOML file each, with what was measured.

The fit is made when a file is read, so that a file of an older version gains what the fit has learned since.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from attrs import evolve

from estimator_service.catalog.files import CatalogError
from estimator_service.catalog.imports import InlineModels
from estimator_service.catalog.toml_text import toml_text
from estimator_service.core.engine_times.fit import fit_engine
from linkbound.domain.catalog import Model
from linkbound.domain.engine import EngineCalibration, EngineTable, FitEngineCalibrationRequest
from linkbound.domain.errors import Error
from linkbound.importers.engine_table import EngineFile, read_engine_file
from linkbound.importers.tables import to_table


def read_engine_calibration(path: Path, find_model: Callable[[str], Model]) -> EngineCalibration:
    """The fit of the times that a file holds, to the model that `find_model` finds. Raises CatalogError."""
    try:
        content = read_engine_file(path.read_text(encoding="utf-8"))
        request = FitEngineCalibrationRequest(table=content.table, sources=content.sources)
        model = _model_of(request.table, find_model)
        fit = fit_engine(request.table, model, sources=request.sources)
    except (OSError, UnicodeDecodeError, Error) as error:
        # A model that is not there is a fault of this file: the entry itself is.
        raise CatalogError(f"{path}: {error}") from error
    return evolve(fit, engine_calibration_id=path.stem)


def engine_calibration_text(calibration: EngineCalibration) -> str:
    """The file of an engine calibration, as `read_engine_calibration` reads it."""
    content = to_table(EngineFile(table=calibration.table, sources=calibration.sources))
    return toml_text({**{key: value for key, value in content.items() if key != "table"}, **content["table"]})


def _model_of(table: EngineTable, find_model: Callable[[str], Model]) -> Model:
    if table.model_config_json:
        return InlineModels().get(table.model_config_json, "model_config_json")
    return find_model(table.model)
