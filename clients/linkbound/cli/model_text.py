"""A model as people read it: what it is made of, by part, and what it puts on the network and in memory."""

from __future__ import annotations

from collections.abc import Iterator

from linkbound.cli import text
from linkbound.cli.table import Column, pairs, right, table
from linkbound.domain.catalog import CacheGroup, Model, ParameterGroup, RowScope, WeightFormatSource

LIST_COLUMNS = (
    Column("model"),
    Column("name"),
    right("layers"),
    right("hidden"),
    right("all-reduces"),
    right("parameters"),
    right("active"),
)
_COLLECTIVE_COLUMNS = (Column("collective"), right("width"), right("count"), Column("one row per"), Column("reason"))
_PARAMETER_COLUMNS = (
    Column("part"),
    right("parameters"),
    right("per token"),
    right("stored"),
    right("layers"),
    Column("over the ranks"),
)
_CACHE_COLUMNS = (
    Column("cache"),
    right("layers"),
    right("values per token"),
    right("FP8 bytes per token"),
    right("in any type"),
    right("state"),
    right("tokens kept"),
    right("tokens read"),
)
_SPLITS = {"SLICED": "sliced", "REPLICATED": "whole on each", "KEY_VALUE_HEADS": "by key-value heads"}


def list_cells(model: Model) -> list[str]:
    """One line of the list."""
    return [
        model.model_id,
        model.display_name,
        f"{model.layer_count}",
        f"{model.hidden_size:,}",
        f"{model.all_reduce_count}",
        _parameters(model.total_parameters),
        _parameters(model.active_parameters),
    ]


def details(model: Model) -> Iterator[str]:
    """Paragraphs about a model."""
    yield f"{model.display_name}: {model.all_reduce_count} all-reduces per pass, hidden size {model.hidden_size:,}"
    yield pairs(_facts(model))
    if model.parameter_groups:
        yield table(_PARAMETER_COLUMNS, [_parameter_cells(group) for group in model.parameter_groups])
    yield table(_COLLECTIVE_COLUMNS, _collective_rows(model))
    if model.cache_groups:
        yield table(_CACHE_COLUMNS, [_cache_cells(group) for group in model.cache_groups])
    notes = _notes(model)
    if notes:
        yield pairs(notes)


def _facts(model: Model) -> list[tuple[str, str]]:
    bits = model.weight_bits_per_parameter
    experts = f"{model.expert_count}, of which a token uses {model.active_expert_count}"
    return [
        ("layers", f"{model.layer_count}"),
        ("attention heads", _count(model.attention_head_count)),
        ("key-value heads", _count(model.key_value_head_count)),
        ("vocabulary", _count(model.vocabulary_size)),
        ("routed experts", experts if model.expert_count else "none"),
        ("MTP layers", f"{model.mtp_layer_count}" if model.mtp_layer_count else "none"),
        ("bytes per activation value", f"{model.activation_value_bytes}"),
        ("parameters without MTP layers", _parameters(model.total_parameters)),
        ("parameters of MTP layers", _parameters(model.mtp_parameters)),
        ("active parameters", _parameters(model.active_parameters)),
        ("bits per stored weight", "not stated" if bits is None else f"{bits:.4g}{_format_source(model)}"),
    ]


def _format_source(model: Model) -> str:
    is_open = model.weight_format_source is WeightFormatSource.DATA_TYPE
    return ", the number type of the config: it names no quantisation, which a file beside it may do" if is_open else ""


def _parameter_cells(group: ParameterGroup) -> list[str]:
    return [
        group.part.name.lower().replace("_", " "),
        f"{group.parameter_count:,}",
        f"{group.active_parameter_count:,}",
        "not stated" if group.weight_bytes is None else text.size_bytes(group.weight_bytes),
        f"{group.layer_count}" if group.layer_count else "",
        _SPLITS.get(group.split.name, "not known"),
    ]


def _collective_rows(model: Model) -> list[list[str]]:
    words = {RowScope.TOKEN: "token", RowScope.LOGITS: "logits"}
    return [
        [
            collective.kind.name.lower().replace("_", "-"),
            f"{collective.width:,}",
            f"{collective.count}",
            words.get(collective.row_scope, "not known"),
            collective.reason,
        ]
        for collective in model.collectives
    ]


def _cache_cells(group: CacheGroup) -> list[str]:
    return [
        group.reason,
        f"{group.layer_count}",
        f"{group.values_per_token:,}" if group.values_per_token else "",
        f"{group.fp8_bytes_per_token:,}" if group.fp8_bytes_per_token else "",
        f"{group.fixed_bytes_per_token:,}" if group.fixed_bytes_per_token else "",
        text.size_bytes(group.state_bytes_per_request) if group.state_bytes_per_request else "",
        _limit(group, group.window_tokens),
        _limit(group, group.read_tokens),
    ]


def _limit(group: CacheGroup, tokens: int | None) -> str:
    if not group.values_per_token:
        return ""
    return "all" if tokens is None else f"{tokens:,}"


def _notes(model: Model) -> list[tuple[str, str]]:
    return [
        *text.assumed(model.assumptions),
        *(("not understood", key) for key in model.unused_keys),
        *(("not determined", sentence) for sentence in model.undetermined),
        *(("source", source) for source in model.sources),
    ]


def _count(value: int) -> str:
    return f"{value:,}" if value else "not stated"


def _parameters(count: int | None) -> str:
    if count is None:
        return "not stated"
    return f"{count / 1e9:,.2f} B"
