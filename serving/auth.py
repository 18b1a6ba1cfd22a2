"""Who may call: bearer tokens."""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from pathlib import Path

from attrs import field, frozen

from linkbound.domain.errors import InvalidArgumentError, UnauthenticatedError, Violation
from linkbound.domain.rules import shown

AUTHORIZATION_KEY = "authorization"
_SCHEME = "bearer "


@frozen
class TokenCheck:
    """Accepts calls that carry one of `tokens`; without any, every call. Tokens are never shown."""

    tokens: tuple[bytes, ...] = field(default=(), repr=False)

    def check(self, authorization: str | None) -> None:
        """Raise UnauthenticatedError unless `authorization` is `Bearer <one of the tokens>`.

        Every token is compared, each in constant time, so that how long it takes says nothing.
        """
        if not self.tokens:
            return
        given = (authorization or "").encode()
        scheme, token = given[: len(_SCHEME)], given[len(_SCHEME) :]
        matches = [hmac.compare_digest(token, accepted) for accepted in self.tokens]
        if not (any(matches) and scheme.lower() == _SCHEME.encode()):
            raise UnauthenticatedError("a valid token is required: authorization: Bearer <token>")


def read_token_check(token_file: Path | None) -> TokenCheck:
    """The check for the tokens in `token_file`, one a line; blank lines and lines that start with # are skipped.

    Raises InvalidArgumentError where the file cannot be read or holds no token. It is read once, at start.
    """
    if token_file is None:
        return TokenCheck()
    try:
        lines = token_file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise _refused(token_file, "cannot be read") from error
    tokens = tuple(_tokens(lines))
    if not tokens:
        raise _refused(token_file, "holds no token")
    return TokenCheck(tokens)


def _tokens(lines: Iterable[str]) -> Iterable[bytes]:
    for line in lines:
        token = line.strip()
        if token and not token.startswith("#"):
            yield token.encode()


def _refused(token_file: Path, problem: str) -> InvalidArgumentError:
    return InvalidArgumentError([Violation("token_file", f"{shown(str(token_file))} {problem}")])
