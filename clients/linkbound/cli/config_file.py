"""A config.json as a file: what can be read of it before the estimator judges it."""

from __future__ import annotations

import json
from pathlib import Path

import click
from attrs import field, frozen

from linkbound.cli.failures import USAGE, Failure, report
from linkbound.domain.catalog import LARGEST_CONFIG_BYTES
from linkbound.domain.quantisation_file import FILE_NAMES, names_quantisation, quantisation_in

STANDARD_INPUT = "-"
_BYTES_READ = LARGEST_CONFIG_BYTES + 1
_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_FIRST_BYTES = 64


CONFIG_NAME = "config.json"
"""What the config is called in the folder of a model."""


def config_path(typed: str) -> str:
    """The config that is meant by a path: the file, or the one in the folder."""
    return str(Path(typed) / CONFIG_NAME) if typed != STANDARD_INPUT and _is_folder(typed) else typed


@frozen
class QuantisationBeside:
    """The file beside a config that says how its weights are quantised, and its text; both empty without one."""

    file: str = ""
    text: str = field(default="", repr=False)


def quantisation_beside(config: str, config_json: str, parameter: str) -> QuantisationBeside:
    """The first file in the folder of a `config.json` that names a quantisation, as engines look for it.

    One that names none is told and left aside. Raises Failure where one cannot be read, unless the config names its
    quantisation itself, which goes first.
    """
    path = Path(config)
    if config == STANDARD_INPUT or path.name != CONFIG_NAME:
        return NOTHING_BESIDE
    values = _json_of(config_json)
    is_stated = isinstance(values, dict) and names_quantisation(values)
    for beside in (str(path.with_name(name)) for name in FILE_NAMES if path.with_name(name).is_file()):
        try:
            text = read_config(beside, parameter)
        except Failure:
            if is_stated:
                continue
            raise
        found = _json_of(text)
        if isinstance(found, dict) and quantisation_in(found) is not None:
            return QuantisationBeside(beside, text)
        if found is not None:
            report(f"{beside!a} names no quantisation, and is left aside")
        elif not is_stated:
            raise Failure(f"{parameter}: {beside!a} is not JSON", USAGE)
    return NOTHING_BESIDE


NOTHING_BESIDE = QuantisationBeside()


def _json_of(text: str) -> object:
    """What a text holds; None where it is not JSON."""
    try:
        return json.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        return None


def _is_folder(typed: str) -> bool:
    # What no path can be, such as one with a NUL, is refused where it is read.
    try:
        return Path(typed).is_dir()
    except (OSError, ValueError):
        return False


def read_config(file: str, parameter: str) -> str:
    """The text of the config `file`, `-` being standard input; `parameter` is what the person gave it as.

    Raises Failure where it cannot be read; whether it is a config is for the estimator.
    """
    try:
        with click.open_file(file, "rb") as source:
            content: bytes = source.read(_BYTES_READ)
    except (OSError, ValueError) as error:
        problem = error.strerror if isinstance(error, OSError) else str(error)
        raise Failure(f"{parameter}: cannot read {file!a}: {problem}", USAGE) from error
    if len(content) > LARGEST_CONFIG_BYTES:
        raise Failure(f"{parameter}: {file!a} has more than {LARGEST_CONFIG_BYTES} bytes, and is no config.json", USAGE)
    if not content:
        raise Failure(f"{parameter}: {file!a} is empty", USAGE)
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        if content.startswith(_UTF_16_MARKS):
            raise Failure(f"{parameter}: {file!a} is UTF-16 text; a config.json is UTF-8", USAGE) from error
        if content.lstrip().startswith(b"{") and b"\0" not in content[:_FIRST_BYTES]:
            told = f"byte 0x{content[error.start]:02x} at offset {error.start}"
            raise Failure(f"{parameter}: {file!a} is not UTF-8 text: {told}", USAGE) from error
    # Bytes that are no text stay recognisable: the estimator says what kind of file has them.
    return content.decode(errors="replace")
