"""A broken file of the catalogue hides no other: it is skipped, and every client and the server say which and why."""

import json
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from estimator_service.catalog.directory import LARGEST_FILE_BYTES, Catalog, Collection
from estimator_service.catalog.files import CatalogError
from estimator_service.catalog.pages import page_of
from estimator_service.service import Estimator
from linkbound import AsyncEstimatorClient, EstimatorClient
from linkbound.client.local.blocking import CATALOG_DIRECTORY_NAME
from linkbound.domain.paging import PageRequest, UnreadableEntryWarning
from tests.congruence.callers import AsyncCaller, BlockingCaller, Caller, call
from tests.congruence.servers import ServerThread, estimator_server
from tests.unit.architecture.configs import SMALL

CONFIG = json.dumps(SMALL)
LISTS = {
    "models": "list_models",
    "calibrations": "list_calibrations",
    "engine_calibrations": "list_engine_calibrations",
}
"""Folders of the catalogue that users can add to."""
NAMES = {"engine_calibrations": "engineCalibrations"}
"""What entries are named by where that is not the folder."""
KINDS = ["blocking-local", "blocking-remote", "async-local", "async-remote"]


@pytest.fixture(name="data")
def data_with_broken_files(tmp_path: Path) -> Path:
    """One good model, and a damaged file of each kind that users can add to."""
    data = tmp_path / "data"
    with EstimatorClient(data_directory=data) as client:
        client.import_model(CONFIG, model="mine")
    for kind in LISTS:
        (data / CATALOG_DIRECTORY_NAME / kind).mkdir(exist_ok=True)
        (data / CATALOG_DIRECTORY_NAME / kind / "broken.toml").write_text("= nothing")
    return data


@pytest.fixture(name="caller_over")
def callers_over_a_directory() -> Iterator[Callable[[str, Path], Caller]]:
    opened: list[Callable[[], None]] = []

    def make(kind: str, data: Path) -> Caller:
        target = "local:"
        if kind.endswith("remote"):
            server = ServerThread(estimator_server(catalog_directory=data / CATALOG_DIRECTORY_NAME))
            opened.append(server.stop)
            target = server.target
        caller: Caller
        if kind.startswith("blocking"):
            caller = BlockingCaller(EstimatorClient(target, data_directory=data))
        else:
            caller = AsyncCaller(AsyncEstimatorClient(target, data_directory=data))
        opened.append(caller.close)
        return caller

    yield make
    for close in reversed(opened):
        close()


def listed(caller: Caller, kind: str) -> tuple[list[Any], list[Any]]:
    """The entries of a list, and what was said of those that are none."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        entries = caller.ask(call(LISTS[kind]))
    said = [w.message for w in caught if isinstance(w.message, UnreadableEntryWarning)]
    return list(entries), [warning.entry for warning in said]


@pytest.mark.parametrize("client", KINDS)
@pytest.mark.parametrize("kind", LISTS)
def test_a_broken_file_is_skipped_and_told(
    kind: str, client: str, caller_over: Callable[[str, Path], Caller], data: Path
) -> None:
    with EstimatorClient() as shipped:
        known = list(getattr(shipped, LISTS[kind])())
    entries, unreadable = listed(caller_over(client, data), kind)
    assert {entry.display_name for entry in entries if kind == "models"} >= ({"mine"} if kind == "models" else set())
    assert [entry for entry in entries if entry in known] == known
    (told,) = unreadable
    assert told.name == f"{NAMES.get(kind, kind)}/broken"
    assert str(data / CATALOG_DIRECTORY_NAME / kind / "broken.toml") in told.problem
    assert "line 1, column 1" in told.problem


def test_hardware_is_told_alike(tmp_path: Path) -> None:
    """Hardware comes with the package alone; a broken file of it hides no other either."""
    (tmp_path / "hardware").mkdir()
    shipped = Catalog(Path(__file__).parents[2] / "estimator_service" / "catalog").hardware
    for name in ("a100-sxm-80gb", "dgx-spark"):
        source = Path(__file__).parents[2] / "estimator_service" / "catalog" / "hardware" / f"{name}.toml"
        (tmp_path / "hardware" / source.name).write_bytes(source.read_bytes())
    (tmp_path / "hardware" / "broken.toml").write_text("memory_bytes = 1")
    page = Estimator(Catalog(tmp_path)).list_hardware(PageRequest())
    assert page.entries == (shipped.get("a100-sxm-80gb"), shipped.get("dgx-spark"))
    assert [entry.name for entry in page.unreadable] == ["hardware/broken"]
    assert "names no sources" in page.unreadable[0].problem


def test_pages_go_on_behind_a_broken_file(data: Path) -> None:
    estimator = Estimator(Catalog(Path(__file__).parent, lambda: data / CATALOG_DIRECTORY_NAME))
    first = estimator.list_models(PageRequest(page_size=1))
    assert (first.entries, [entry.name for entry in first.unreadable]) == ((), ["models/broken"])
    second = estimator.list_models(PageRequest(page_size=1, page_token=first.next_page_token))
    assert ([model.model_id for model in second.entries], second.unreadable) == (["mine"], ())
    assert second.next_page_token == ""


def test_a_file_that_goes_while_it_is_listed_is_no_longer_there(data: Path) -> None:
    """Between the names and the entries anything may happen to a directory of files."""
    estimator = Estimator(Catalog(Path(__file__).parent, lambda: data / CATALOG_DIRECTORY_NAME))
    catalog = Catalog(Path(__file__).parent, lambda: data / CATALOG_DIRECTORY_NAME)

    class Vanishing(Collection[Any]):
        def __init__(self, inner: Collection[Any]) -> None:
            self._inner = inner

        @property
        def ids(self) -> tuple[str, ...]:
            return (*self._inner.ids, "zzz-gone")

        def get(self, entry_id: str) -> Any:
            return self._inner.get(entry_id)

    page = page_of("models", Vanishing(catalog.models), PageRequest())
    assert page == estimator.list_models(PageRequest())


def test_what_is_no_file_or_too_large_is_told_and_not_read(data: Path) -> None:
    models = data / CATALOG_DIRECTORY_NAME / "models"
    os.mkfifo(models / "fifo.toml")
    (models / "folder.toml").mkdir()
    with (models / "large.toml").open("wb") as file:
        file.truncate(LARGEST_FILE_BYTES + 1)
    estimator = Estimator(Catalog(Path(__file__).parent, lambda: data / CATALOG_DIRECTORY_NAME))
    page = estimator.list_models(PageRequest())
    assert [entry.name for entry in page.unreadable] == [
        "models/broken",
        "models/fifo",
        "models/folder",
        "models/large",
    ]
    for name in ("fifo", "folder", "large"):
        with pytest.raises(CatalogError, match=rf"{name}\.toml: "):
            estimator.get_model(name)
