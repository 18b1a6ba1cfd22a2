from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from linkbound import AsyncEstimatorClient, AsyncIngestClient, EstimatorClient, IngestClient
from linkbound.client.local.blocking import STORE_FILE_NAME
from tests.congruence.callers import AsyncCaller, BlockingCaller, Caller
from tests.congruence.servers import ServerThread, estimator_server, ingest_server, running
from tests.new_store import laid

KINDS = ["blocking-remote", "async-local", "async-remote"]
"""What is held against the blocking client in this process."""


@pytest.fixture(scope="session")
def estimator() -> Iterator[ServerThread]:
    with running(estimator_server()) as server:
        yield server


@pytest.fixture(scope="session")
def estimator_callers(estimator: ServerThread) -> Iterator[dict[str, Caller]]:
    callers: dict[str, Caller] = {
        "blocking-local": BlockingCaller(EstimatorClient("local:")),
        "blocking-remote": BlockingCaller(EstimatorClient(estimator.target)),
        "async-local": AsyncCaller(AsyncEstimatorClient("local:")),
        "async-remote": AsyncCaller(AsyncEstimatorClient(estimator.target)),
    }
    yield callers
    for caller in callers.values():
        caller.close()


@pytest.fixture
def ingest_caller(tmp_path: Path) -> Iterator[Callable[[str], Caller]]:
    """Makes a caller of the kind that is named, over an empty store of its own."""
    opened: list[Callable[[], None]] = []

    def remote_target(kind: str) -> str:
        server = ServerThread(ingest_server(tmp_path / kind))
        opened.append(server.stop)
        return server.target

    def make(kind: str) -> Caller:
        caller: Caller
        laid(tmp_path / kind / STORE_FILE_NAME)
        if kind == "blocking-local":
            caller = BlockingCaller(IngestClient("local:", data_directory=tmp_path / kind))
        elif kind == "blocking-remote":
            caller = BlockingCaller(IngestClient(remote_target(kind)))
        elif kind == "async-local":
            caller = AsyncCaller(AsyncIngestClient("local:", data_directory=tmp_path / kind))
        else:
            caller = AsyncCaller(AsyncIngestClient(remote_target(kind)))
        opened.append(caller.close)
        return caller

    yield make
    for close in reversed(opened):
        close()
