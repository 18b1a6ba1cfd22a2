"""Importing a model: kept whole or not at all, once under a name, and read again by whoever looks."""

import errno
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from estimator_service.catalog.directory import SHIPPED_DIRECTORY, Catalog
from estimator_service.catalog.files import CatalogError
from estimator_service.catalog.imports import LARGEST_INLINE_MODEL_COUNT, InlineModels
from estimator_service.service import Estimator, default_estimator
from linkbound.client.model_config import with_quantization
from linkbound.domain.catalog import ImportModelRequest, Model, WeightFormatSource
from linkbound.domain.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    ResourceExhaustedError,
)
from linkbound.domain.link import Link
from linkbound.domain.paging import PageRequest
from linkbound.domain.prefill import PrefillRequest
from linkbound.domain.workload import PrefillWorkload
from tests.unit.architecture.configs import PUBLISHED, SMALL, SMALL_MOE

CONFIG = json.dumps(SMALL)


@pytest.fixture(name="estimator")
def estimator_over_a_directory(tmp_path: Path) -> Estimator:
    return estimator_over(tmp_path)


def estimator_over(directory: Path) -> Estimator:
    return default_estimator(lambda: directory / "catalog")


def request(config: str = CONFIG, **more: Any) -> ImportModelRequest:
    return ImportModelRequest(**{"model": "mine", "config_json": config, **more})


def content_of(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_an_import_is_there_for_every_estimator_over_the_directory(tmp_path: Path) -> None:
    first, second = estimator_over(tmp_path), estimator_over(tmp_path)
    with pytest.raises(NotFoundError):
        second.get_model("mine")
    imported = first.import_model(request())
    assert (imported.model_id, imported.display_name) == ("mine", "mine")
    assert first.get_model("mine") == second.get_model("mine") == imported
    assert estimator_over(tmp_path).get_model("mine") == imported
    listed = second.list_models(PageRequest(page_size=1000)).entries
    assert [model for model in listed if model.model_id == "mine"] == [imported]


def test_the_same_content_again_is_the_model_that_exists(estimator: Estimator, tmp_path: Path) -> None:
    imported = estimator.import_model(request())
    before = content_of(tmp_path)
    written_otherwise = json.dumps(dict(reversed(SMALL.items())), indent=4)
    assert estimator.import_model(request(written_otherwise)) == imported
    assert content_of(tmp_path) == before


@pytest.mark.parametrize(
    "changes", [{"config_json": json.dumps(SMALL_MOE)}, {"display_name": "Other"}, {"model": "glm-5.3"}]
)
def test_other_content_under_a_name_is_refused(estimator: Estimator, changes: dict[str, str]) -> None:
    imported = estimator.import_model(request())
    with pytest.raises(AlreadyExistsError) as raised:
        estimator.import_model(request(**changes))
    assert raised.value.reason == "MODEL_EXISTS"
    assert estimator.get_model("mine") == imported


def test_what_is_only_read_is_not_kept(estimator: Estimator, tmp_path: Path) -> None:
    read = estimator.import_model(request(model="", validate_only=True))
    assert read.model_id == "inline-llama"
    assert estimator.import_model(request(validate_only=True)).model_id == "mine"
    assert not content_of(tmp_path)


def test_without_a_directory_nothing_is_kept() -> None:
    with pytest.raises(FailedPreconditionError) as raised:
        default_estimator().import_model(request())
    assert raised.value.reason == "CATALOG_READ_ONLY"
    assert default_estimator().import_model(request(validate_only=True)).model_id == "mine"


def test_a_directory_that_cannot_be_made_is_read_only(tmp_path: Path) -> None:
    (tmp_path / "catalog").write_text("a file in its place")
    with pytest.raises(FailedPreconditionError) as raised:
        estimator_over(tmp_path).import_model(request())
    assert raised.value.reason == "CATALOG_READ_ONLY"


@pytest.mark.parametrize(
    ("number", "error", "reason"),
    [
        (errno.ENOSPC, ResourceExhaustedError, "DISK_FULL"),
        (errno.EDQUOT, ResourceExhaustedError, "DISK_FULL"),
        (errno.EROFS, FailedPreconditionError, "CATALOG_READ_ONLY"),
        (errno.EIO, FailedPreconditionError, "CATALOG_READ_ONLY"),
    ],
)
def test_a_disk_that_fails_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, error: type[FailedPreconditionError], reason: str
) -> None:
    def fail(_descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fail)
    estimator = estimator_over(tmp_path)
    with pytest.raises(error) as raised:
        estimator.import_model(request())
    assert raised.value.reason == reason
    assert not content_of(tmp_path)
    monkeypatch.undo()
    assert estimator.import_model(request()).model_id == "mine"


def test_a_file_system_without_links_is_written_by_renaming(
    estimator: Estimator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_paths: object) -> None:
        raise OSError(errno.EPERM, "no links")

    monkeypatch.setattr(os, "link", fail)
    imported = estimator.import_model(request())
    assert list(content_of(tmp_path)) == ["catalog/models/mine.toml"]
    assert estimator.import_model(request()) == imported
    with pytest.raises(AlreadyExistsError):
        estimator.import_model(request(json.dumps(SMALL_MOE)))


def test_imports_at_the_same_time_keep_one(tmp_path: Path) -> None:
    """Sixteen threads with two contents: one of them is kept, and everyone is told which."""
    contents = [CONFIG, json.dumps({**SMALL, "num_hidden_layers": 5})]
    kept: list[Model] = []
    refused: list[AlreadyExistsError] = []
    barrier = threading.Barrier(16)

    def run(content: str) -> None:
        estimator = estimator_over(tmp_path)
        barrier.wait()
        try:
            kept.append(estimator.import_model(request(content)))
        except AlreadyExistsError as error:
            refused.append(error)

    threads = [threading.Thread(target=run, args=(contents[index % 2],)) for index in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(kept), len(refused)) == (8, 8)
    assert set(map(repr, kept)) == {repr(estimator_over(tmp_path).get_model("mine"))}
    assert list(content_of(tmp_path)) == ["catalog/models/mine.toml"]


def test_a_process_that_is_killed_before_it_is_done_leaves_no_model(tmp_path: Path) -> None:
    """SIGKILL between writing the bytes and giving them a name."""
    script = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from estimator_service.catalog import files\n"
        "files.os.link = lambda *paths: os.kill(os.getpid(), signal.SIGKILL)\n"
        "files.write_new(Path(sys.argv[1]), 'mine', 'sources = [\"x\"]')\n"
    )
    directory = tmp_path / "catalog" / "models"
    killed = subprocess.run([sys.executable, "-c", script, str(directory)], check=False)
    assert killed.returncode == -9
    assert not list(directory.glob("*.toml"))
    estimator = estimator_over(tmp_path)
    with pytest.raises(NotFoundError):
        estimator.get_model("mine")
    assert "mine" not in [model.model_id for model in estimator.list_models(PageRequest(page_size=1000)).entries]
    assert estimator.import_model(request()).model_id == "mine"


def test_an_entry_is_read_again_when_its_file_changes_and_gone_with_it(estimator: Estimator, tmp_path: Path) -> None:
    imported = estimator.import_model(request())
    path = tmp_path / "catalog" / "models" / "mine.toml"
    path.write_text(path.read_text().replace('display_name = "mine"', 'display_name = "Mine, edited"'))
    assert estimator.get_model("mine").display_name == "Mine, edited"
    path.unlink()
    with pytest.raises(NotFoundError):
        estimator.get_model("mine")
    assert estimator.import_model(request()) == imported


def test_a_broken_file_is_told_and_hides_no_other(estimator: Estimator, tmp_path: Path) -> None:
    imported = estimator.import_model(request())
    (tmp_path / "catalog" / "models" / "broken.toml").write_text("= nothing")
    with pytest.raises(CatalogError) as raised:
        estimator.get_model("broken")
    assert raised.value.reason == "CATALOG_UNREADABLE"
    assert estimator.get_model("mine") == imported


def test_an_id_never_leaves_the_directory(estimator: Estimator, tmp_path: Path) -> None:
    estimator.import_model(request())
    (tmp_path / "catalog" / "outside.toml").write_text((tmp_path / "catalog" / "models" / "mine.toml").read_text())
    for name in ("../outside", "./mine", "models/../mine", "..", ".mine"):
        with pytest.raises(NotFoundError):
            Catalog(SHIPPED_DIRECTORY, lambda: tmp_path / "catalog").models.get(name)


def test_every_id_that_is_listed_can_be_had(estimator: Estimator, tmp_path: Path) -> None:
    """A file whose name is no id, put there by hand, is no entry."""
    estimator.import_model(request(model="mine"))
    (path,) = tmp_path.rglob("mine.toml")
    for name in ("Mine.toml", "my model.toml", "_mine.toml"):
        (path.parent / name).write_bytes(path.read_bytes())
    models = Catalog(SHIPPED_DIRECTORY, lambda: path.parent.parent).models
    assert set(models.ids) - set(Catalog(SHIPPED_DIRECTORY).models.ids) == {"mine"}
    assert models.get("mine").model_id == "mine"


def test_every_violation_of_an_import_comes_at_once() -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        ImportModelRequest(model="Not An Id", config_json="x" * (4 * 2**20 + 1), display_name="a\nb")
    assert [v.field for v in raised.value.field_violations] == ["model", "config_json", "display_name"]
    with pytest.raises(InvalidArgumentError) as raised:
        ImportModelRequest(config_json="")
    assert [v.field for v in raised.value.field_violations] == ["config_json", "model"]


# ---------------------------------------------------------------- inline configs


def prefill(config_json: str, tensor_parallel_size: int = 2) -> PrefillRequest:
    workload = PrefillWorkload(
        model_config_json=config_json, tensor_parallel_size=tensor_parallel_size, prompt_tokens=1000
    )
    return PrefillRequest(workload=workload, link=Link(line_rate_bits_per_second=10**9))


def test_a_config_beside_a_question_may_be_as_large_as_one_that_is_imported(estimator: Estimator) -> None:
    padded = json.dumps({**SMALL, "_note": "x" * (3 * 2**20)})
    assert estimator.estimate_prefill(prefill(padded)).all_reduce_count == 9
    with pytest.raises(InvalidArgumentError) as raised:
        prefill("x" * (4 * 2**20 + 1))
    assert raised.value.field_violations[0].field == "workload.model_config_json"


def test_a_request_may_bring_its_config(estimator: Estimator) -> None:
    imported = estimator.import_model(request())
    by_name = PrefillWorkload(model="mine", tensor_parallel_size=2, prompt_tokens=1000)
    named = estimator.estimate_prefill(PrefillRequest(workload=by_name, link=Link(line_rate_bits_per_second=10**9)))
    inline = estimator.estimate_prefill(prefill(CONFIG))
    assert inline.sent_bytes_per_rank == named.sent_bytes_per_rank
    assert inline.all_reduce_count == imported.all_reduce_count
    assert inline.model == "inline-llama"


def test_what_is_wrong_with_an_inline_config_is_told_with_its_path(estimator: Estimator) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        estimator.estimate_prefill(prefill(json.dumps({**SMALL, "hidden_size": "64"})))
    (violation,) = raised.value.field_violations
    assert violation.field == "workload.model_config_json.hidden_size"


def test_a_size_that_does_not_fit_names_the_inline_model(estimator: Estimator) -> None:
    with pytest.raises(InvalidArgumentError, match="inline-llama cannot be cut over 7 ranks"):
        estimator.estimate_prefill(prefill(CONFIG, 7))


def test_recent_inline_models_are_kept_and_not_more() -> None:
    models = InlineModels()
    texts = [json.dumps({**SMALL, "vocab_size": 1000 + i}) for i in range(LARGEST_INLINE_MODEL_COUNT + 1)]
    first = models.get(texts[0], "config")
    assert models.get(texts[0], "config") is first
    for text in texts[1:]:
        models.get(text, "config")
    again = models.get(texts[0], "config")
    assert again == first
    assert again is not first


def test_figures_beyond_what_answers_hold_are_violations_of_the_config() -> None:
    giant = {**SMALL_MOE, "n_routed_experts": 10**5, "moe_intermediate_size": 10**6, "hidden_size": 10**6}
    reading: list[Callable[[], object]] = [
        lambda: InlineModels().get(json.dumps(giant), "workload.model_config_json"),
        lambda: default_estimator().import_model(request(json.dumps(giant), validate_only=True)),
    ]
    for read, field in zip(reading, ("workload.model_config_json", "config_json"), strict=True):
        with pytest.raises(InvalidArgumentError) as raised:
            read()
        assert {violation.field for violation in raised.value.field_violations} == {field}


@pytest.mark.parametrize("name", PUBLISHED)
def test_what_is_kept_is_what_was_read(name: str, tmp_path: Path) -> None:
    """The file of an import holds everything that its model is derived from."""
    config = json.dumps(PUBLISHED[name]["config"])
    imported = estimator_over(tmp_path).import_model(request(config))
    assert estimator_over(tmp_path).get_model("mine") == imported


MODELOPT = {
    "producer": {"name": "modelopt", "version": "0.29.0"},
    "quantization": {"quant_algo": "NVFP4", "group_size": 16, "exclude_modules": ["lm_head", "*self_attn*"]},
}
BESIDE: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "hf_quant_config.json": (MODELOPT, MODELOPT),
    "quantize_config.json": (
        {"bits": 4, "group_size": 64, "desc_act": False, "sym": True},
        {"quant_method": "gptq", "bits": 4, "group_size": 64},
    ),
    "quant_config.json": (
        {"zero_point": True, "q_group_size": 64, "w_bit": 4, "version": "GEMM"},
        {"quant_method": "awq", "bits": 4, "group_size": 64, "zero_point": True},
    ),
    "config.json of the quantised checkpoint": (
        {**SMALL, "quantization_config": {"quant_method": "fp8"}},
        {"quant_method": "fp8"},
    ),
}
"""By the file beside a config: its contents, and the section of a config that says the same."""


@pytest.mark.parametrize("name", BESIDE)
def test_a_quantisation_beside_the_config_counts_as_one_in_it(estimator: Estimator, name: str) -> None:
    beside, section = BESIDE[name]
    imported = estimator.import_model(request(quantization_json=json.dumps(beside)))
    within = estimator.import_model(
        request(json.dumps({**SMALL, "quantization_config": section}), model="", validate_only=True)
    )
    assert imported.parameter_groups == within.parameter_groups
    assert imported.weight_format_source is WeightFormatSource.STATED
    assert 4 <= (imported.weight_bits_per_parameter or 0) < 16
    assert imported.unused_keys == within.unused_keys
    assert "with the quantisation file beside it" in imported.sources[0]
    assert estimator.get_model("mine") == imported


def test_what_a_config_says_itself_goes_before_the_file_beside_it(estimator: Estimator) -> None:
    config = json.dumps({**SMALL, "quantization_config": {"quant_method": "fp8"}})
    alone = estimator.import_model(request(config, validate_only=True))
    both = estimator.import_model(request(config, validate_only=True, quantization_json=json.dumps(MODELOPT)))
    assert both.parameter_groups == alone.parameter_groups
    assert both.sources == alone.sources
    assert any("not used" in sentence for sentence in both.assumptions)


def test_bits_that_are_given_stand_for_every_weight(estimator: Estimator, tmp_path: Path) -> None:
    imported = estimator.import_model(request(weight_bits_per_parameter=4.5))
    assert (imported.weight_bits_per_parameter, imported.weight_format_source) == (4.5, WeightFormatSource.STATED)
    assert all(group.weight_bytes is None for group in imported.parameter_groups)
    assert any("4.5 bits" in sentence for sentence in imported.assumptions)
    assert not any("names no quantisation" in sentence for sentence in imported.assumptions)
    assert not imported.undetermined
    assert estimator_over(tmp_path).get_model("mine") == imported


def test_bits_that_are_given_close_what_a_config_leaves_open(estimator: Estimator) -> None:
    config = json.dumps({**SMALL, "quantization_config": {"quant_method": "wishful"}})
    assert estimator.import_model(request(config, validate_only=True)).undetermined
    given = estimator.import_model(request(config, validate_only=True, weight_bits_per_parameter=4.0))
    assert (given.weight_bits_per_parameter, given.undetermined) == (4.0, ())


@pytest.mark.parametrize(
    ("changes", "field", "told"),
    [
        ({"config_json": json.dumps(MODELOPT)}, "config_json", "config.json that lies beside it"),
        (
            {"config_json": json.dumps(BESIDE["quantize_config.json"][0])},
            "config_json",
            "config.json that lies beside it",
        ),
        ({"quantization_json": CONFIG}, "quantization_json", "names no quantisation"),
        ({"quantization_json": "{"}, "quantization_json", "is not JSON"),
        ({"quantization_json": "[1]"}, "quantization_json", "is not a JSON object but an array"),
        ({"quantization_json": '{"bits": "four"}'}, "quantization_json.bits", "is not a whole number"),
        ({"weight_bits_per_parameter": 0.0}, "weight_bits_per_parameter", "above 0"),
    ],
)
def test_what_is_wrong_with_a_quantisation_is_told_of_its_document(
    estimator: Estimator, changes: dict[str, Any], field: str, told: str
) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        estimator.import_model(request(**{"config_json": CONFIG, **changes}))
    (violation,) = raised.value.field_violations
    assert violation.field == field
    assert told in violation.description


def test_an_inline_config_takes_the_quantisation_in_one_document(estimator: Estimator) -> None:
    merged = with_quantization(CONFIG, json.dumps(MODELOPT))
    imported = estimator.import_model(request(quantization_json=json.dumps(MODELOPT)))
    assert InlineModels().get(merged, "config").parameter_groups == imported.parameter_groups
    assert json.loads(with_quantization(merged, json.dumps({"quant_algo": "FP8"}))) == json.loads(merged)


@pytest.mark.parametrize(
    ("config", "beside", "field"),
    [
        ("{", "{}", "config_json"),
        ("[]", "{}", "config_json"),
        ("{}", "nothing", "quantization_json"),
        ("{}", "{}", "quantization_json"),
    ],
)
def test_documents_that_cannot_be_joined(config: str, beside: str, field: str) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        with_quantization(config, beside)
    assert [violation.field for violation in raised.value.field_violations] == [field]
