"""Ring collectives: what one rank sends, and in how many steps.

A ring passes segments of 1/N of the payload to the next rank. An all-reduce goes around twice, once to reduce and once
to gather; every other collective goes around once. A send to one other rank is one step that carries all of it.
"""

from __future__ import annotations

from linkbound.domain.collective import CollectiveKind


def ring_round_count(kind: CollectiveKind) -> int:
    """How often a ring of `kind` goes around: r = 2 for an all-reduce, else 1 (`docs/formulas.md`, Collectives)."""
    return 2 if kind is CollectiveKind.ALL_REDUCE else 1


def ring_step_count(kind: CollectiveKind, rank_count: int) -> int:
    """Sequential steps of a ring collective: s = r (N - 1); of a send, 1 (`docs/formulas.md`, Collectives)."""
    if kind is CollectiveKind.SEND_RECEIVE:
        return 1 if rank_count > 1 else 0
    return ring_round_count(kind) * (rank_count - 1)


def sent_bytes(kind: CollectiveKind, rank_count: int, message_bytes: float) -> float:
    """Bytes one rank sends for one collective: S = r (N - 1) P / N; of a send, P (`docs/formulas.md`, Collectives).

    `message_bytes` is the payload P: of an all-reduce, all-to-all or send what one rank holds, of an all-gather or
    reduce-scatter the whole. A single rank sends nothing.
    """
    steps = ring_step_count(kind, rank_count)
    return steps * message_bytes if kind is CollectiveKind.SEND_RECEIVE else steps * message_bytes / rank_count


def bus_factor(kind: CollectiveKind, rank_count: int) -> float:
    """Bus over algorithm bandwidth as nccl-tests defines them: f = r (N - 1) / N (`docs/formulas.md`, Collectives)."""
    return sent_bytes(kind, rank_count, 1)


def ring_step_bytes(rank_count: int, message_bytes: float) -> float:
    """Bytes one rank sends in one step: P / N, and 0 for a single rank (`docs/formulas.md`, Collectives)."""
    return message_bytes / rank_count if rank_count > 1 else 0.0
