"""Ids of models, hardware, runs and writers: their patterns, and resource names made of them."""

from __future__ import annotations

from linkbound.domain.rules import pattern

_ID = r"[a-z0-9][a-z0-9._-]{0,63}"
_ID_IN_WORDS = "an id of 1 to 64 of a-z, 0-9, '.', '_' and '-' that starts with a letter or digit"

CATALOG_ID = pattern(_ID, _ID_IN_WORDS)
CATALOG_NAME = pattern(r"[ -~]{1,64}", "a name of 1 to 64 printable ASCII characters")
"""What a request may call an entry: wider than an id, so that a typo is answered with near names, not with a rule."""
OPTIONAL_CATALOG_NAME = pattern(r"[ -~]{0,64}", "empty or a name of 1 to 64 printable ASCII characters")
OPTIONAL_CATALOG_ID = pattern(f"|{_ID}", f"empty or {_ID_IN_WORDS}")
RUN_ID = CATALOG_ID
OPTIONAL_RUN_ID = OPTIONAL_CATALOG_ID
WRITER_ID = pattern(r"[A-Za-z0-9._:-]{1,128}", "a writer id of 1 to 128 of a-z, A-Z, 0-9, '.', '_', ':' and '-'")

MODELS = "models"
HARDWARE = "hardware"
CALIBRATIONS = "calibrations"
ENGINE_CALIBRATIONS = "engineCalibrations"
SWITCHES = "switches"
NICS = "nics"
RUNS = "runs"


def resource_name(collection: str, resource_id: str) -> str:
    """The name of a resource: `models/glm-5.3`."""
    return f"{collection}/{resource_id}"


def resource_id(collection: str, name: str) -> str:
    """The id in a resource name; a bare id is returned as it is."""
    return name.removeprefix(f"{collection}/")
