"""Closed sets of values that fields take."""

from __future__ import annotations

from enum import Enum


class Choice(Enum):
    """An enum whose members are keys in every message that is read or written.

    They hash by identity, as they compare; `Enum` itself hashes a name, in Python.
    """

    __hash__ = object.__hash__
