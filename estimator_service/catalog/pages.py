"""Pages of the entries of one kind, and the tokens that continue them."""

from __future__ import annotations

import binascii
from bisect import bisect_right
from typing import TypeVar

from estimator_service.catalog.directory import Collection
from linkbound.domain.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError, Violation
from linkbound.domain.names import resource_name
from linkbound.domain.paging import Page, PageRequest, UnreadableEntry
from linkbound.domain.rules import shown

_TOKEN_VERSION = "1"
_SEPARATOR = "/"


Entry = TypeVar("Entry")


def page_of(collection: str, entries: Collection[Entry], request: PageRequest) -> Page[Entry]:
    """The page of `entries`, in the order of their ids, that `request` asks for; no other entry is read.

    An entry whose file is broken is told beside the others, and one that has gone meanwhile is none.

    A token holds the collection and the last id before it, so a list that changes between two pages neither repeats nor
    skips what stays in it. Raises InvalidArgumentError on a token that `collection` has not given.
    """
    ids = entries.ids
    start = bisect_right(ids, _last_id_of(collection, request.page_token)) if request.page_token else 0
    page = ids[start : start + request.effective_page_size]
    ends_here = start + len(page) == len(ids)
    found: list[Entry] = []
    unreadable: list[UnreadableEntry] = []
    for entry_id in page:
        try:
            found.append(entries.get(entry_id))
        except NotFoundError:
            continue
        except FailedPreconditionError as error:
            # A path may hold what UTF-8 cannot.
            problem = error.message.encode(errors="replace").decode()
            unreadable.append(UnreadableEntry(name=resource_name(collection, entry_id), problem=problem))
    return Page(
        entries=tuple(found),
        next_page_token="" if ends_here else _token_of(collection, page[-1]),
        unreadable=tuple(unreadable),
    )


def _token_of(collection: str, last_id: str) -> str:
    content = _SEPARATOR.join((_TOKEN_VERSION, collection, last_id))
    return binascii.b2a_base64(content.encode(), newline=False).decode().translate(_TO_URL_SAFE).rstrip("=")


def _last_id_of(collection: str, token: str) -> str:
    try:
        padded = token.translate(_FROM_URL_SAFE) + "=" * (-len(token) % 4)
        content = binascii.a2b_base64(padded.encode("ascii"), strict_mode=True).decode("ascii")
    except (binascii.Error, UnicodeError):
        content = ""
    last_id = content.rpartition(_SEPARATOR)[2]
    if not last_id or token != _token_of(collection, last_id):
        description = f"{shown(token)} is not a next_page_token of this list"
        raise InvalidArgumentError([Violation("page_token", description)])
    return last_id


_TO_URL_SAFE = str.maketrans("+/", "-_")
_FROM_URL_SAFE = str.maketrans("-_", "+/")
