"""Answers on stdout: one JSON object, or text for people."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from google.protobuf.message import Message


def print_message(message: Message) -> None:
    """Prints a response message as one JSON object."""
    from linkbound.convert.json import message_to_json

    print_json(message_to_json(message))


def print_json(value: Mapping[str, Any]) -> None:
    """Prints one JSON object, without NaN and infinities, in ASCII."""
    click.echo(json.dumps(value, indent=2, allow_nan=False))


def print_text(*blocks: str) -> None:
    """Prints blocks of text with an empty line between them."""
    click.echo("\n\n".join(block for block in blocks if block))


class JsonDocument:
    """One JSON object that goes out while its parts come: long lists with an entry a line, then everything else.

    What comes when something fails halfway is no document, and the exit code says so.
    """

    def __init__(self) -> None:
        self._open_list = ""

    def add(self, name: str, entry: Mapping[str, Any]) -> None:
        """Prints the next entry of the list `name`; the list before it is closed by that."""
        if name == self._open_list:
            before = ","
        elif self._open_list:
            before = f'\n  ],\n  "{name}": ['
        else:
            before = f'{{\n  "{name}": ['
        self._open_list = name
        # Without indentation, which `json` makes many times more slowly.
        click.echo(f"{before}\n    {json.dumps(entry, allow_nan=False)}", nl=False)

    def end(self, rest: Mapping[str, Any]) -> None:
        """Prints the rest of the object, below a list at least."""
        members = json.dumps(rest, indent=2, allow_nan=False).removeprefix("{")
        click.echo(f"\n  ],{members}")
