from typing import Any

import pytest

from linkbound.client.backend import Connection
from linkbound.client.options import TlsFiles
from linkbound.client.remote.channel import call_metadata, channel_options
from linkbound.client.target import parse_target


def connection(target: str = "host:1", **settings: Any) -> Connection:
    return Connection(target=parse_target(target), **settings)


def test_retries_keepalive_and_limits_are_set() -> None:
    options = dict(channel_options(connection()))
    assert '"maxAttempts": 5' in str(options["grpc.service_config"])
    assert options["grpc.keepalive_time_ms"] == 30_000
    assert options["grpc.keepalive_timeout_ms"] == 10_000
    assert 0 < int(options["grpc.max_receive_message_length"]) <= 2**26


def test_a_given_option_takes_the_place_of_ours() -> None:
    given = (("grpc.keepalive_time_ms", 60_000), ("grpc.primary_user_agent", "mine"), ("grpc.lb_policy_name", "x"))
    options = channel_options(connection(channel_options=given))
    assert set(given) <= set(options)
    assert len({name for name, _ in options}) == len(options)


OWN_LISTS = ["dns:///localhost:80", "ipv4:127.0.0.1:80,127.0.0.2:81", "ipv6:[::1]:80"]


@pytest.mark.parametrize(
    "target", ["localhost:1", "LOCALHOST:1", "127.0.0.1:80", "[::1]:80", "unix:/run/socket", *OWN_LISTS]
)
def test_no_proxy_stands_between_this_machine_and_itself(target: str) -> None:
    assert dict(channel_options(connection(target)))["grpc.enable_http_proxy"] == 0


@pytest.mark.parametrize(
    "target", ["host:1", "localhost.example.com:1", "10.127.0.1:80", "ipv4:127.0.0.1:80,10.0.0.1:80"]
)
def test_a_proxy_is_left_to_the_environment_elsewhere(target: str) -> None:
    assert "grpc.enable_http_proxy" not in dict(channel_options(connection(target)))


def test_the_name_in_the_certificate_can_be_given() -> None:
    named = connection(tls=TlsFiles(server_name="linkbound.test"))
    assert dict(channel_options(named))["grpc.ssl_target_name_override"] == "linkbound.test"
    assert "grpc.ssl_target_name_override" not in dict(channel_options(connection(tls=TlsFiles())))


def test_the_token_travels_as_a_bearer_token_and_is_not_shown() -> None:
    with_token = connection(token="s3cret")
    assert call_metadata(with_token) == (("authorization", "Bearer s3cret"),)
    assert call_metadata(connection()) == ()
    assert "s3cret" not in repr(with_token)
