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
