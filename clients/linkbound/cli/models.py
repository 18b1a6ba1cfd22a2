"""`linkbound models`: the catalogue, and what is imported into it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import click

from linkbound.cli import model_text
from linkbound.cli.connect import estimator_client
from linkbound.cli.failures import USAGE, Failure, failure_of, naming
from linkbound.cli.options import Reply, data_option, reply_option
from linkbound.cli.output import print_message, print_text
from linkbound.cli.table import table
from linkbound.domain.catalog import LARGEST_CONFIG_BYTES, Model
from linkbound.domain.errors import InvalidArgumentError

_BYTES_READ = LARGEST_CONFIG_BYTES + 1
_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_FIRST_BYTES = 64
_CONFIG = "config_json"
_IMPORT_OPTIONS = {"model": "--name", "display_name": "--display-name"}


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def models() -> None:
    """The models of the catalogue."""


@models.command("list")
@data_option
@reply_option("estimator")
@naming({})
def list_models(*, data: str | None, reply: Reply) -> None:
    """Lists the models."""
    with estimator_client(reply.target, data) as estimator:
        entries = tuple(estimator.list_models())
    if reply.as_json:
        from linkbound.convert.catalog_service import list_models_response_to_proto
        from linkbound.domain.paging import Page

        print_message(list_models_response_to_proto(Page(entries=entries)))
    else:
        rows = [model_text.list_cells(model) for model in entries]
        print_text(f"{len(entries)} models", table(model_text.LIST_COLUMNS, rows))


@models.command("show")
@click.argument("model")
@data_option
@reply_option("estimator")
@naming({"model": "MODEL", "model_id": "MODEL", "name": "MODEL"})
def show_model(*, model: str, data: str | None, reply: Reply) -> None:
    """Shows what the catalogue knows of MODEL, with sources."""
    with estimator_client(reply.target, data) as estimator:
        answer = estimator.get_model(model)
    _print(answer, reply)


@models.command("import")
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True))
@click.option("--name", metavar="MODEL", help="Name to keep it under; without one it is only shown.")
@click.option("--display-name", default="", metavar="TEXT", help="What people call it; default: the name.")
@data_option
@reply_option("estimator")
@naming(_IMPORT_OPTIONS)
def import_model(*, file: str, name: str | None, display_name: str, data: str | None, reply: Reply) -> None:
    """Reads FILE, a Hugging Face config.json (- is standard input), and shows what it says of the model.

    With --name it is kept in the catalogue, and --model takes that name from then on. Nothing is fetched.
    """
    if name == "":
        raise Failure("--name: is empty; leave the option out to show the model without keeping it", USAGE)
    config_json = read_config(file)
    with estimator_client(reply.target, data) as estimator, _naming_file(file):
        answer = estimator.import_model(
            config_json, model=name or "", display_name=display_name, validate_only=name is None
        )
    _print(answer, reply)


def read_config(file: str) -> str:
    """The text of a config. Raises Failure where it cannot be read; whether it is a config is for the estimator."""
    try:
        with click.open_file(file, "rb") as source:
            content: bytes = source.read(_BYTES_READ)
    except OSError as error:
        raise Failure(f"FILE: cannot read {file!a}: {error.strerror}", USAGE) from error
    if len(content) > LARGEST_CONFIG_BYTES:
        raise Failure(f"FILE: {file!a} has more than {LARGEST_CONFIG_BYTES} bytes, and is no config.json", USAGE)
    if not content:
        raise Failure(f"FILE: {file!a} is empty", USAGE)
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        if content.startswith(_UTF_16_MARKS):
            raise Failure(f"FILE: {file!a} is UTF-16 text; a config.json is UTF-8", USAGE) from error
        if content.lstrip().startswith(b"{") and b"\0" not in content[:_FIRST_BYTES]:
            told = f"byte 0x{content[error.start]:02x} at offset {error.start}"
            raise Failure(f"FILE: {file!a} is not UTF-8 text: {told}", USAGE) from error
    # Bytes that are no text stay recognisable: the estimator says what kind of file has them.
    return content.decode(errors="replace")


@contextlib.contextmanager
def _naming_file(file: str) -> Iterator[None]:
    """Tells what is wrong with a config by its file, and by the path within it."""
    try:
        yield
    except InvalidArgumentError as error:
        paths = {v.field: v.field.removeprefix(_CONFIG).lstrip(".: ") for v in error.field_violations}
        typed = {
            field: f"FILE {file!a}: {path}" if path else f"FILE {file!a}"
            for field, path in paths.items()
            if field.startswith(_CONFIG)
        }
        raise failure_of(error, {**_IMPORT_OPTIONS, **typed}) from error


def _print(model: Model, reply: Reply) -> None:
    if reply.as_json:
        from linkbound.convert.catalog_service import model_to_proto

        print_message(model_to_proto(model))
    else:
        print_text(*model_text.details(model))
