"""`--model`: a model of the catalogue by its name, or one that its config.json describes, by the path of the file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from attrs import field, frozen

from linkbound.cli.config_file import CONFIG_NAME, quantisation_beside, read_config
from linkbound.cli.failures import USAGE, Failure
from linkbound.domain.errors import InvalidArgumentError

Command = TypeVar("Command", bound=Callable[..., Any])

OPTION = "--model"
_SUFFIX = ".json"


@frozen
class ModelChoice:
    """What was typed, and what is asked about: the name of a model, or the text of a config in its place."""

    typed: str
    name: str = ""
    config_json: str = field(default="", repr=False)


NO_MODEL = ModelChoice("")


def _choice(_context: click.Context, _parameter: click.Parameter, typed: str | None) -> ModelChoice:
    if typed is None:
        return NO_MODEL
    if not typed.strip():
        raise click.UsageError(f"{OPTION}: is empty")
    path = _path(typed)
    if path is None:
        return ModelChoice(typed, name=typed)
    return ModelChoice(typed, config_json=_read(str(path)))


def _read(path: str) -> str:
    """The config, with the quantisation that stands in a file beside it."""
    config_json = read_config(path, OPTION)
    beside = quantisation_beside(path, config_json, OPTION)
    if not beside.file:
        return config_json
    from linkbound.client.model_config import with_quantization

    try:
        return with_quantization(config_json, beside.text)
    except InvalidArgumentError:
        # What is wrong with the config is for the estimator to tell.
        return config_json


def _name(_context: click.Context, _parameter: click.Parameter, typed: str) -> str:
    if typed and _path(typed) is not None:
        raise Failure(
            f"{OPTION}: {typed!a} is a file, and this command takes names; `linkbound models import FILE --name NAME`"
            " keeps its model under one",
            USAGE,
        )
    return typed


def _path(typed: str) -> Path | None:
    """The config that is meant: a name that ends in .json, a path that is there, or the config.json of a folder."""
    has_separator = os.sep in typed or (os.altsep is not None and os.altsep in typed)
    is_path = has_separator and (_is_there(typed) or _is_a_path(typed))
    if not (is_path or typed.endswith(_SUFFIX) or typed in (os.curdir, os.pardir)):
        return None
    path = Path(typed)
    return path / CONFIG_NAME if path.is_dir() else path


def _is_there(typed: str) -> bool:
    # What no path can be, such as one with a NUL, is a name that the estimator refuses.
    try:
        return Path(typed).exists()
    except (OSError, ValueError):
        return False


def _is_a_path(typed: str) -> bool:
    """Whether it can be nothing else. `models/glm-5.3` is a name, and so may `zai-org/GLM-5.1` be one that is near."""
    return typed.startswith((".", "~", os.sep))


model_option = click.option(
    OPTION,
    required=True,
    metavar="MODEL",
    callback=_choice,
    help="A model of the catalogue (`linkbound models list`), or the path of a Hugging Face config.json or of its"
    " folder; NAME is one of the catalogue, ./NAME a path.",
)
"""`model: ModelChoice`."""


def optional_model_option(description: str) -> Callable[[Command], Command]:
    """`model: ModelChoice`, of a command that may go without; `NO_MODEL` then."""
    return click.option(
        OPTION,
        metavar="MODEL",
        callback=_choice,
        help=f"{description} It may be the path of a config.json or of its folder: ./NAME.",
    )


def model_name_option(description: str) -> Callable[[Command], Command]:
    """`model: str`, of a command that takes no file; empty without the option."""
    return click.option(OPTION, default="", metavar="MODEL", callback=_name, help=description)
