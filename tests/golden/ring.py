"""A ring all-reduce carried out segment by segment: what every rank ends up with, and what it sent on the way.

It shares nothing with the estimator, neither a factor nor a step count: the run ends when every rank holds every sum.
"""

from fractions import Fraction
from typing import NamedTuple


class RingRun(NamedTuple):
    """Where a ring ends: bytes sent by each rank, steps until every sum was formed, and until every rank held all."""

    sent_bytes_by_rank: list[Fraction]
    reduce_step_count: int
    step_count: int


def ring_all_reduce(rank_count: int, message_bytes: int) -> RingRun:
    """Runs a ring over `rank_count` ranks that each hold `message_bytes`, cut into one segment per rank.

    `held[rank][segment]` is the set of ranks whose parts are summed up in what `rank` holds. Each rank starts with the
    segment of its own number and passes on what it received last.
    """
    segment_bytes = Fraction(message_bytes, rank_count)
    everyone = frozenset(range(rank_count))
    held = [[frozenset({rank})] * rank_count for rank in range(rank_count)]
    to_send = list(range(rank_count))
    sent = [Fraction(0)] * rank_count
    reduce_step_count = step_count = 0
    while any(parts != everyone for segments in held for parts in segments):
        moves = [(rank, (rank + 1) % rank_count, to_send[rank], held[rank][to_send[rank]]) for rank in everyone]
        for sender, receiver, segment, parts in moves:
            if parts != everyone:
                assert not parts & held[receiver][segment], "a part would be summed twice"
                held[receiver][segment] |= parts
            else:
                held[receiver][segment] = parts
            to_send[receiver] = segment
            sent[sender] += segment_bytes
        step_count += 1
        if not reduce_step_count and all(any(parts == everyone for parts in segments) for segments in held):
            reduce_step_count = step_count
    return RingRun(sent, reduce_step_count, step_count)
