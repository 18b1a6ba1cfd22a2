"""What a replay yields: forward passes, and which request has which token rows of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from typing import Self

from attrs import evolve, frozen


class ShareKind(Enum):
    """What the rows of one request in a pass are."""

    PROMPT = "tokens of its prompt, with more of it to come"
    PROMPT_END = "tokens of its prompt up to the last one, so that the pass yields a token"
    GENERATING = "the token that it generated last, and drafts"


@frozen(kw_only=True)
class Share:
    """Rows of one request in each of `repeat` passes.

    `context_before` is how many of its tokens earlier passes have computed; from one of the repeated passes to the next
    it grows by `context_step`, a mean where a fraction of a draft is accepted. After a preemption the tokens that were
    generated before it count as prompt.
    """

    request: int
    rows: int
    context_before: int
    context_step: float
    kind: ShareKind

    @property
    def is_generating(self) -> bool:
        """Whether it has its prompt behind it."""
        return self.kind is ShareKind.GENERATING

    @property
    def yields_token(self) -> bool:
        """Whether each of the passes gives it at least one token."""
        return self.kind is not ShareKind.PROMPT


@frozen(kw_only=True)
class Pass:
    """`repeat` passes in a row with the same rows of the same requests, contexts apart.

    `requests`, `rows`, `contexts_before` and `kinds` are columns of the same length, in the order of the engine; none
    of them has a row while the engine waits for an arrival by pass. A share that ends its prompt is never repeated.
    `preempted` lost their blocks in the first of the passes; `first_tokens` and `finished` are requests that get their
    first and their last token from the last of them.
    """

    number: int
    repeat: int
    requests: tuple[int, ...]
    rows: tuple[int, ...]
    contexts_before: tuple[int, ...]
    kinds: tuple[ShareKind, ...]
    accepted_draft_tokens_per_pass: float = 0.0
    preempted: tuple[int, ...] = ()
    first_tokens: tuple[int, ...] = ()
    finished: tuple[int, ...] = ()
    start_seconds: float | None = None

    @classmethod
    def of_shares(
        cls, shares: Iterable[Share], *, number: int = 0, repeat: int = 1, accepted_draft_tokens_per_pass: float = 0.0
    ) -> Self:
        """Passes that have these shares; their steps follow from kind, rows and acceptance."""
        listed = tuple(shares)
        return cls(
            number=number,
            repeat=repeat,
            requests=tuple(share.request for share in listed),
            rows=tuple(share.rows for share in listed),
            contexts_before=tuple(share.context_before for share in listed),
            kinds=tuple(share.kind for share in listed),
            accepted_draft_tokens_per_pass=accepted_draft_tokens_per_pass,
        )

    @property
    def shares(self) -> tuple[Share, ...]:
        """The columns, request by request."""
        return tuple(
            Share(
                request=request,
                rows=rows,
                context_before=context,
                context_step=self.context_step(rows, kind),
                kind=kind,
            )
            for request, rows, context, kind in zip(
                self.requests, self.rows, self.contexts_before, self.kinds, strict=True
            )
        )

    @property
    def row_count(self) -> int:
        """Token rows of one of the passes."""
        return sum(self.rows)

    @property
    def request_count(self) -> int:
        """Requests in each of the passes."""
        return len(self.requests)

    def repeated(self, repeat: int) -> Self:
        """The same, `repeat` times."""
        return evolve(self, repeat=repeat)

    def context_step(self, rows: int, kind: ShareKind) -> float:
        """By how much the context of such a share grows from one of the passes to the next, on average."""
        if kind is not ShareKind.GENERATING:
            return rows
        return 1 + min(self.accepted_draft_tokens_per_pass, rows - 1)


PassSeconds = Callable[[Pass], float]
"""Seconds of all `repeat` passes of a Pass together, 0 or more, and never fewer for more of them."""
