"""`linkbound models`: the catalogue."""

from __future__ import annotations

import click

from linkbound.cli import text
from linkbound.cli.connect import estimator_client
from linkbound.cli.failures import naming
from linkbound.cli.options import Reply, reply_option
from linkbound.cli.output import print_message, print_text
from linkbound.cli.table import Column, pairs, right, table
from linkbound.domain.catalog import Model

_LIST_COLUMNS = (
    Column("model"),
    Column("name"),
    right("layers"),
    right("hidden"),
    right("all-reduces"),
    right("parameters"),
    right("active"),
)
_COLLECTIVE_COLUMNS = (Column("collective"), right("width"), right("count"), Column("one row per"), Column("reason"))


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def models() -> None:
    """The models of the catalogue."""


@models.command("list")
@reply_option("estimator")
@naming({})
def list_models(*, reply: Reply) -> None:
    """Lists the models."""
    with estimator_client(reply.target) as estimator:
        entries = tuple(estimator.list_models())
    if reply.as_json:
        from linkbound.convert.catalog_service import list_models_response_to_proto
        from linkbound.domain.paging import Page

        print_message(list_models_response_to_proto(Page(entries=entries)))
    else:
        print_text(f"{len(entries)} models", table(_LIST_COLUMNS, [_list_cells(model) for model in entries]))


@models.command("show")
@click.argument("model")
@reply_option("estimator")
@naming({"model": "MODEL", "model_id": "MODEL", "name": "MODEL"})
def show_model(*, model: str, reply: Reply) -> None:
    """Shows what the catalogue knows of MODEL, with sources."""
    with estimator_client(reply.target) as estimator:
        answer = estimator.get_model(model)
    if reply.as_json:
        from linkbound.convert.catalog_service import model_to_proto

        print_message(model_to_proto(answer))
    else:
        print_text(_headline(answer), pairs(_details(answer)), _collectives(answer), pairs(_notes(answer)))


def _headline(model: Model) -> str:
    return f"{model.display_name}: {model.all_reduce_count} all-reduces per pass, hidden size {model.hidden_size:,}"


def _list_cells(model: Model) -> list[str]:
    return [
        model.model_id,
        model.display_name,
        f"{model.layer_count}",
        f"{model.hidden_size:,}",
        f"{model.all_reduce_count}",
        _parameters(model.total_parameters),
        _parameters(model.active_parameters),
    ]


def _details(model: Model) -> list[tuple[str, str]]:
    rows = [
        ("layers", f"{model.layer_count}"),
        ("attention heads", f"{model.attention_head_count}"),
        ("key-value heads", f"{model.key_value_head_count}"),
        ("vocabulary", f"{model.vocabulary_size:,}"),
        ("routed experts", f"{model.expert_count}" if model.expert_count else "none"),
        ("bytes per activation value", f"{model.activation_value_bytes}"),
        ("parameters without MTP layers", _parameters(model.total_parameters)),
        ("parameters of MTP layers", _parameters(model.mtp_parameters)),
        ("active parameters", _parameters(model.active_parameters)),
    ]
    bits = model.weight_bits_per_parameter
    rows.append(("bits per stored weight", "not stated" if bits is None else f"{bits:g}"))
    return rows


def _collectives(model: Model) -> str:
    rows = [
        [
            collective.kind.name.lower().replace("_", "-"),
            f"{collective.width:,}",
            f"{collective.count}",
            collective.row_scope.name.lower(),
            collective.reason,
        ]
        for collective in model.collectives
    ]
    return table(_COLLECTIVE_COLUMNS, rows)


def _notes(model: Model) -> list[tuple[str, str]]:
    return [
        *text.assumed(model.assumptions),
        *(("not understood", key) for key in model.unused_keys),
        *(("source", source) for source in model.sources),
    ]


def _parameters(count: int | None) -> str:
    if count is None:
        return "not stated"
    return f"{count / 1e9:,.2f} B"
