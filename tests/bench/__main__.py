"""`make bench`: every measurement once, as a value and a ratio. `make bench RECORD=1` adds them to the history."""

from __future__ import annotations

import os
from collections.abc import Callable

import click

from tests.bench import history
from tests.bench.batches import batch_against_single_calls
from tests.bench.ingest import cold_start, flat_out_arrow, flat_out_columns, paced, quiet
from tests.bench.measure import Result
from tests.bench.scaling import second_process
from tests.bench.schedules import memory_of_a_thousand, replay_of_a_thousand, replay_of_the_study
from tests.bench.startup import start_of_the_command
from tests.bench.sweeps import sweep_in_process, sweep_through_grpc
from tests.bench.traffic import query_of_four_windows
from tests.bench.unary import unary_overhead

BENCHES: tuple[Callable[[], Result], ...] = (
    sweep_in_process,
    sweep_through_grpc,
    batch_against_single_calls,
    unary_overhead,
    second_process,
    replay_of_the_study,
    replay_of_a_thousand,
    memory_of_a_thousand,
    start_of_the_command,
    flat_out_arrow,
    flat_out_columns,
    paced,
    quiet,
    cold_start,
    query_of_four_windows,
)


def main() -> None:
    """Measure and print; nothing is written unless RECORD is set."""
    load_before = history.load()
    click.echo(f"{history.machine()}\n{history.versions()}\nload average before: {load_before}\n")
    results = []
    for bench in BENCHES:
        result = bench()
        results.append(result)
        goal = f"  (goal: {result.goal})" if result.goal else ""
        click.echo(f"{result.name}: {result.value}\n    {result.ratio:.2f} x {result.ratio_of}{goal}")
    if os.environ.get("RECORD"):
        history.add_to_page(results, load_before)
        click.echo(f"\nadded to {history.PAGE.relative_to(history.ROOT)}")


if __name__ == "__main__":
    main()
