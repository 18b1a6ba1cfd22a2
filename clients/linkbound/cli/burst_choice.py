"""`--to-bursts`: bursts on the link to change to, of an engine calibration by its name or of a TOML file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from linkbound.cli.failures import USAGE, Failure, failure_of
from linkbound.cli.measured_file import measured_text
from linkbound.domain.errors import Error

if TYPE_CHECKING:
    from linkbound.client.estimator import EstimatorClient
    from linkbound.importers.engine_table import BurstFile

OPTION = "--to-bursts"
_SUFFIX = ".toml"


def seen_bursts(typed: str, estimator: EstimatorClient) -> BurstFile:
    """The bursts that `typed` names, and the link that they were seen on where it says so."""
    from linkbound.importers.engine_table import BurstFile, read_burst_file

    try:
        if typed.endswith(_SUFFIX) or os.sep in typed:
            return read_burst_file(measured_text(Path(typed), OPTION))
        table = estimator.get_engine_calibration(typed).table
    except Error as error:
        raise failure_of(error, {"file": OPTION, "engine_calibration": OPTION}) from error
    if table.bursts is None:
        raise Failure(f"{OPTION}: the engine calibration {typed!a} has no bursts", USAGE)
    return BurstFile(bursts=table.bursts, link=table.link)
