"""Options of how an instance is cut over ranks and what lies between these, shared by several commands."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, cast

import click

from linkbound.cli.model_choice import ModelChoice, model_option
from linkbound.cli.options import LINK_HELP, PROMPT_FIELDS, Command, link_fields, link_option
from linkbound.cli.params import LINK, LINK_LIST, TOKENS, WHOLE
from linkbound.domain.layout import ExpertParallelism, ParallelLayout
from linkbound.domain.link import Link
from linkbound.domain.memory import DEFAULT_MAX_NUM_BATCHED_TOKENS

_EXPERTS = {
    "all-reduce": ExpertParallelism.ALL_REDUCE,
    "all-gather": ExpertParallelism.ALL_GATHER,
    "all-to-all": ExpertParallelism.ALL_TO_ALL,
}

_WITHIN_NODE_FIELDS = {
    "workload.ranks_per_node": "--ranks-per-node",
    **link_fields("inner_link", "inner-"),
    "inner_link": "--inner-link",
}

NODE_FIELDS = {**_WITHIN_NODE_FIELDS, "calibration": "--calibration"}
"""Where the fields of nodes and the links within them come from on the command line."""

_CUT_OPTIONS = {
    "tensor_parallel_size": "--tp",
    "pipeline_parallel_size": "--pp",
    "data_parallel_size": "--dp",
    "expert_parallelism": "--ep",
}

CUT_FIELDS = {f"layout.{name}": option for name, option in _CUT_OPTIONS.items()}
"""Where the fields of a `ParallelLayout` come from on the command line."""

WORKLOAD_FIELDS = {
    **{f"workload.{name}": option for name, option in _CUT_OPTIONS.items()},
    **_WITHIN_NODE_FIELDS,
}
"""Where the layout of a workload and the link within its nodes come from on the command line."""

INSTANCE_FIELDS = {
    **PROMPT_FIELDS,
    "hardware": "--hardware",
    "workload.hardware": "--hardware",
    "workload.node_count": "--nodes",
    "workload.max_num_batched_tokens": "--max-num-batched-tokens",
    **NODE_FIELDS,
    **link_fields("link"),
}
"""Where the fields of a question about instances on the same nodes come from on the command line."""

LAYOUT_FIELDS = {
    "workload.pipeline_parallel_size": "--pp",
    "workload.data_parallel_size": "--dp",
    "workload.expert_parallelism": "--ep",
    "rank_links": "--rank-links",
    **link_fields("rank_links", "rank-"),
    **NODE_FIELDS,
}
"""Where the fields of a layout come from on the command line."""

Option = Callable[[Command], Command]


def _within_node_options() -> list[Callable[[Any], Any]]:
    return [
        click.option(
            "--ranks-per-node",
            type=WHOLE,
            default=1,
            show_default=True,
            help="Ranks in a node; above 1, --link is what a node has to the others, all adapters together.",
        ),
        click.option("--inner-link", type=LINK, help="Link of each rank within a node, one direction."),
    ]


def _node_options() -> list[Callable[[Any], Any]]:
    return [
        *_within_node_options(),
        click.option(
            "--calibration", default="", metavar="NAME", help="Measured times of collectives, of the catalogue."
        ),
    ]


def node_option(function: Command) -> Command:
    """`--ranks-per-node`, `--inner-link` and `--calibration`, as `nodes`: keywords of a client."""

    @functools.wraps(function)
    def wrapper(*, ranks_per_node: int, inner_link: Any, calibration: str, **values: Any) -> object:
        nodes = {"ranks_per_node": ranks_per_node, "inner_link": inner_link, "calibration": calibration}
        return function(nodes=nodes, **values)

    return cast(Command, _with(_node_options(), wrapper))


def _cut_options() -> list[Callable[[Any], Any]]:
    return [
        click.option("--pp", type=WHOLE, default=1, show_default=True, help="Pipeline stages."),
        click.option("--dp", type=WHOLE, default=1, show_default=True, help="Attention groups that share experts."),
        click.option(
            "--ep",
            type=click.Choice(list(_EXPERTS)),
            help="How whole experts are reached; without it every rank has a slice of each.",
        ),
    ]


def cut_option(function: Command) -> Command:
    """`--tp`, `--pp`, `--dp` and `--ep`, as `layout`: a `ParallelLayout`."""

    @functools.wraps(function)
    def wrapper(*, tp: int, pp: int, dp: int, ep: str | None, **values: Any) -> object:
        layout = ParallelLayout(
            tensor_parallel_size=tp,
            pipeline_parallel_size=pp,
            data_parallel_size=dp,
            expert_parallelism=ExpertParallelism.UNSPECIFIED if ep is None else _EXPERTS[ep],
        )
        return function(layout=layout, **values)

    tp_option = click.option("--tp", type=WHOLE, required=True, help="Tensor-parallel size: ranks of a group.")
    return cast(Command, _with([tp_option, *_cut_options()], wrapper))


pass_tokens_option = click.option(
    "--max-num-batched-tokens",
    type=TOKENS,
    default=DEFAULT_MAX_NUM_BATCHED_TOKENS,
    show_default=True,
    help="Tokens of one pass at most.",
)


def within_node_option(function: Command) -> Command:
    """`--ranks-per-node` and `--inner-link`."""
    return cast(Command, _with(_within_node_options(), function))


def instance_option(*, nodes_help: str, requests_help: str) -> Callable[[Command], Command]:
    """What a question about instances on the same nodes has, as `instance`: client keywords.

    `--model`, `--nodes`, `--prompt-tokens`, `--requests`, `--max-num-batched-tokens`, `--hardware`, and those of nodes
    and of one link: it is no question of a change of links.
    """

    def decorate(function: Command) -> Command:
        @functools.wraps(function)
        def wrapper(
            *,
            model: ModelChoice,
            node_count: int,
            prompt_tokens: int,
            requests: int,
            max_num_batched_tokens: int,
            hardware: str,
            nodes: dict[str, Any],
            link: Link,
            **values: Any,
        ) -> object:
            instance = {
                "model": model.name,
                "model_config_json": model.config_json,
                "node_count": node_count,
                "link": link,
                "prompt_tokens": prompt_tokens,
                "request_count": requests,
                "max_num_batched_tokens": max_num_batched_tokens,
                "hardware": hardware,
                **nodes,
            }
            return function(instance=instance, **values)

        options = [
            model_option,
            click.option("--nodes", "node_count", type=WHOLE, required=True, help=nodes_help),
            click.option("--prompt-tokens", type=TOKENS, required=True, help="Tokens of each prompt: 8192 or 8k."),
            click.option("--requests", type=WHOLE, default=1, show_default=True, help=requests_help),
            pass_tokens_option,
            click.option(
                "--hardware", default="dgx-spark", show_default=True, help="Accelerator of the catalogue; '' for none."
            ),
            node_option,
            link_option(description=LINK_HELP, required=True),
        ]
        return cast(Command, _with(options, wrapper))

    return decorate


def layout_option(function: Command) -> Command:
    """`--pp`, `--dp`, `--ep`, `--sequence-parallel`, `--rank-links`, those of nodes; `layout`: client keywords."""

    @functools.wraps(function)
    def wrapper(
        *,
        pp: int,
        dp: int,
        ep: str | None,
        sequence_parallel: bool,
        rank_links: tuple[Any, ...] | None,
        ranks_per_node: int,
        inner_link: Any,
        calibration: str,
        **values: Any,
    ) -> object:
        layout = {
            "pipeline_parallel_size": pp,
            "data_parallel_size": dp,
            "expert_parallelism": ExpertParallelism.UNSPECIFIED if ep is None else _EXPERTS[ep],
            "sequence_parallel": sequence_parallel,
            "rank_links": rank_links or (),
            "ranks_per_node": ranks_per_node,
            "inner_link": inner_link,
            "calibration": calibration,
        }
        return function(layout=layout, **values)

    options = [
        *_cut_options(),
        click.option("--sequence-parallel", is_flag=True, help="Reduce-scatter and all-gather for each all-reduce."),
        click.option(
            "--rank-links",
            type=LINK_LIST,
            help="Links of single nodes that have another one: 100g,100g. Slowest counts.",
        ),
        *_node_options(),
    ]
    return cast(Command, _with(options, wrapper))


def _with(options: list[Callable[[Any], Any]], function: Any) -> Any:
    for option in reversed(options):
        function = option(function)
    return function
