"""`linkbound estimate training`."""

from __future__ import annotations

import click

from linkbound.cli import text
from linkbound.cli.connect import estimator_client
from linkbound.cli.failures import naming
from linkbound.cli.model_choice import ModelChoice, optional_model_option
from linkbound.cli.options import Reply, reply_option
from linkbound.cli.output import print_message, print_text
from linkbound.cli.params import BYTES, LINK, SECONDS, WHOLE
from linkbound.cli.table import pairs
from linkbound.domain.link import Link
from linkbound.domain.training import DEFAULT_VALUE_BYTES, TrainingSharding, TrainingStepEstimate
from linkbound.domain.words import counted

_FIELDS = {
    "gradient_bytes": "--gradient-bytes",
    "model": "--model",
    "lora_parameters": "--lora-parameters",
    "value_bytes": "--value-bytes",
    "rank_count": "--nodes",
    "link.line_rate_bits_per_second": "--bandwidth",
    "compute_step_seconds": "--compute-step-seconds",
    "calibration": "--calibration",
}
_SHARDINGS = {
    "ddp": TrainingSharding.UNSPECIFIED,
    "optimizer": TrainingSharding.OPTIMIZER,
    "full": TrainingSharding.FULL,
}


@click.command()
@click.option("--nodes", type=WHOLE, required=True, help="Nodes, one rank each.")
@click.option("--gradient-bytes", type=BYTES, help="Gradient bytes of all trainable parameters: 15.23GB.")
@optional_model_option("A model of the catalogue, in place of --gradient-bytes.")
@click.option("--lora-parameters", type=WHOLE, help="Train adapters of that many parameters in place of the --model.")
@click.option(
    "--sharding",
    type=click.Choice(list(_SHARDINGS)),
    default="ddp",
    show_default=True,
    help="What is spread over the ranks: nothing, the optimizer (ZeRO-1, ZeRO-2), all of it (FSDP, ZeRO-3).",
)
@click.option(
    "--value-bytes",
    type=WHOLE,
    default=DEFAULT_VALUE_BYTES,
    show_default=True,
    help="Bytes of one parameter or gradient of the --model on the network.",
)
@click.option(
    "--bandwidth",
    type=LINK,
    required=True,
    help="What one direction of one node carries: 1.18GB/s, 200g, or a name that `linkbound links` lists.",
)
@click.option("--compute-step-seconds", type=SECONDS, required=True, help="Step time of one node alone.")
@click.option("--calibration", default="", metavar="CALIBRATION", help="Measured collectives of the catalogue.")
@reply_option("estimator")
@naming(_FIELDS)
def training(  # noqa: PLR0913 - one parameter for each option
    *,
    nodes: int,
    gradient_bytes: int | None,
    model: ModelChoice,
    lora_parameters: int | None,
    sharding: str,
    value_bytes: int,
    bandwidth: Link,
    compute_step_seconds: float,
    calibration: str,
    reply: Reply,
) -> None:
    """Exchange of one step of data-parallel training."""
    with estimator_client(reply.target, reply.data) as estimator:
        answer = estimator.estimate_training_step(
            gradient_bytes=gradient_bytes,
            model=model.name,
            model_config_json=model.config_json,
            lora_parameters=lora_parameters,
            sharding=_SHARDINGS[sharding],
            value_bytes=value_bytes,
            rank_count=nodes,
            link=bandwidth,
            compute_step_seconds=compute_step_seconds,
            calibration=calibration,
        )
    if reply.as_json:
        from linkbound.convert.training import training_step_estimate_to_proto

        print_message(training_step_estimate_to_proto(answer))
    else:
        print_text(_headline(answer, nodes), pairs(_details(answer)))


def _headline(answer: TrainingStepEstimate, nodes: int) -> str:
    return f"a step takes {text.interval(answer.step_seconds, text.seconds)} on {counted(nodes, 'node')}"


def _details(answer: TrainingStepEstimate) -> list[tuple[str, str]]:
    return [
        ("gradients", text.size_bytes(answer.gradient_bytes)),
        ("sent bytes per step, one rank", text.size_bytes(answer.sent_bytes_per_rank)),
        ("exchange", text.interval(answer.sync_seconds, text.seconds)),
        ("step", text.interval(answer.step_seconds, text.seconds)),
        ("scaling efficiency", text.interval(answer.scaling_efficiency_fraction, text.percent)),
        ("link", text.rate_note(answer.link)),
        ("left out", text.left_out(answer.step_seconds)),
        *text.assumed(answer.assumptions),
    ]
