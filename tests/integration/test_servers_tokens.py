"""Which calls need a token, and what becomes of those without one."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from linkbound.domain.errors import InvalidArgumentError, UnauthenticatedError
from serving.settings import ServerSettings
from tests.integration.probes import SERVING, error_of, health_of, models_of, refused_reflection
from tests.integration.servers import estimator_server


@pytest.fixture
def token_settings(tmp_path: Path) -> ServerSettings:
    token_file = tmp_path / "tokens"
    token_file.write_text("# accepted\nfirst-token\n\nsecond-token\n", encoding="utf-8")
    return ServerSettings(token_file=token_file, reflection=True)


@pytest.mark.parametrize("authorization", ["Bearer first-token", "Bearer second-token", "bearer first-token"])
async def test_a_call_with_a_token_is_answered(token_settings: ServerSettings, authorization: str) -> None:
    async with estimator_server(token_settings) as server, server.channel() as channel:
        assert await models_of(channel, metadata=[("authorization", authorization)]) > 0


@pytest.mark.parametrize(
    "authorization",
    [None, "", "first-token", "Basic first-token", "Bearer ", "Bearer first-token2", "Bearer # accepted"],
)
async def test_a_call_without_one_is_not(token_settings: ServerSettings, authorization: str | None) -> None:
    metadata = [] if authorization is None else [("authorization", authorization)]
    messages = set()
    async with estimator_server(token_settings) as server, server.channel() as channel:
        error = await error_of(models_of(channel, metadata=metadata))
        messages.add(error.message)
    assert isinstance(error, UnauthenticatedError)
    # The same whatever was wrong.
    assert messages == {"a valid token is required: authorization: Bearer <token>"}


async def test_health_needs_no_token_and_reflection_does(token_settings: ServerSettings) -> None:
    async with estimator_server(token_settings) as server, server.channel() as channel:
        assert await health_of(channel, "") == SERVING
        error = await error_of(refused_reflection(channel))
    assert isinstance(error, UnauthenticatedError)


async def test_a_token_is_never_logged(token_settings: ServerSettings) -> None:
    with capture_logs() as logs:
        async with estimator_server(token_settings) as server, server.channel() as channel:
            await models_of(channel, metadata=[("authorization", "Bearer first-token")])
            await error_of(models_of(channel, metadata=[("authorization", "Bearer wrong-token")]))
    assert [line["code"] for line in logs if line["event"] == "rpc_finished"] == ["OK", "UNAUTHENTICATED"]
    assert "-token" not in str([{k: v for k, v in line.items() if k != "rpc"} for line in logs])


@pytest.mark.parametrize(("content", "problem"), [(None, "cannot be read"), ("# none\n\n", "holds no token")])
async def test_a_token_file_that_is_none(tmp_path: Path, content: str | None, problem: str) -> None:
    token_file = tmp_path / "tokens"
    if content is not None:
        token_file.write_text(content, encoding="utf-8")
    with pytest.raises(InvalidArgumentError) as caught:
        async with estimator_server(ServerSettings(token_file=token_file)):
            pytest.fail("it started")
    (violation,) = caught.value.field_violations
    assert violation.field == "token_file"
    assert problem in violation.description
