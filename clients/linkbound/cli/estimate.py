"""`linkbound estimate`: predictions from architecture, settings and link alone."""

from __future__ import annotations

from linkbound.cli.lazy import LazyCommand, LazyGroup

estimate = LazyGroup(
    "estimate",
    description="Predict what a split model puts on the network and what that costs.",
    lazy={
        "prefill": LazyCommand("linkbound.cli.estimate_prefill:prefill", "bytes and time bound of prompts"),
        "decode": LazyCommand("linkbound.cli.estimate_decode:decode", "bytes, pass floor and traffic of generation"),
        "target": LazyCommand("linkbound.cli.estimate_target:target", "the slowest link that keeps a TTFT target"),
        "sweep": LazyCommand("linkbound.cli.estimate_sweep:sweep", "prompts over several sizes, counts and rates"),
        "tp": LazyCommand("linkbound.cli.estimate_tp:tp", "one prompt over several tensor-parallel sizes"),
        "layouts": LazyCommand("linkbound.cli.estimate_layouts:layouts", "TP, PP and experts on the same nodes"),
        "recommend": LazyCommand(
            "linkbound.cli.estimate_recommend:recommend", "one large instance or several smaller ones"
        ),
        "memory": LazyCommand("linkbound.cli.estimate_memory:memory", "whether a model and its requests fit"),
        "collective": LazyCommand(
            "linkbound.cli.estimate_collective:collective", "one all-reduce or another collective"
        ),
        "schedule": LazyCommand("linkbound.cli.estimate_schedule:schedule", "an engine's passes and every first token"),
        "training": LazyCommand("linkbound.cli.estimate_training:training", "gradient exchange of a training step"),
    },
)
