"""What a counter counted between two readings: a rise, a wrap, or nothing that is known where it began again."""

from __future__ import annotations

import numpy as np
from attrs import field, frozen

from ingest_service.core.traffic.curve import NS_PER_SECOND, Flags, Int64Column

FASTEST_PORT_BYTES_PER_SECOND = 200 * 10**9
"""What the fastest port carries, 1.6 Tb/s. A counter that fell, and would have counted more as a wrap, began again."""

READ_UNCERTAINTY_NS = 10**6
"""How much further apart than they say two readings may have been taken."""

LARGEST_STEP_BYTES = 2**53
"""Bytes between two readings above which a counter began again elsewhere: the fastest port takes 12 hours for them."""


@frozen(eq=False)
class Steps:
    """What was counted between each two readings, and how: as columns, one entry per interval.

    `byte_count` is 0 where the counter `begins_again`.
    """

    byte_count: Int64Column
    wraps: Flags
    begins_again: Flags


@frozen
class CounterWidth:
    """How a counter counts. Raises ValueError on construction for a gauge, and for what does not count bytes."""

    unit_bytes: int = field()
    counter_bits: int = field()

    def __attrs_post_init__(self) -> None:
        if self.counter_bits not in (32, 64) or self.unit_bytes <= 0:
            raise ValueError(f"{self.counter_bits} bits of {self.unit_bytes} bytes each are no counter of bytes")

    def steps(self, value: Int64Column, elapsed_ns: Int64Column, breaks: Flags) -> Steps:
        """What was counted between the readings `value`, in intervals of `elapsed_ns`; nothing is known at `breaks`.

        Values are those of the counter's width, as 64-bit words.
        """
        counts = np.diff(value)
        largest_count = LARGEST_STEP_BYTES // self.unit_bytes
        # Nearly always nothing happened, and one look at the extremes tells; words with the highest bit are below 0.
        if (
            not breaks.any()
            and value[0] >= 0
            and (not len(counts) or 0 <= counts.min() <= counts.max() <= largest_count)
        ):
            return Steps(counts * self.unit_bytes, np.zeros(len(counts), np.bool_), breaks)
        words = value.view(np.uint64)
        fell = words[1:] < words[:-1]
        # As the counter counts: whatever is beyond its width is not there.
        passed = (words[1:] - words[:-1]) & np.uint64(2**self.counter_bits - 1)
        possible_bytes = FASTEST_PORT_BYTES_PER_SECOND * ((elapsed_ns + READ_UNCERTAINTY_NS) / NS_PER_SECOND)
        is_possible_wrap = (passed <= np.uint64(2 ** (self.counter_bits - 1))) & (
            passed.astype(np.float64) * self.unit_bytes <= possible_bytes
        )
        begins_again = breaks | (fell & ~is_possible_wrap) | (passed > np.uint64(largest_count))
        return Steps(
            byte_count=np.where(begins_again, np.uint64(0), passed).astype(np.int64) * self.unit_bytes,
            wraps=fell & ~begins_again,
            begins_again=begins_again,
        )
