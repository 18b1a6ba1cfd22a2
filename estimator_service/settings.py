"""Settings of the estimator's server, and the environment variables that set them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from serving.settings import VARIABLES, ServerSettings, Variable, describe_settings, port_variable, read_settings

DEFAULT_SERVER_SETTINGS = ServerSettings(port=50_051)
SERVER_VARIABLES: tuple[Variable, ...] = (port_variable("LINKBOUND_ESTIMATOR_PORT"), *VARIABLES)
"""What the estimator's server reads from the environment."""


CATALOG_DIRECTORY_VARIABLE = "LINKBOUND_CATALOG_DIRECTORY"
"""Where imported models are kept and read again; every process of the estimator that serves alike has the same."""


def catalog_directory_from_environment(environment: Mapping[str, str], default: Path) -> Path:
    """The directory of imported entries: that of the environment, else `default`."""
    given = environment.get(CATALOG_DIRECTORY_VARIABLE)
    return Path(given) if given else default


def server_settings_from_environment(environment: Mapping[str, str]) -> ServerSettings:
    """Settings of the estimator's server. Raises InvalidArgumentError with every violation, named by variable."""
    return read_settings(SERVER_VARIABLES, environment, DEFAULT_SERVER_SETTINGS)


def describe_server_settings() -> str:
    """The variables with their defaults, one a line."""
    return describe_settings(SERVER_VARIABLES, DEFAULT_SERVER_SETTINGS)


def describe_catalog_settings() -> str:
    """The variable of the catalogue, as a line like those of the server."""
    return f"{CATALOG_DIRECTORY_VARIABLE}: Directory that imports are kept in; unset: catalog in the data folder."
