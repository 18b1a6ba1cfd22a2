"""Links as callers give them. Every violation of a call comes at once: a rate that cannot be read hides no other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from linkbound.domain.errors import InvalidArgumentError, Violation
from linkbound.domain.link import Link
from linkbound.domain.link_presets import parse_link
from linkbound.domain.rules import as_tuple

LinkOrRate = Link | str
"""A link, its effective rate as people write it (`200g`, `22.14GB/s`), or its name (`spark-1f`)."""

RequestT = TypeVar("RequestT")

_STAND_IN = Link(line_rate_bits_per_second=1)
"""Takes the place of a link that could not be read, so that the other rules are still checked."""


class LinkReader:
    """Reads the links of one request, and keeps what is wrong with them until the whole request is built."""

    def __init__(self) -> None:
        self._violations: list[Violation] = []

    def read(self, link: LinkOrRate, field: str) -> Link:
        """The link, or a stand-in if `link` is text that is neither a rate nor a name."""
        if not isinstance(link, str):
            return link
        try:
            return parse_link(link, field)
        except InvalidArgumentError as error:
            self._violations.extend(error.field_violations)
            return _STAND_IN

    def read_optional(self, link: LinkOrRate | None, field: str) -> Link | None:
        """The link, None for None, or a stand-in if `link` is text that is neither a rate nor a name."""
        return None if link is None else self.read(link, field)

    def read_each(self, links: Sequence[LinkOrRate], field: str) -> tuple[Link, ...]:
        """The links, each with its index in the field. What cannot be a tuple stays as it is; its rule refuses it."""
        given: Any = as_tuple(links)
        if not isinstance(given, tuple):
            return cast("tuple[Link, ...]", given)
        return tuple(self.read(link, f"{field}[{index}]") for index, link in enumerate(given))

    def build(self, make: Callable[[], RequestT]) -> RequestT:
        """What `make` makes of links that it reads here; InvalidArgumentError with its violations and the links'."""
        try:
            request = make()
        except InvalidArgumentError as error:
            raise InvalidArgumentError([*error.field_violations, *self._violations]) from None
        if self._violations:
            raise InvalidArgumentError(self._violations)
        return request
