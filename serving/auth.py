"""Who may call: bearer tokens."""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from pathlib import Path

from attrs import field, frozen

from linkbound.domain.errors import InvalidArgumentError, PermissionDeniedError, UnauthenticatedError, Violation
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
        if not _carries(authorization or "", self.tokens):
            raise _no_token()


@frozen
class Permission:
    """Lets calls pass that carry one of `tokens`, whatever else is accepted. Tokens are never shown."""

    tokens: tuple[bytes, ...] = field(repr=False)

    def check(self, authorization: str | None) -> None:
        """Raise UnauthenticatedError without a token, and PermissionDeniedError with one that is not among them."""
        if not authorization:
            raise _no_token()
        if not _carries(authorization, self.tokens):
            raise PermissionDeniedError("the token does not cover this method")


def read_permission(token_file: Path) -> Permission:
    """The permission of the tokens in `token_file`; see `read_token_check`."""
    return Permission(read_token_check(token_file).tokens)


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


def _carries(authorization: str, tokens: Iterable[bytes]) -> bool:
    """Whether it is `Bearer <one of the tokens>`."""
    given = authorization.encode()
    scheme, token = given[: len(_SCHEME)], given[len(_SCHEME) :]
    matches = [hmac.compare_digest(token, accepted) for accepted in tokens]
    return any(matches) and scheme.lower() == _SCHEME.encode()


def _no_token() -> UnauthenticatedError:
    return UnauthenticatedError("a valid token is required: authorization: Bearer <token>")


def _tokens(lines: Iterable[str]) -> Iterable[bytes]:
    for line in lines:
        token = line.strip()
        if token and not token.startswith("#"):
            yield token.encode()


def _refused(token_file: Path, problem: str) -> InvalidArgumentError:
    return InvalidArgumentError([Violation("token_file", f"{shown(str(token_file))} {problem}")])
