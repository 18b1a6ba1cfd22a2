"""Options of requests to an engine, and of how it puts them into passes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import click

from linkbound.cli.options import Command, link_fields
from linkbound.cli.params import REAL, SECONDS_LIST, TOKENS, TOKENS_LIST, WHOLE, WHOLE_LIST
from linkbound.domain.memory import DEFAULT_MAX_NUM_BATCHED_TOKENS
from linkbound.domain.words import counted

if TYPE_CHECKING:
    from linkbound.domain.engine import EngineRequest

_SCHEDULER_OPTIONS = {
    "engine": "--engine",
    "max_num_batched_tokens": "--max-num-batched-tokens",
    "long_prefill_token_threshold": "--long-prefill-token-threshold",
    "max_num_seqs": "--max-num-seqs",
    "max_model_len": "--max-model-len",
    "kv_block_count": "--kv-blocks",
    "kv_block_tokens": "--kv-block-tokens",
    "draft_token_count": "--draft-tokens",
    "accepted_draft_tokens_per_pass": "--accepted",
}

SCHEDULE_FIELDS = {
    **{f"scheduler.{name}": option for name, option in _SCHEDULER_OPTIONS.items()},
    "scheduler": "--engine-calibration",
    "requests": "--prompts",
    "requests.prompt_tokens": "--prompts",
    "requests.output_tokens": "--outputs",
    "requests.arrival_pass": "--arrival-passes",
    "requests.arrival_seconds": "--arrivals",
    "model": "--model",
    "layout": "--tp",
    "layout.tensor_parallel_size": "--tp",
    "layout.ranks_per_node": "--ranks-per-node",
    "link": "--link",
    "to_link": "--to-link",
    "inner_link": "--inner-link",
    "to_bursts": "--to-bursts",
    "to_bursts.": "--to-bursts: bursts.",
    **link_fields("link"),
    **link_fields("to_link", "to-"),
    **link_fields("inner_link", "inner-"),
    "calibration": "--calibration",
    "engine_calibration": "--engine-calibration",
}
"""Where the fields of a schedule question come from on the command line."""


def requests_option(function: Command) -> Command:
    """`--prompts`, `--outputs`, `--arrival-passes` and `--arrivals`, as `requests`: a tuple of `EngineRequest`."""

    @functools.wraps(function)
    def wrapper(
        *,
        prompts: tuple[int, ...],
        outputs: tuple[int, ...],
        arrival_passes: tuple[int, ...] | None,
        arrivals: tuple[float, ...] | None,
        **values: Any,
    ) -> object:
        from linkbound.domain.engine import EngineRequest

        count = len(prompts)
        requests: tuple[EngineRequest, ...] = tuple(
            EngineRequest(
                prompt_tokens=prompt, output_tokens=output, arrival_pass=arrival_pass, arrival_seconds=seconds
            )
            for prompt, output, arrival_pass, seconds in zip(
                prompts,
                _of_each(outputs * count if len(outputs) == 1 else outputs, count, "--outputs"),
                _of_each(arrival_passes, count, "--arrival-passes"),
                _of_each(arrivals, count, "--arrivals"),
                strict=True,
            )
        )
        return function(requests=requests, **values)

    decorated: Any = wrapper
    for option in reversed(_request_options()):
        decorated = option(decorated)
    return cast(Command, decorated)


def _request_options() -> list[Callable[[Any], Any]]:
    return [
        click.option("--prompts", type=TOKENS_LIST, required=True, help="Prompt tokens of each request: 16384,8k."),
        click.option("--outputs", type=TOKENS_LIST, required=True, help="Tokens that each generates; one: all alike."),
        click.option("--arrival-passes", type=WHOLE_LIST, help="First pass that each may be part of, from 0."),
        click.option(
            "--arrivals", type=SECONDS_LIST, help="When each arrives: 0,250ms,1s; with an engine calibration."
        ),
    ]


to_bursts_option = click.option(
    "--to-bursts",
    default="",
    metavar="NAME|FILE",
    help="Bursts that were seen on the link to change to: those of an engine calibration of the catalogue, or of a"
    " .toml file of one; without --to-link its link too.",
)
"""`to_bursts: str`, as it was typed."""


def _of_each(values: Sequence[Any] | None, count: int, option: str) -> Sequence[Any]:
    if values is None:
        return (None,) * count
    if len(values) != count:
        raise click.UsageError(f"{option}: {counted(len(values), 'value')} for {counted(count, 'prompt')}")
    return values


def scheduler_option(function: Command) -> Command:
    """The settings of a scheduler, as `settings`: those that were typed, as keywords of `SchedulerSettings`."""

    @functools.wraps(function)
    def wrapper(**values: Any) -> object:
        typed = {name: values.pop(_parameter(option)) for name, option in _SCHEDULER_OPTIONS.items()}
        settings = {name: value for name, value in typed.items() if value is not None}
        return function(settings=settings, **values)

    decorated: Any = wrapper
    for option in reversed(_scheduler_options()):
        decorated = option(decorated)
    return cast(Command, decorated)


def _parameter(option: str) -> str:
    return option.removeprefix("--").replace("-", "_")


def _scheduler_options() -> list[Callable[[Any], Any]]:
    return [
        click.option("--engine", help="Rules of the engine, such as vllm-0.32; default: the newest that are known."),
        click.option(
            "--max-num-batched-tokens",
            type=TOKENS,
            help=f"Tokens of one pass at most; default of estimates: {DEFAULT_MAX_NUM_BATCHED_TOKENS}.",
        ),
        click.option(
            "--long-prefill-token-threshold", type=TOKENS, help="Tokens of one long prompt in a pass at most."
        ),
        click.option("--max-num-seqs", type=WHOLE, help="Requests that run at the same time at most."),
        click.option("--max-model-len", type=TOKENS, help="Tokens of a request at most, prompt and output."),
        click.option("--kv-blocks", type=WHOLE, help="Blocks of the KV cache; without: they never run out."),
        click.option("--kv-block-tokens", type=WHOLE, help="Tokens of one block; default: 16."),
        click.option("--draft-tokens", type=WHOLE, help="Drafts that a pass checks for each request that generates."),
        click.option("--accepted", type=REAL, help="Drafts that are accepted in a pass on average."),
    ]
