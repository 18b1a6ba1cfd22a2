"""Importing a model means the same to every client: what is kept, what is found again, what is refused."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from linkbound import AsyncEstimatorClient, EstimatorClient
from linkbound.client.local.blocking import CATALOG_DIRECTORY_NAME
from linkbound.domain.catalog import Model
from linkbound.domain.errors import AlreadyExistsError, FailedPreconditionError
from tests.congruence.callers import AsyncCaller, BlockingCaller, Caller, Failure, call
from tests.congruence.servers import ServerThread, estimator_server
from tests.unit.architecture.configs import SMALL, SMALL_MOE

KINDS = ["blocking-local", "blocking-remote", "async-local", "async-remote"]
CONFIG, OTHER = json.dumps(SMALL), json.dumps(SMALL_MOE)


@pytest.fixture(name="caller_over")
def callers_over_a_directory() -> Iterator[Callable[[str, Path], Caller]]:
    opened: list[Callable[[], None]] = []

    def make(kind: str, data: Path) -> Caller:
        target, directory = "local:", data
        if kind.endswith("remote"):
            server = ServerThread(estimator_server(catalog_directory=data / CATALOG_DIRECTORY_NAME))
            opened.append(server.stop)
            target = server.target
        caller: Caller
        if kind.startswith("blocking"):
            caller = BlockingCaller(EstimatorClient(target, data_directory=directory))
        else:
            caller = AsyncCaller(AsyncEstimatorClient(target, data_directory=directory))
        opened.append(caller.close)
        return caller

    yield make
    for close in reversed(opened):
        close()


@pytest.mark.parametrize("kind", KINDS)
def test_an_import_is_kept_and_found_again(
    kind: str, caller_over: Callable[[str, Path], Caller], tmp_path: Path
) -> None:
    caller = caller_over(kind, tmp_path)
    imported = caller.ask(call("import_model", CONFIG, model="mine", display_name="Mine"))
    assert isinstance(imported, Model)
    assert imported.display_name == "Mine"
    assert caller.ask(call("get_model", "mine")) == imported
    assert caller.ask(call("import_model", CONFIG, model="models/mine", display_name="Mine")) == imported
    assert imported in caller.ask(call("list_models"))
    answer = caller.ask(call("estimate_prefill", model="mine", tensor_parallel_size=2, prompt_tokens=8, link="1g"))
    assert answer.model == "mine"
    # Whoever looks into the same directory finds the same.
    assert caller_over("blocking-local", tmp_path).ask(call("get_model", "mine")) == imported


@pytest.mark.parametrize("kind", KINDS)
def test_a_name_that_is_taken_is_refused(kind: str, caller_over: Callable[[str, Path], Caller], tmp_path: Path) -> None:
    caller = caller_over(kind, tmp_path)
    caller.ask(call("import_model", CONFIG, model="mine"))
    refused = caller.ask(call("import_model", OTHER, model="mine"))
    assert isinstance(refused, Failure)
    assert refused.kind is AlreadyExistsError
    assert refused.facts["reason"] == "MODEL_EXISTS"


@pytest.mark.parametrize("kind", KINDS)
def test_a_catalogue_that_cannot_be_written_to_says_so(
    kind: str, caller_over: Callable[[str, Path], Caller], tmp_path: Path
) -> None:
    (tmp_path / CATALOG_DIRECTORY_NAME).write_text("in its place")
    refused = caller_over(kind, tmp_path).ask(call("import_model", CONFIG, model="mine"))
    assert isinstance(refused, Failure)
    assert refused.kind is FailedPreconditionError
    assert refused.facts["reason"] == "CATALOG_READ_ONLY"
