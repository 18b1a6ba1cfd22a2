"""`linkbound estimate training`."""

from __future__ import annotations

import click

from linkbound.cli import text
from linkbound.cli.connect import estimator_client
from linkbound.cli.failures import naming
from linkbound.cli.options import Reply, reply_option
from linkbound.cli.output import print_message, print_text
from linkbound.cli.params import RATE, SECONDS, WHOLE
from linkbound.cli.table import pairs
from linkbound.domain.link import Link
from linkbound.domain.training import TrainingStepEstimate

_FIELDS = {
    "gradient_bytes": "--gradient-bytes",
    "rank_count": "--nodes",
    "link.line_rate_bits_per_second": "--bandwidth",
    "compute_step_seconds": "--compute-step-seconds",
}


@click.command()
@click.option("--nodes", type=WHOLE, required=True, help="Nodes, one rank each.")
@click.option("--gradient-bytes", type=WHOLE, required=True, help="Gradient bytes of all trainable parameters.")
@click.option("--bandwidth", type=RATE, required=True, help="What one direction of one node carries: 1.18GB/s, 200g.")
@click.option("--compute-step-seconds", type=SECONDS, required=True, help="Step time of one node alone.")
@reply_option("estimator")
@naming(_FIELDS)
def training(*, nodes: int, gradient_bytes: int, bandwidth: int, compute_step_seconds: float, reply: Reply) -> None:
    """Gradient exchange of one step of data-parallel training."""
    with estimator_client(reply.target) as estimator:
        answer = estimator.estimate_training_step(
            gradient_bytes=gradient_bytes,
            rank_count=nodes,
            link=Link(line_rate_bits_per_second=bandwidth),
            compute_step_seconds=compute_step_seconds,
        )
    if reply.as_json:
        from linkbound.convert.training import training_step_estimate_to_proto

        print_message(training_step_estimate_to_proto(answer))
    else:
        print_text(_headline(answer, nodes), pairs(_details(answer)))


def _headline(answer: TrainingStepEstimate, nodes: int) -> str:
    return f"a step takes {text.interval(answer.step_seconds, text.seconds)} on {nodes} nodes"


def _details(answer: TrainingStepEstimate) -> list[tuple[str, str]]:
    return [
        ("sent bytes per step, one rank", text.size_bytes(answer.sent_bytes_per_rank)),
        ("gradient all-reduce", text.interval(answer.sync_seconds, text.seconds)),
        ("step", text.interval(answer.step_seconds, text.seconds)),
        ("scaling efficiency", text.interval(answer.scaling_efficiency_fraction, text.percent)),
        ("link", text.rate_note(answer.link)),
        ("left out", text.left_out(answer.step_seconds)),
    ]
