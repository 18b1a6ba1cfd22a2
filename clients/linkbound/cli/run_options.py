"""Options of a run whose requests are to be fitted: which run, and what of its engine it does not say itself."""

from __future__ import annotations

import functools
from typing import Any, cast

import click
from attrs import frozen

from linkbound.cli.layout_options import within_node_option
from linkbound.cli.model_choice import ModelChoice, optional_model_option
from linkbound.cli.options import Command, link_fields, link_option
from linkbound.cli.params import WHOLE
from linkbound.cli.schedule_options import scheduler_option
from linkbound.domain.layout import ParallelLayout
from linkbound.domain.link import Link

RUN_FIELDS = {
    "run": "--run",
    "run_id": "--run",
    "model": "--model",
    "table.model": "--model",
    "table.model_config_json": "--model",
    "layout": "--tp",
    "table.layout.tensor_parallel_size": "--tp",
    "table.layout.ranks_per_node": "--ranks-per-node",
    "link": "--link",
    "table.link": "--link",
    **link_fields("table.link"),
    "inner_link": "--inner-link",
    "table.inner_link": "--inner-link",
    "scheduler": "--max-num-batched-tokens",
}
"""Where the fields of a fit to a run come from on the command line."""


@frozen
class RunChoice:
    """The run, empty for none; where it is stored; and the keywords of `calibrate_from_run` that were typed."""

    run: str
    ingest: str
    keywords: dict[str, Any]


def run_option(function: Command) -> Command:
    """`--run`, `--ingest`, `--subject` and the options of an engine, as `choice: RunChoice`."""

    @functools.wraps(function)
    def wrapper(  # noqa: PLR0913 - one parameter for each option
        *,
        run: str,
        ingest: str,
        subjects: tuple[str, ...],
        model: ModelChoice,
        tp: int | None,
        ranks_per_node: int,
        inner_link: Link | None,
        link: Link | None,
        settings: dict[str, Any],
        **values: Any,
    ) -> object:
        keywords: dict[str, Any] = {
            "subjects": subjects,
            "model": model.name,
            "model_config_json": model.config_json,
            "layout": _layout(tp, ranks_per_node),
            "link": link,
            "inner_link": inner_link,
            "scheduler": _scheduler(settings),
        }
        typed = {name: value for name, value in keywords.items() if value}
        if typed and not run:
            raise click.UsageError("--run: is missing, and the options of its engine are of it")
        return function(choice=RunChoice(run, ingest, typed), **values)

    decorated: Any = link_option(description="Link of every rank that the requests were measured over.")(wrapper)
    decorated = scheduler_option(within_node_option(decorated))
    decorated = click.option("--tp", type=WHOLE, help="Tensor-parallel size: ranks of a group.")(decorated)
    decorated = optional_model_option("Model of the catalogue; default, as for the rest: what the run says.")(decorated)
    decorated = click.option(
        "--subject", "subjects", multiple=True, help="Fit this test of the run alone. May be repeated."
    )(decorated)
    decorated = click.option(
        "--ingest",
        default="local:",
        show_default=True,
        envvar="LINKBOUND_INGEST",
        show_envvar=True,
        metavar="HOST:PORT",
        help="The ingest service that has the run.",
    )(decorated)
    decorated = click.option(
        "--run", default="", metavar="RUN", help="Fit the requests of this run, in place of FILE."
    )(decorated)
    return cast(Command, decorated)


def _layout(tp: int | None, ranks_per_node: int) -> ParallelLayout | None:
    if tp is None:
        if ranks_per_node != 1:
            raise click.UsageError("--ranks-per-node: needs --tp")
        return None
    return ParallelLayout(tensor_parallel_size=tp, ranks_per_node=ranks_per_node)


def _scheduler(settings: dict[str, Any]) -> object:
    """The settings that were typed; None: those of the run. They stand for all of them, so none is guessed."""
    if not settings:
        return None
    if "max_num_batched_tokens" not in settings:
        raise click.UsageError("--max-num-batched-tokens: is missing, with other settings of the engine")
    from linkbound.domain.engine import SchedulerSettings

    return SchedulerSettings(**settings)
