"""A config and the file beside it as one document, which every question takes in place of the name of a model."""

from __future__ import annotations

import json

from linkbound.domain.errors import InvalidArgumentError, Violation
from linkbound.domain.quantisation_file import with_quantisation


def with_quantization(config_json: str, quantization_json: str) -> str:
    """The contents of a `config.json` with those of the file beside it that says how the weights are quantised.

    A quantisation that the config names itself stays. Questions take the result as `model_config_json`. Raises
    InvalidArgumentError where one is no JSON object, or the second names no quantisation.
    """
    config = _object(config_json, "config_json")
    return json.dumps(with_quantisation(config, _object(quantization_json, "quantization_json"), "quantization_json"))


def _object(text: str, field: str) -> dict[str, object]:
    try:
        # A byte order mark says nothing that UTF-8 needs.
        values = json.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        raise InvalidArgumentError([Violation(field, "is not JSON")]) from error
    if not isinstance(values, dict):
        raise InvalidArgumentError([Violation(field, "is not a JSON object")])
    return values
