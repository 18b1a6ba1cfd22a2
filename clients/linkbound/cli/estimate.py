"""`linkbound estimate`: predictions from architecture, settings and link alone."""

from __future__ import annotations

from linkbound.cli.lazy import LazyCommand, LazyGroup

estimate = LazyGroup(
    "estimate",
    description="Predict what a split model puts on the network and what that costs.",
    lazy={
        "prefill": LazyCommand("linkbound.cli.estimate_prefill:prefill", "bytes and time bound of prompts"),
        "decode": LazyCommand("linkbound.cli.estimate_decode:decode", "bytes, pass floor and traffic of generation"),
        "tp": LazyCommand("linkbound.cli.estimate_tp:tp", "one prompt over several tensor-parallel sizes"),
        "training": LazyCommand("linkbound.cli.estimate_training:training", "gradient exchange of a training step"),
    },
)
