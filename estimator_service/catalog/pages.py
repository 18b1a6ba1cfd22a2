"""Pages of a sorted list of ids, and the tokens that continue it."""

from __future__ import annotations

import binascii
from bisect import bisect_right
from collections.abc import Sequence

from attrs import frozen

from linkbound.domain.errors import InvalidArgumentError, Violation
from linkbound.domain.paging import PageRequest
from linkbound.domain.rules import shown

_TOKEN_VERSION = "1"
_SEPARATOR = "/"


@frozen(kw_only=True)
class PageOfIds:
    """The ids of one page; an empty `next_page_token` ends the list."""

    ids: tuple[str, ...]
    next_page_token: str


def page_of(collection: str, ids: Sequence[str], request: PageRequest) -> PageOfIds:
    """The page of the sorted `ids` that `request` asks for.

    A token holds the collection and the last id before it, so a list that changes between two pages neither repeats nor
    skips what stays in it. Raises InvalidArgumentError on a token that `collection` has not given.
    """
    start = bisect_right(ids, _last_id_of(collection, request.page_token)) if request.page_token else 0
    page = tuple(ids[start : start + request.effective_page_size])
    ends_here = start + len(page) == len(ids)
    return PageOfIds(ids=page, next_page_token="" if ends_here else _token_of(collection, page[-1]))


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
