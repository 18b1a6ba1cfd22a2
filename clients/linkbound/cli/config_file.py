"""A config.json as a file: what can be read of it before the estimator judges it."""

from __future__ import annotations

from pathlib import Path

import click

from linkbound.cli.failures import USAGE, Failure
from linkbound.domain.catalog import LARGEST_CONFIG_BYTES
from linkbound.domain.quantisation_file import FILE_NAMES

STANDARD_INPUT = "-"
_BYTES_READ = LARGEST_CONFIG_BYTES + 1
_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_FIRST_BYTES = 64


CONFIG_NAME = "config.json"
"""What the config is called in the folder of a model."""


def config_path(typed: str) -> str:
    """The config that is meant by a path: the file, or the one in the folder."""
    return str(Path(typed) / CONFIG_NAME) if typed != STANDARD_INPUT and _is_folder(typed) else typed


def quantisation_beside(config: str) -> str:
    """The file in the folder of a `config.json` that says how the weights are quantised, as engines look for it."""
    path = Path(config)
    if config == STANDARD_INPUT or path.name != CONFIG_NAME:
        return ""
    return next((str(path.with_name(name)) for name in FILE_NAMES if path.with_name(name).is_file()), "")


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
