"""What servers do about connections whose other end is gone."""

from __future__ import annotations

from serving.builder import server_options
from serving.settings import ServerSettings


def test_a_connection_is_tested_whether_a_call_runs_on_it_or_not() -> None:
    options = dict(server_options(ServerSettings(keepalive_seconds=5.0, keepalive_timeout_seconds=2.5)))
    assert options["grpc.keepalive_time_ms"] == 5000
    assert options["grpc.keepalive_timeout_ms"] == 2500
    assert options["grpc.keepalive_permit_without_calls"] == 1
