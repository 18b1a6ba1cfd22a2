"""Settings of a server: one frozen value, and the one table that environment, `--help` and documents come from.

Only entry points read the environment; everything else is given a `ServerSettings`. A service reads further settings of
its own by the same means.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

from attrs import AttrsInstance, evolve, field, frozen

from linkbound.domain.errors import InvalidArgumentError, Violation
from linkbound.domain.rules import Checked, CrossChecked, finite, instance, member, optional, shown, text, whole

E = TypeVar("E", bound=Enum)
SettingsT = TypeVar("SettingsT", bound=AttrsInstance)

DEFAULT_MAX_MESSAGE_BYTES = 16 * 2**20
_LARGEST_MAX_MESSAGE_BYTES = 2**30
_LARGEST_INTERVAL_SECONDS = 86_400


class LogFormat(Enum):
    """How log lines look. AUTO is CONSOLE on a terminal and JSON elsewhere."""

    AUTO = "auto"
    JSON = "json"
    CONSOLE = "console"


class LogLevel(Enum):
    """The least severe log lines that are written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


_FILE = optional(instance(Path))


@frozen(kw_only=True)
class ServerSettings(Checked, CrossChecked):
    """Everything that a server takes from its surroundings; building one raises with every violation.

    Port 0 is any free port. `token_file` holds the tokens that are accepted, one a line; None: every caller is.
    With `tls_client_ca_file` callers must show a certificate that descends from it. With `share_port` other processes
    of the same user may listen on the port too and get a part of the connections. A connection older than
    `connection_age_seconds` is closed once its calls are done, so that callers find processes that came later.
    """

    host: str = field(default="127.0.0.1", metadata=text(255, minimum_length=1))
    port: int = field(default=0, metadata=whole(0, 65_535))
    allow_plaintext: bool = field(default=False, metadata=instance(bool))
    tls_certificate_file: Path | None = field(default=None, metadata=_FILE)
    tls_key_file: Path | None = field(default=None, metadata=_FILE)
    tls_client_ca_file: Path | None = field(default=None, metadata=_FILE)
    token_file: Path | None = field(default=None, metadata=_FILE)
    reflection: bool = field(default=False, metadata=instance(bool))
    max_message_bytes: int = field(default=DEFAULT_MAX_MESSAGE_BYTES, metadata=whole(1024, _LARGEST_MAX_MESSAGE_BYTES))
    keepalive_seconds: float = field(default=30.0, metadata=finite(1, _LARGEST_INTERVAL_SECONDS))
    keepalive_timeout_seconds: float = field(default=10.0, metadata=finite(1, _LARGEST_INTERVAL_SECONDS))
    grace_seconds: float = field(default=10.0, metadata=finite(0, _LARGEST_INTERVAL_SECONDS))
    connection_age_seconds: float | None = field(default=None, metadata=optional(finite(1, _LARGEST_INTERVAL_SECONDS)))
    share_port: bool = field(default=False, metadata=instance(bool))
    log_format: LogFormat = field(default=LogFormat.AUTO, metadata=member(LogFormat))
    log_level: LogLevel = field(default=LogLevel.INFO, metadata=member(LogLevel))

    @property
    def uses_tls(self) -> bool:
        """Whether connections are encrypted."""
        return self.tls_certificate_file is not None

    @property
    def address(self) -> str:
        """Where to listen, as gRPC takes it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    def cross_violations(self) -> Iterable[Violation]:
        """TLS files come together; nothing leaves the machine unencrypted by accident."""
        if (self.tls_certificate_file is None) != (self.tls_key_file is None):
            missing = "tls_key_file" if self.tls_key_file is None else "tls_certificate_file"
            yield Violation(missing, "is missing; a certificate and its key go together")
        if self.tls_client_ca_file is not None and not self.uses_tls:
            yield Violation("tls_client_ca_file", "needs tls_certificate_file")
        if not self.uses_tls and not self.allow_plaintext and not is_loopback(self.host):
            yield Violation(
                "host",
                f"{shown(self.host)} can be reached from other machines: set TLS files, or allow_plaintext"
                " (LINKBOUND_SERVER_ALLOW_PLAINTEXT=true) to serve unencrypted",
            )


def is_loopback(host: str) -> bool:
    """Whether `host` is an address of this machine that no other machine reaches."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@frozen
class Variable:
    """One environment variable: the field it sets, how its text is read, and what it is for."""

    name: str
    field: str
    parse: Callable[[str], Any]
    description: str


def boolean(value: str) -> bool:
    """Whether the text of a variable says yes. Raises ValueError."""
    words = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
    if value.lower() not in words:
        raise ValueError("is not one of true, yes, on, 1, false, no, off, 0")
    return words[value.lower()]


def whole_number(value: str) -> int:
    """The whole number that the text of a variable says. Raises ValueError."""
    if not (value.isascii() and value.isdecimal()):
        raise ValueError("is not a whole number")
    return int(value)


def seconds(value: str) -> float:
    """The number of seconds that the text of a variable says. Raises ValueError."""
    try:
        return float(value)
    except ValueError:
        raise ValueError("is not a number of seconds") from None


def _one_of(kind: type[E]) -> Callable[[str], E]:
    by_text = {m.value: m for m in kind}

    def parse(value: str) -> E:
        if value.lower() not in by_text:
            raise ValueError(f"is not one of {', '.join(by_text)}")
        return by_text[value.lower()]

    return parse


VARIABLES = (
    Variable("LINKBOUND_SERVER_HOST", "host", str, "Address to listen on."),
    Variable(
        "LINKBOUND_SERVER_ALLOW_PLAINTEXT",
        "allow_plaintext",
        boolean,
        "Serve other machines without TLS, such as behind a proxy that encrypts.",
    ),
    Variable("LINKBOUND_SERVER_TLS_CERTIFICATE_FILE", "tls_certificate_file", Path, "Certificate chain, PEM."),
    Variable("LINKBOUND_SERVER_TLS_KEY_FILE", "tls_key_file", Path, "Private key of the certificate, PEM."),
    Variable(
        "LINKBOUND_SERVER_TLS_CLIENT_CA_FILE",
        "tls_client_ca_file",
        Path,
        "Certificates that a client's must descend from, PEM; unset: clients show none.",
    ),
    Variable(
        "LINKBOUND_SERVER_TOKEN_FILE", "token_file", Path, "Accepted tokens, one a line; unset: no token is asked for."
    ),
    Variable("LINKBOUND_SERVER_REFLECTION", "reflection", boolean, "Let tools ask for the protos."),
    Variable(
        "LINKBOUND_SERVER_MAX_MESSAGE_BYTES", "max_message_bytes", whole_number, "Largest message in either direction."
    ),
    Variable(
        "LINKBOUND_SERVER_KEEPALIVE_SECONDS", "keepalive_seconds", seconds, "Quiet time before a connection is tested."
    ),
    Variable(
        "LINKBOUND_SERVER_KEEPALIVE_TIMEOUT_SECONDS",
        "keepalive_timeout_seconds",
        seconds,
        "Time for the answer to such a test.",
    ),
    Variable(
        "LINKBOUND_SERVER_GRACE_SECONDS", "grace_seconds", seconds, "Time for running calls to end when stopping."
    ),
    Variable(
        "LINKBOUND_SERVER_CONNECTION_AGE_SECONDS",
        "connection_age_seconds",
        seconds,
        "Age at which a connection is closed once its calls are done, so that callers find new replicas; unset: never.",
    ),
    Variable("LINKBOUND_SERVER_LOG_FORMAT", "log_format", _one_of(LogFormat), "auto, json or console."),
    Variable("LINKBOUND_SERVER_LOG_LEVEL", "log_level", _one_of(LogLevel), "debug, info, warning or error."),
)
"""The settings that both servers share; each server adds the variable of its port."""


def port_variable(name: str) -> Variable:
    """The variable of a server's port."""
    return Variable(name, "port", whole_number, "Port to listen on; 0 is any free one.")


def read_settings(variables: Iterable[Variable], environment: Mapping[str, str], defaults: SettingsT) -> SettingsT:
    """Settings from the environment; an unset or empty variable leaves what `defaults` says.

    Raises InvalidArgumentError with every violation, each named by its variable.
    """
    names: dict[str, str] = {}
    values: dict[str, Any] = {}
    violations: list[Violation] = []
    for variable in variables:
        names[variable.field] = variable.name
        given = environment.get(variable.name, "").strip()
        if not given:
            continue
        try:
            values[variable.field] = variable.parse(given)
        except ValueError as error:
            violations.append(Violation(variable.name, f"{shown(given)} {error}"))
    # mypy takes no type variable here.
    base: Any = defaults
    try:
        settings: SettingsT = evolve(base, **values)
    except InvalidArgumentError as error:
        violations.extend(
            Violation(names.get(v.field, v.field), v.description, v.reason) for v in error.field_violations
        )
        raise InvalidArgumentError(violations) from error
    if violations:
        raise InvalidArgumentError(violations)
    return settings


def describe_settings(variables: Iterable[Variable], defaults: AttrsInstance) -> str:
    """The variables with their defaults, one a line: what `--help` and the documents show."""
    return "\n".join(f"{v.name}: {v.description}{_shown_default(getattr(defaults, v.field))}" for v in variables)


def _shown_default(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return f" Default {str(value).lower()}."
    if isinstance(value, Enum):
        return f" Default {value.value}."
    return f" Default {value:g}." if isinstance(value, float) else f" Default {value}."
