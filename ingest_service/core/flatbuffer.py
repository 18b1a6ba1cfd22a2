"""Reads flatbuffers (https://flatbuffers.dev/internals/) that anybody may have written: no byte outside is ever read.

Offsets may point anywhere, backwards too; each number is looked at in its place, and one that lies outside is an error.
"""

from __future__ import annotations

import struct
from typing import Literal

from attrs import field, frozen

from linkbound.domain.errors import InvalidArgumentError, Violation

Format = Literal["<B", "<H", "<h", "<i", "<I", "<q"]

_OFFSET_BYTES = 4
_FIRST_SLOT = 2
"""A vtable begins with its own size and that of the table."""


@frozen
class Table:
    """One table of a flatbuffer. Its fields go by slot, from 0 in the order in which the schema declares them.

    Methods raise InvalidArgumentError where what they are asked for lies outside the bytes.
    """

    content: bytes = field(repr=False)
    position: int

    @classmethod
    def root(cls, content: bytes) -> Table:
        """The outermost table."""
        return cls(content, number_at(content, "<I", 0))

    def number(self, slot: int, form: Format, default: int = 0) -> int:
        """The number in a slot; `default` where the table leaves it out."""
        position = self._field(slot)
        return default if position is None else number_at(self.content, form, position)

    def table(self, slot: int) -> Table | None:
        """The table in a slot."""
        position = self._field(slot)
        return None if position is None else Table(self.content, self._target(position))

    def text(self, slot: int) -> bytes:
        """The characters in a slot, as they are encoded."""
        position = self._field(slot)
        if position is None:
            return b""
        start = self._target(position)
        end = start + _OFFSET_BYTES + number_at(self.content, "<I", start)
        return self.content[start + _OFFSET_BYTES : end]

    def vector(self, slot: int) -> Vector:
        """The vector in a slot; an empty one where the table leaves it out."""
        position = self._field(slot)
        if position is None:
            return Vector(self.content, 0, 0)
        start = self._target(position)
        return Vector(self.content, start + _OFFSET_BYTES, number_at(self.content, "<I", start))

    def _field(self, slot: int) -> int | None:
        vtable = self.position - number_at(self.content, "<i", self.position)
        offset_position = 2 * (_FIRST_SLOT + slot)
        if offset_position >= number_at(self.content, "<H", vtable):
            return None
        offset = number_at(self.content, "<H", vtable + offset_position)
        return self.position + offset if offset else None

    def _target(self, position: int) -> int:
        return position + number_at(self.content, "<I", position)


@frozen
class Vector:
    """Entries one after the other: tables by their offsets, or numbers."""

    content: bytes = field(repr=False)
    position: int
    count: int

    def table(self, index: int) -> Table:
        """The table at `index`, which is below `count`."""
        position = self.position + index * _OFFSET_BYTES
        return Table(self.content, position + number_at(self.content, "<I", position))

    def numbers(self, form: str) -> tuple[int, ...]:
        """The first numbers, as `struct` reads them from `form`."""
        return _unpacked(self.content, form, self.position)


def number_at(content: bytes, form: Format, position: int) -> int:
    """One number of `content`. Raises InvalidArgumentError where it lies outside."""
    return _unpacked(content, form, position)[0]


def _unpacked(content: bytes, form: str, position: int) -> tuple[int, ...]:
    try:
        # A negative position would count from the end.
        if position >= 0:
            return struct.unpack_from(form, content, position)
    except struct.error:
        pass
    raise InvalidArgumentError([Violation("arrow_ipc", "ends before something that it speaks of")])
