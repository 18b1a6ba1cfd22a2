"""Names as callers give them: an id, or a resource name as an answer in JSON shows it."""

from __future__ import annotations

from typing import cast

from linkbound.domain.names import HARDWARE, MODELS, RUNS, resource_id


def model_id(model: str) -> str:
    """The id of a model named `glm-5.3` or `models/glm-5.3`."""
    return cast("str", _id(MODELS, model))


def hardware_id(hardware: str) -> str:
    """The id of hardware named `dgx-spark` or `hardware/dgx-spark`."""
    return cast("str", _id(HARDWARE, hardware))


def run_id(run: str) -> str:
    """The id of a run named `study-109g` or `runs/study-109g`."""
    return cast("str", _id(RUNS, run))


def _id(collection: str, name: object) -> object:
    # What is no text is passed on: the rules of the request judge it.
    return resource_id(collection, name) if isinstance(name, str) else name
