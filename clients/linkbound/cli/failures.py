"""What went wrong, in one message and one exit code."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import ParamSpec, TypeVar

import click

from linkbound.domain.errors import (
    AlreadyExistsError,
    DeadlineExceededError,
    Error,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
    UnavailableError,
)

OTHER = 1
USAGE = 2
UNREACHABLE = 3
INTERRUPTED = 130
PIPE_CLOSED = 141
"""What a shell says of a tool that ends because its reader went away: 128 and the number of SIGPIPE."""

NO_OPTIONS: Mapping[str, str] = {}
_COMMON_OPTIONS = {"target": "--target", "token": "LINKBOUND_TOKEN or LINKBOUND_TOKEN_FILE"}

_EXIT_CODES: tuple[tuple[type[Error], int], ...] = (
    (InvalidArgumentError, USAGE),
    (NotFoundError, USAGE),
    (AlreadyExistsError, USAGE),
    (FailedPreconditionError, USAGE),
    (OutOfRangeError, USAGE),
    (UnavailableError, UNREACHABLE),
    (DeadlineExceededError, UNREACHABLE),
)

_SHOWN_VIOLATIONS = 20
"""Lines of one failure at most: a list may have thousands of entries, all wrong."""

_INDEX = re.compile(r"\[\d+\]")
_INLINE_CONFIG = re.compile(r"(?:workload\.)?model_config_json[.: ]*(?P<path>.*)", re.DOTALL)
"""A config that `--model` brought as a file, and the path within it."""

P = ParamSpec("P")
T = TypeVar("T")


class Failure(Exception):  # noqa: N818 - it ends the command; what went wrong is its cause
    """A message for a person and the exit code that goes with it."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.message = message
        self.exit_code = exit_code


def exit_code_of(error: Error) -> int:
    """The exit code of a domain error."""
    return next((code for kind, code in _EXIT_CODES if isinstance(error, kind)), OTHER)


def failure_of(error: Error, options: Mapping[str, str] = NO_OPTIONS) -> Failure:
    """The failure that tells a person about `error`; `options` maps field paths to what the person typed.

    What a path that ends with a dot is mapped to stands before the rest of the paths that begin with it.
    """
    if isinstance(error, InvalidArgumentError):
        names = {**_COMMON_OPTIONS, **options}
        # Two fields may have come from one option.
        lines = list(dict.fromkeys(f"{_typed_name(v.field, names)}: {v.description}" for v in error.field_violations))
        rest = [f"and {len(lines) - _SHOWN_VIOLATIONS} more"] if len(lines) > _SHOWN_VIOLATIONS else []
        message = "\n".join([*lines[:_SHOWN_VIOLATIONS], *rest])
    elif isinstance(error, NotFoundError) and error.resource.type in options:
        typed_as = options[error.resource.type]
        hint = _path_of_that_name(error.resource.name) if typed_as == "--model" else ""
        message = f"{typed_as}: {error.message}{hint}"
    else:
        message = error.message
    if error.request_id:
        message += f" (request {error.request_id})"
    return Failure(message, exit_code_of(error))


def _typed_name(field: str, names: Mapping[str, str]) -> str:
    """What the person typed for `field`; an entry of a list came with the option of the list.

    With `FILE: ` for `table.`, `table.points[0]` is `FILE: points[0]`.
    """
    config = _INLINE_CONFIG.fullmatch(field)
    if config is not None:
        return f"--model: {config['path']}" if config["path"] else "--model"
    exact = names.get(field) or names.get(_INDEX.sub("", field))
    if exact:
        return exact
    file, dot, place = field.partition(".")
    return names[file + dot] + place if dot and file + dot in names else field


def _path_of_that_name(name: str) -> str:
    """That a file or folder is called as the model is that the catalogue lacks, where names of the catalogue win."""
    try:
        path = Path(name)
        kind = "folder" if path.is_dir() else "file" if path.is_file() else ""
    except (OSError, ValueError):
        return ""
    return f"; there is a {kind} {name!r} here, which is meant by ./{name}" if kind else ""


def naming(options: Mapping[str, str]) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Makes a command report domain errors by the options it was given; see `failure_of`."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(function)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                return function(*args, **kwargs)
            except Error as error:
                raise failure_of(error, options) from error

        return wrapper

    return decorate


def usage_failure(error: click.ClickException) -> Failure:
    """The failure of a wrong command line: `--link: '20q' is not a rate such as ...`, and where help is."""
    message = error.format_message()
    if isinstance(error, click.MissingParameter) and error.param is not None:
        message = f"{_parameter_name(error.param)}: is missing"
    elif isinstance(error, click.BadParameter) and error.param is not None:
        message = f"{_parameter_name(error.param)}: {error.message}"
    if isinstance(error, click.UsageError) and error.ctx is not None:
        message += f"\nhelp: {error.ctx.command_path} --help"
    return Failure(message, error.exit_code)


def is_help(error: click.UsageError) -> bool:
    """Whether all that is wrong is that a group was given no command: click answers with its help."""
    return error.ctx is not None and error.message == error.ctx.get_help()


def report(message: str) -> None:
    """Prints a failure on stderr."""
    click.echo(f"linkbound: {message}", err=True)


def _parameter_name(parameter: click.Parameter) -> str:
    """An option as it is typed, an argument as help shows it."""
    return parameter.opts[0] if isinstance(parameter, click.Option) else parameter.human_readable_name.upper()
