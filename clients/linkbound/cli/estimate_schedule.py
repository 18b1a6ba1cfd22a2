"""`linkbound estimate schedule`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from linkbound.cli.burst_choice import seen_bursts
from linkbound.cli.connect import estimator_client
from linkbound.cli.failures import naming
from linkbound.cli.layout_options import within_node_option
from linkbound.cli.model_choice import ModelChoice, optional_model_option
from linkbound.cli.options import LINK_HELP, Reply, link_option, reply_option
from linkbound.cli.output import print_text
from linkbound.cli.params import WHOLE
from linkbound.cli.schedule_options import SCHEDULE_FIELDS, requests_option, scheduler_option, to_bursts_option
from linkbound.domain.layout import ParallelLayout
from linkbound.domain.link import Link

if TYPE_CHECKING:
    from linkbound.client.estimator import EstimatorClient
    from linkbound.domain.engine import EngineRequest, SchedulerSettings


@click.command()
@requests_option
@click.option("--arrivals-may-split", is_flag=True, help="Intervals for requests that arrive together, or may not.")
@scheduler_option
@optional_model_option("Model of the catalogue; without one, or an engine calibration, the passes alone are shown.")
@click.option("--tp", type=WHOLE, help="Tensor-parallel size: ranks of a group; default: of the engine calibration.")
@within_node_option
@link_option(description=LINK_HELP)
@link_option("to-", description="A link to change to.")
@to_bursts_option
@click.option("--engine-calibration", default="", metavar="NAME", help="Measured times of an engine, of the catalogue.")
@click.option("--calibration", default="", metavar="NAME", help="Measured times of collectives, of the catalogue.")
@reply_option("estimator")
@naming(SCHEDULE_FIELDS)
def schedule(  # noqa: PLR0913 - one parameter for each option
    *,
    requests: tuple[EngineRequest, ...],
    arrivals_may_split: bool,
    settings: dict[str, Any],
    model: ModelChoice,
    tp: int | None,
    ranks_per_node: int,
    inner_link: Link | None,
    link: Link | None,
    to_link: Link | None,
    to_bursts: str,
    engine_calibration: str,
    calibration: str,
    reply: Reply,
) -> None:
    """The passes that an engine makes of requests; with a model or an engine calibration, when first tokens come."""
    if tp is None and ranks_per_node != 1:
        raise click.UsageError("--ranks-per-node: needs --tp")
    with estimator_client(reply.target, reply.data) as estimator:
        seen = seen_bursts(to_bursts, estimator) if to_bursts else None
        entries = estimator.stream_schedule(
            requests,
            scheduler=_scheduler(settings, engine_calibration, estimator),
            arrivals_may_split=arrivals_may_split,
            model=model.name,
            model_config_json=model.config_json,
            layout=None if tp is None else ParallelLayout(tensor_parallel_size=tp, ranks_per_node=ranks_per_node),
            link=link,
            to_link=seen.link if to_link is None and seen is not None else to_link,
            to_bursts=None if seen is None else seen.bursts,
            inner_link=inner_link,
            engine_calibration=engine_calibration,
            calibration=calibration,
        )
        if reply.as_json:
            from linkbound.cli.schedule_json import print_schedule_as_json

            print_schedule_as_json(entries)
        else:
            from linkbound.cli import schedule_text

            print_text(*schedule_text.blocks(entries, requests))


def _scheduler(
    settings: dict[str, Any], engine_calibration: str, estimator: EstimatorClient
) -> SchedulerSettings | None:
    """What was typed, over the settings of the engine calibration or the default; None: these alone."""
    from attrs import evolve

    from linkbound.domain.schedule import DEFAULT_SCHEDULER

    if not settings:
        return None
    if not engine_calibration:
        return evolve(DEFAULT_SCHEDULER, **settings)
    return evolve(estimator.get_engine_calibration(engine_calibration).table.scheduler, **settings)
