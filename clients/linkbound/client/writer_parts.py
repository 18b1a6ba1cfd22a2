"""What a writer is put together from, and what its parts know of each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from attrs import field, frozen

from linkbound.domain.words import counted


@frozen(kw_only=True)
class Patience:
    """How long the service may be away, None for ever; whether faults of its own are waited out as well.

    A writer with a spool waits for ever and tries again where the service has a fault, as what it has is safe.
    """

    timeout_seconds: float | None
    waits_out_faults: bool


class Delivery(Protocol):
    """Brings to the service what a keeper holds."""

    @property
    def has_opened(self) -> bool:
        """Whether the service answered."""
        ...

    @property
    def is_delivered(self) -> bool:
        """Whether everything that is kept is stored or was refused."""
        ...

    @property
    def undelivered_row_count(self) -> int:
        """Rows that are kept and not known to be stored."""
        ...

    @property
    def committed_number(self) -> int:
        """Highest number that is known to be stored."""
        ...

    @property
    def released_number(self) -> int:
        """Highest number that need not be kept any more."""
        ...

    @property
    def progress_time(self) -> float:
        """When something was last stored, or had to be."""
        ...

    def note_progress(self) -> None:
        """Something was stored, or has to be from now on."""
        ...

    def end(self) -> None:
        """Nothing more is kept."""
        ...

    async def run(self) -> None:
        """Deliver until nothing is left after `end`. Raises what cannot be waited out."""
        ...


@frozen(kw_only=True)
class WriterRole:
    """Who writes what. `opening` is what its batches belong to, as bytes; `noun` is what it writes, in words."""

    run: str
    writer_id: str
    opening: bytes = field(repr=False)
    noun: str

    @property
    def name(self) -> str:
        """The writer in words."""
        return f"writer {self.writer_id} of run {self.run}"

    def were(self, count: int) -> str:
        """So many rows and the verb of the past."""
        return f"{counted(count, self.noun)} {'was' if count == 1 else 'were'}"

    def stay(self, count: int) -> str:
        """So many rows and what they do in a spool."""
        return f"{counted(count, self.noun)} {'stays' if count == 1 else 'stay'}"

    def count_key(self, fate: str) -> str:
        """What the metadata of an error calls the count of rows with this fate."""
        return f"{fate}{self.noun.title()}Count"


@frozen(kw_only=True)
class RowSource:
    """What a writer holds before it makes up a batch: how many rows, and how they are passed on as they are."""

    row_count: Callable[[], int]
    pass_on: Callable[[], None]
