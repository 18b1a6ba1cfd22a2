"""An ingest service with one run, and a channel to it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest_asyncio

from ingest_service.service import Ingest
from ingest_service.settings import StoreSettings
from linkbound.domain.run import CreateRunRequest
from tests.integration.sample_stream.calls import STORE_FILE
from tests.integration.servers import Running, ingest_server
from tests.new_store import laid


@pytest_asyncio.fixture
async def server(tmp_path: Path) -> AsyncIterator[Running]:
    with Ingest.open(StoreSettings(path=laid(tmp_path / STORE_FILE))) as ingest:
        ingest.create_run(CreateRunRequest(run_id="r"))
    async with ingest_server(tmp_path) as running_server:
        yield running_server


@pytest_asyncio.fixture
async def channel(server: Running) -> AsyncIterator[grpc.aio.Channel]:
    async with server.channel() as opened:
        yield opened
