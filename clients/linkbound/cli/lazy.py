"""A click group that imports a sub-command when it is run, and not to list it."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

import click
from attrs import frozen


@frozen
class LazyCommand:
    """Where a sub-command lives (`module:attribute`) and its line in the list of commands."""

    target: str
    summary: str

    def load(self) -> click.Command:
        """Imports the command."""
        module, _, attribute = self.target.partition(":")
        command = getattr(import_module(module), attribute)
        if not isinstance(command, click.Command):
            raise TypeError(f"{self.target} is not a command")
        return command


class LazyGroup(click.Group):
    """A group of `LazyCommand`s."""

    def __init__(self, name: str, *, lazy: Mapping[str, LazyCommand], description: str) -> None:
        super().__init__(name=name, help=description, context_settings={"help_option_names": ["-h", "--help"]})
        self.lazy = dict(lazy)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order in which the group was given them."""
        del ctx
        return list(self.lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Imports the command `cmd_name`."""
        del ctx
        entry = self.lazy.get(cmd_name)
        return None if entry is None else entry.load()

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Says which commands there are, and which one may have been meant, where there is none of that name."""
        if args and args[0] not in self.lazy and not args[0].startswith("-"):
            import difflib

            near = difflib.get_close_matches(args[0], self.lazy, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(self.lazy)}"
            ctx.fail(f"{args[0]!a} is not a command; {hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Lists the commands from their summaries."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in self.lazy.items()])
