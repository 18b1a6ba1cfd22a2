"""Pages of a list."""

from __future__ import annotations

from typing import Generic, TypeVar

from attrs import field, frozen

from linkbound.domain.rules import Checked, text, whole

DEFAULT_PAGE_SIZE = 50
LARGEST_PAGE_SIZE = 1000

T = TypeVar("T")


@frozen(kw_only=True)
class UnreadableEntry:
    """An entry of a list that is skipped: its resource name (`models/mine`), and what is wrong with its file."""

    name: str
    problem: str


class UnreadableEntryWarning(UserWarning):
    """A list went on without `entry`, whose file cannot be read."""

    def __init__(self, entry: UnreadableEntry) -> None:
        super().__init__(f"{entry.name} is skipped: {entry.problem}")
        self.entry = entry


@frozen(kw_only=True)
class PageRequest(Checked):
    """Asks for one page. 0 is the default size, more than the largest is the largest."""

    page_size: int = field(default=0, metadata=whole(0, 2**31 - 1))
    page_token: str = field(default="", metadata=text(1024))

    @property
    def effective_page_size(self) -> int:
        """Entries that one page holds at most."""
        return min(self.page_size or DEFAULT_PAGE_SIZE, LARGEST_PAGE_SIZE)


@frozen(kw_only=True)
class Page(Generic[T]):
    """One page. An empty `next_page_token` ends the list; `unreadable` are entries of it whose files are broken."""

    entries: tuple[T, ...]
    next_page_token: str = ""
    unreadable: tuple[UnreadableEntry, ...] = ()
