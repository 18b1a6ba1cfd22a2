"""`linkbound estimate memory`."""

from __future__ import annotations

import click

from linkbound.cli import text
from linkbound.cli.connect import estimator_client
from linkbound.cli.failures import naming
from linkbound.cli.layout_options import CUT_FIELDS, cut_option, pass_tokens_option
from linkbound.cli.model_choice import ModelChoice, model_option
from linkbound.cli.options import Reply, reply_option
from linkbound.cli.output import print_message, print_text
from linkbound.cli.params import REAL, TOKENS, WHOLE
from linkbound.cli.table import pairs
from linkbound.domain.layout import ParallelLayout
from linkbound.domain.memory import DEFAULT_GPU_MEMORY_UTILIZATION_FRACTION, MemoryFit

_FIELDS = {
    "model": "--model",
    "hardware": "--hardware",
    "context_tokens": "--context",
    "request_count": "--requests",
    "gpu_memory_utilization_fraction": "--utilization",
    "max_num_batched_tokens": "--max-num-batched-tokens",
    "weight_bits_per_parameter": "--weight-bits",
    "draft_token_count": "--draft-tokens",
    **CUT_FIELDS,
}
_CACHE_VALUE_BYTES = {"bf16": 2, "fp8": 1}


@click.command()
@model_option
@cut_option
@click.option("--hardware", required=True, metavar="HARDWARE", help="Hardware of the catalogue, of every rank.")
@click.option("--context", type=TOKENS, required=True, help="Tokens of each request, prompt and output: 8192 or 8k.")
@click.option("--requests", type=WHOLE, default=1, show_default=True, help="Requests that are held at the same time.")
@click.option(
    "--utilization",
    type=REAL,
    default=DEFAULT_GPU_MEMORY_UTILIZATION_FRACTION,
    show_default=True,
    help="Share of the memory that the engine may use.",
)
@click.option(
    "--kv-cache-dtype",
    type=click.Choice(list(_CACHE_VALUE_BYTES)),
    default="bf16",
    show_default=True,
    help="What caches are stored in.",
)
@click.option("--weight-bits", type=REAL, help="Mean bits of one stored weight, in place of what the model says.")
@click.option(
    "--draft-tokens", type=WHOLE, default=0, show_default=True, help="Draft tokens; they need the MTP layers."
)
@pass_tokens_option
@reply_option("estimator")
@naming(_FIELDS)
def memory(  # noqa: PLR0913 - one parameter for each option
    *,
    model: ModelChoice,
    layout: ParallelLayout,
    hardware: str,
    context: int,
    requests: int,
    utilization: float,
    kv_cache_dtype: str,
    weight_bits: float | None,
    draft_tokens: int,
    max_num_batched_tokens: int,
    reply: Reply,
) -> None:
    """Whether a model and its requests fit into memory, and what would."""
    with estimator_client(reply.target, reply.data) as estimator:
        answer = estimator.check_memory_fit(
            model=model.name,
            model_config_json=model.config_json,
            layout=layout,
            hardware=hardware,
            context_tokens=context,
            request_count=requests,
            gpu_memory_utilization_fraction=utilization,
            cache_value_bytes=_CACHE_VALUE_BYTES[kv_cache_dtype],
            max_num_batched_tokens=max_num_batched_tokens,
            weight_bits_per_parameter=weight_bits,
            draft_token_count=draft_tokens,
        )
    if reply.as_json:
        from linkbound.convert.memory import memory_fit_to_proto

        print_message(memory_fit_to_proto(answer))
    else:
        print_text(_headline(answer), pairs(_details(answer)))


def _headline(answer: MemoryFit) -> str:
    headroom = text.size_bytes(abs(answer.headroom_bytes))
    if answer.fits:
        return f"fits: {headroom} to spare on the fullest rank"
    smallest = answer.smallest_tp_that_fits
    advice = "no tensor-parallel size does" if smallest is None else f"it does from TP{smallest} on"
    return f"does not fit: {headroom} are missing on the fullest rank; {advice}{text.if_stored_so(answer.need)}"


def _details(answer: MemoryFit) -> list[tuple[str, str]]:
    need, smallest = answer.need, answer.smallest_tp_that_fits
    condition = text.if_open(is_open=text.is_format_open(need))
    replicated = text.size_bytes(need.replicated_weight_bytes) + (condition if need.replicated_weight_bytes else "")
    return [
        ("weights, cut over ranks", text.size_bytes(need.sliced_weight_bytes) + condition),
        ("weights, whole on every rank", replicated),
        ("caches", text.size_bytes(need.kv_cache_bytes)),
        ("activations", text.size_bytes(need.activation_bytes)),
        ("collective library", text.size_bytes(need.communication_buffer_bytes)),
        ("runtime", text.size_bytes(need.runtime_bytes)),
        ("in all", text.size_bytes(need.total_bytes) + condition),
        ("usable", text.size_bytes(need.usable_bytes)),
        ("requests that fit", f"{answer.largest_request_count:,}{condition}"),
        ("smallest size that fits", ("none" if smallest is None else f"TP{smallest}") + condition),
        *text.assumed(answer.assumptions),
    ]
