"""The entry point: runs the command and turns every failure into one message and an exit code."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence

import click

from linkbound.cli.failures import (
    INTERRUPTED,
    OTHER,
    PIPE_CLOSED,
    USAGE,
    Failure,
    failure_of,
    is_help,
    report,
    usage_failure,
)
from linkbound.cli.lazy import LazyCommand, LazyGroup
from linkbound.domain.errors import Error

linkbound = LazyGroup(
    "linkbound",
    description=(
        "What the network costs an LLM that is split over several machines, and what was measured.\n\n"
        "Answers come from this process unless LINKBOUND_ESTIMATOR or LINKBOUND_INGEST name a service."
    ),
    lazy={
        "estimate": LazyCommand("linkbound.cli.estimate:estimate", "predict bytes, times and bounds"),
        "models": LazyCommand("linkbound.cli.models:models", "the models of the catalogue"),
        "calibrations": LazyCommand("linkbound.cli.calibrations:calibrations", "measured times of collectives"),
        "engine-calibrations": LazyCommand(
            "linkbound.cli.engine_calibrations:engine_calibrations", "measured times of engines"
        ),
        "size": LazyCommand("linkbound.cli.size:size", "switches and cables for a cluster"),
        "plan": LazyCommand("linkbound.cli.plan:plan", "the checklist before a link is chosen"),
        "links": LazyCommand("linkbound.cli.links:links", "links that have a name"),
        "demo": LazyCommand("linkbound.cli.demo:demo", "both services on the records of two studies"),
        "serve": LazyCommand("linkbound.cli.serve:serve", "run the estimator and the ingest service"),
        "health": LazyCommand("linkbound.cli.health:health", "ask the services whether they serve"),
        "runs": LazyCommand("linkbound.cli.runs:runs", "list, show, watch, seal and delete runs"),
        "store": LazyCommand("linkbound.cli.store:store", "check the files of sealed runs"),
        "sql": LazyCommand("linkbound.cli.sql:sql", "ask what is stored in SQL"),
        "snapshot": LazyCommand("linkbound.cli.sql:snapshot", "refresh the copy that other processes open"),
        "compare": LazyCommand("linkbound.cli.compare:compare", "a run: predicted beside measured"),
        "spool": LazyCommand("linkbound.cli.spool:spool", "what agents keep until the ingest service holds it"),
        "traffic": LazyCommand("linkbound.cli.traffic:traffic", "a run: rates of its counters over windows of time"),
    },
)


click.version_option(package_name="linkbound", prog_name="linkbound")(linkbound)


def run(arguments: Sequence[str]) -> int:
    """Runs the command with `arguments` and returns its exit code; failures are reported on stderr."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal that cannot show a letter of a name gets a stand-in, not an error.
        sys.stdout.reconfigure(errors="replace")
    stdout = sys.stdout
    try:
        result = linkbound.main(args=list(arguments), prog_name="linkbound", standalone_mode=False)
        # What is buffered goes out here, so that a closed pipe is met inside this block.
        sys.stdout.flush()
    except (click.Abort, KeyboardInterrupt):
        report("interrupted")
        return INTERRUPTED
    except (click.ClickException, Error, Failure) as error:
        if isinstance(error, click.UsageError) and is_help(error):
            click.echo(error.message, err=True)
            return USAGE
        failure = _failure(error)
        report(failure.message)
        return failure.exit_code
    except (OSError, SystemExit) as error:
        # A closed pipe is the one thing at which click puts another output in place before it ends the process.
        is_pipe_closed = isinstance(error, BrokenPipeError) or sys.stdout is not stdout
        return _pipe_closed() if is_pipe_closed else _ended(error)
    except Exception as error:
        if os.environ.get("LINKBOUND_DEBUG"):
            raise
        report(f"internal error: {type(error).__name__}: {error} (LINKBOUND_DEBUG=1 shows where)")
        return OTHER
    return result if isinstance(result, int) else 0


def main() -> None:
    """The console script."""
    if sys.stdout is None:
        report("standard output is closed")
        sys.exit(OTHER)
    _write_whole()
    sys.exit(run(sys.argv[1:]))


def _write_whole() -> None:
    """Puts a buffer below an unbuffered stdout, of PYTHONUNBUFFERED or `python -u`.

    Without one, text goes out in a single system call, and what that leaves is dropped without an error: a reader that
    goes away, or a disk that fills, would look like a whole document.
    """
    stdout = sys.stdout
    if isinstance(stdout, io.TextIOWrapper) and isinstance(stdout.buffer, io.RawIOBase):
        sys.stdout = open(  # noqa: SIM115 - it is stdout to the end of the process
            stdout.fileno(), "w", encoding=stdout.encoding, errors=stdout.errors, buffering=1, closefd=False
        )


def _failure(error: click.ClickException | Error | Failure) -> Failure:
    if isinstance(error, Error):
        return failure_of(error)
    return usage_failure(error) if isinstance(error, click.ClickException) else error


def _pipe_closed() -> int:
    """The exit code where the reader of the output had enough, which is no failure to speak of."""
    _leave_stdout()
    return PIPE_CLOSED


def _ended(error: OSError | SystemExit) -> int:
    """The exit code of a command that could not write, or that ended the process itself."""
    if isinstance(error, OSError):
        _leave_stdout()
        # What has no name is standard output.
        report(f"{error.filename or 'standard output'}: {error.strerror}")
        return OTHER
    if error.code is None or isinstance(error.code, int):
        return error.code or 0
    report(error.code)
    return OTHER


def _leave_stdout() -> None:
    """Points stdout at nothing, or the interpreter would complain while it flushes what cannot be written at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
