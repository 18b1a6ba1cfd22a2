"""Settings of the ingest service's server, and the environment variables that set them."""

from __future__ import annotations

from collections.abc import Mapping

from serving.settings import VARIABLES, ServerSettings, Variable, describe_settings, port_variable, read_settings

DEFAULT_SERVER_SETTINGS = ServerSettings(port=50_052)
SERVER_VARIABLES: tuple[Variable, ...] = (port_variable("LINKBOUND_INGEST_PORT"), *VARIABLES)
"""What the ingest service's server reads from the environment."""


def server_settings_from_environment(environment: Mapping[str, str]) -> ServerSettings:
    """Settings of the ingest service's server. Raises InvalidArgumentError with every violation, named by variable."""
    return read_settings(SERVER_VARIABLES, environment, DEFAULT_SERVER_SETTINGS)


def describe_server_settings() -> str:
    """The variables with their defaults, one a line."""
    return describe_settings(SERVER_VARIABLES, DEFAULT_SERVER_SETTINGS)
