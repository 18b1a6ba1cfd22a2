"""`linkbound models`: the catalogue, and what is imported into it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping

import click

from linkbound.cli import model_text
from linkbound.cli.config_file import QuantisationBeside, config_path, quantisation_beside, read_config
from linkbound.cli.connect import estimator_client
from linkbound.cli.failures import USAGE, Failure, failure_of, naming
from linkbound.cli.listing import listed
from linkbound.cli.options import Reply, reply_option
from linkbound.cli.output import print_message, print_text
from linkbound.cli.params import REAL
from linkbound.cli.table import table
from linkbound.domain.catalog import Model
from linkbound.domain.errors import InvalidArgumentError
from linkbound.domain.words import counted

_CONFIG = "config_json"
_QUANTISATION = "quantization_json"
_IMPORT_OPTIONS = {
    "model": "--name",
    "display_name": "--display-name",
    "weight_bits_per_parameter": "--weight-bits",
}


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def models() -> None:
    """The models of the catalogue."""


@models.command("list")
@reply_option("estimator")
@naming({})
def list_models(*, reply: Reply) -> None:
    """Lists the models."""
    with estimator_client(reply.target, reply.data) as estimator:
        entries, unreadable = listed(estimator.list_models())
    if reply.as_json:
        from linkbound.convert.catalog_service import list_models_response_to_proto
        from linkbound.domain.paging import Page

        print_message(list_models_response_to_proto(Page(entries=entries, unreadable=unreadable)))
    else:
        rows = [model_text.list_cells(model) for model in entries]
        print_text(counted(len(entries), "model"), table(model_text.LIST_COLUMNS, rows))


@models.command("show")
@click.argument("model")
@reply_option("estimator")
@naming({"model": "MODEL", "model_id": "MODEL", "name": "MODEL"})
def show_model(*, model: str, reply: Reply) -> None:
    """Shows what the catalogue knows of MODEL, with sources."""
    with estimator_client(reply.target, reply.data) as estimator:
        answer = estimator.get_model(model)
    _print(answer, reply)


@models.command("import")
@click.argument("file", type=click.Path(allow_dash=True))
@click.option(
    "--quantization",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="The file beside it that says how the weights are quantised, such as hf_quant_config.json.",
)
@click.option("--weight-bits", type=REAL, help="Mean bits of one stored weight, in place of what the files say.")
@click.option("--name", metavar="MODEL", help="Name to keep it under; without one it is only shown.")
@click.option("--display-name", default="", metavar="TEXT", help="What people call it; default: the name.")
@reply_option("estimator")
@naming(_IMPORT_OPTIONS)
def import_model(
    *,
    file: str,
    quantization: str | None,
    weight_bits: float | None,
    name: str | None,
    display_name: str,
    reply: Reply,
) -> None:
    """Reads FILE, a Hugging Face config.json (- is standard input) or the folder of one, and shows what it says.

    A file beside config.json that says how the weights are quantised is read with it. With --name the model is kept in
    the catalogue, and --model takes that name from then on, over the same --data. Nothing is fetched.
    """
    if name == "":
        raise Failure("--name: is empty; leave the option out to show the model without keeping it", USAGE)
    config = config_path(file)
    config_json = read_config(config, "FILE")
    if quantization:
        parameter, beside = (
            "--quantization",
            QuantisationBeside(quantization, read_config(quantization, "--quantization")),
        )
    else:
        parameter, beside = "FILE", quantisation_beside(config, config_json, "FILE")
    named = {_CONFIG: f"FILE {config!a}", _QUANTISATION: f"{parameter} {beside.file!a}"}
    with estimator_client(reply.target, reply.data) as estimator, _naming_files(named):
        answer = estimator.import_model(
            config_json,
            model=name or "",
            display_name=display_name,
            validate_only=name is None,
            quantization_json=beside.text,
            weight_bits_per_parameter=weight_bits,
        )
    _print(answer, reply)


@contextlib.contextmanager
def _naming_files(named: Mapping[str, str]) -> Iterator[None]:
    """Tells what is wrong with a document by its file, and by the path within it."""
    try:
        yield
    except InvalidArgumentError as error:
        typed = {
            violation.field: f"{file}: {path}" if (path := violation.field.removeprefix(field).lstrip(".: ")) else file
            for violation in error.field_violations
            for field, file in named.items()
            if violation.field.startswith(field)
        }
        raise failure_of(error, {**_IMPORT_OPTIONS, **typed}) from error


def _print(model: Model, reply: Reply) -> None:
    if reply.as_json:
        from linkbound.convert.catalog_service import model_to_proto

        print_message(model_to_proto(model))
    else:
        print_text(*model_text.details(model))
