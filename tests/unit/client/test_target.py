from typing import Any

import pytest

from linkbound.client.target import Target, TargetKind, parse_target
from linkbound.domain.errors import InvalidArgumentError

SEVERAL = [
    "dns:///estimator:50051",
    "ipv4:10.0.0.1:50051",
    "ipv4:127.0.0.1:50051,127.0.0.1:50052",
    "ipv6:[::1]:1,[fe80::2]:2",
]


@pytest.mark.parametrize(
    "text",
    [
        "localhost:1",
        "10.0.0.1:50051",
        "spark-1.lab_net:65535",
        "[::1]:50051",
        "[fe80::1%eth0]:7",
        "unix:/run/lb.sock",
        *SEVERAL,
    ],
)
def test_an_address_is_remote_and_kept_as_it_is(text: str) -> None:
    assert parse_target(text) == Target(TargetKind.REMOTE, text)


def test_local_is_this_process() -> None:
    assert parse_target("local:").kind is TargetKind.LOCAL


@pytest.mark.parametrize(
    "text",
    [
        "",
        "local",
        "local:/tmp",
        "localhost",
        "localhost:",
        "localhost:0",
        "localhost:65536",
        "localhost:123456",
        "localhost:port",
        "local host:80",
        "http://localhost:80",
        "localhost:80/path",
        "::1:50051",
        "unix:",
        "unix:/",
        "unix:/run/\n",
        "sp\u00e4rk:80",
        "host:\u0661\u0662",
        "localhost:80\n",
        "-host:80",
        "x" * 300 + ":80",
        "ipv4:",
        "ipv4:localhost:80",
        "ipv4:[::1]:80",
        "ipv6:10.0.0.1:80",
        "ipv4:10.0.0.1",
        "ipv4:10.0.0.1:80,",
        "ipv4:10.0.0.1:80,10.0.0.2",
        "ipv4:10.0.0.1:80, 10.0.0.2:80",
        "10.0.0.1:80,10.0.0.2:80",
        "dns:///",
        "dns:///host",
        "dns://host:80",
        None,
        50051,
    ],
)
def test_anything_else_is_a_violation_of_target(text: Any) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        parse_target(text)
    assert [violation.field for violation in caught.value.field_violations] == ["target"]
