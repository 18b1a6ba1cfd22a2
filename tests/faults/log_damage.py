"""What a disk, a file system or a loss of power does to the end of a log."""

from __future__ import annotations

import random


def cut(content: bytes, moments: random.Random) -> bytes:
    """Ends at a random place, as a file does whose last blocks were never written."""
    return content[: moments.randrange(len(content))]


def zero_filled(content: bytes, moments: random.Random) -> bytes:
    """Is zero from a random place on, as a file is whose length was written and whose last blocks were not."""
    place = moments.randrange(len(content))
    return content[:place] + bytes(len(content) - place)


def bit_flipped(content: bytes, moments: random.Random) -> bytes:
    """Has one random bit that is not what was written."""
    changed = bytearray(content)
    changed[moments.randrange(len(content))] ^= 1 << moments.randrange(8)
    return bytes(changed)
