"""Page tokens of the list of runs: where the next page begins, in a form that users need not read."""

from __future__ import annotations

import base64
import binascii
import json
from datetime import datetime

from attrs import frozen

from linkbound.domain.errors import InvalidArgumentError, Violation


@frozen(kw_only=True)
class PagePosition:
    """The last run of a page; the next page has those created before it, by id where the time is equal."""

    create_time: datetime
    run_id: str


def encode_page_token(position: PagePosition) -> str:
    """The token that asks for what follows `position`."""
    text = json.dumps([position.create_time.isoformat(), position.run_id])
    return base64.urlsafe_b64encode(text.encode()).decode()


def decode_page_token(token: str) -> PagePosition | None:
    """The position in `token`; None for the empty token, which asks for the first page.

    Raises InvalidArgumentError on `page_token` for a token that `encode_page_token` did not make.
    """
    if not token:
        return None
    try:
        create_time, run_id = json.loads(base64.b64decode(token.encode(), altchars=b"-_", validate=True))
        position = PagePosition(create_time=datetime.fromisoformat(create_time), run_id=run_id)
    except (ValueError, TypeError, binascii.Error) as error:
        raise _not_a_token() from error
    if not isinstance(run_id, str) or position.create_time.tzinfo is None:
        raise _not_a_token()
    return position


def _not_a_token() -> InvalidArgumentError:
    return InvalidArgumentError([Violation("page_token", "is not a next_page_token of an answer before")])
