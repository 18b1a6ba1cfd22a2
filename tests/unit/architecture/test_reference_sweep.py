"""Real configs: every file of the reference folder, against its tables of collectives and of parameters.

The folder is not of this repository; without LINKBOUND_REFERENCE_DATA the sweep is skipped, visibly.
"""

import csv
import json
import os
import re
from functools import cache
from pathlib import Path

import pytest
from attrs import evolve

from estimator_service.architecture.facts import Architecture, Reading
from estimator_service.architecture.model import model_of
from estimator_service.architecture.read_architecture import read_architecture, read_values
from estimator_service.catalog.directory import SHIPPED_DIRECTORY
from estimator_service.catalog.files import read_table
from estimator_service.catalog.model_files import ModelFile
from estimator_service.core.inventory import sent_bytes_per_token
from linkbound.domain.catalog import Model, ModelPart, WeightFormatSource
from linkbound.domain.collective import CollectiveKind
from linkbound.domain.quantisation_file import with_quantisation
from linkbound.importers.tables import from_table

FOLDER = os.environ.get("LINKBOUND_REFERENCE_DATA", "")
pytestmark = pytest.mark.skipif(not FOLDER, reason="LINKBOUND_REFERENCE_DATA is not set: real configs are not swept")

# Keys that a reduced file of the folder adds in its own words.
WORDS_OF_THE_FOLDER = {"_note"}
FACTS = {
    "hidden": "hidden_size",
    "layers": "layer_count",
    "heads": "attention_head_count",
    "kv_heads": "key_value_head_count",
    "vocab": "vocabulary_size",
    "experts": "expert_count",
    "topk": "active_expert_count",
    "mtp": "mtp_layer_count",
}


def rows(name: str) -> list[dict[str, str]]:
    if not FOLDER:
        return []
    with (Path(FOLDER) / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def paths() -> list[Path]:
    return sorted((Path(FOLDER) / "hf_configs").glob("*.json")) if FOLDER else []


@cache
def reading(file_name: str) -> Reading:
    return read_architecture((Path(FOLDER) / "hf_configs" / file_name).read_text(encoding="utf-8"))


def model(file_name: str) -> Model:
    return model_of(reading(file_name), model_id="swept", display_name="Swept", sources=("the folder",))


def part(read: Model, wanted: ModelPart) -> int:
    return sum(group.parameter_count for group in read.parameter_groups if group.part is wanted)


def test_there_is_something_to_sweep() -> None:
    assert len(paths()) >= 96


@pytest.mark.parametrize("path", paths(), ids=lambda path: path.stem)
def test_every_file_is_read_without_false_alarms(path: Path) -> None:
    read = model(path.name)
    assert set(read.unused_keys) <= WORDS_OF_THE_FOLDER
    # What is open is open because the file is a reduced one.
    reduced = '"_note"' in path.read_text(encoding="utf-8")
    assert reduced or not read.undetermined


@pytest.mark.parametrize("row", rows("arch_facts.csv"), ids=lambda row: row["model"])
def test_collectives_and_bytes_are_those_of_the_table(row: dict[str, str]) -> None:
    """No row is disagreed with. A latent sum is narrower and stands in a row of its own; its bytes count."""
    read = model(f"{row['model'].replace('/', '--')}.json")
    wide = sum(c.count for c in read.collectives if c.kind is CollectiveKind.ALL_REDUCE and c.width == read.hidden_size)
    assert wide == int(row["all_reduces_per_forward"])
    columns = {2: "bytes_per_prompt_token_per_rank_tp2", 4: "bytes_tp4", 8: "bytes_tp8"}
    assert {size: sent_bytes_per_token(read, size) for size in columns} == {
        size: int(row[column]) for size, column in columns.items()
    }
    stated = {column: int(row[column]) for column in FACTS if row[column]}
    assert {column: getattr(read, FACTS[column]) for column in stated} == stated


@pytest.mark.parametrize("row", rows("parameter_totals.csv"), ids=lambda row: row["file"])
def test_parameters_are_those_of_the_independent_count(row: dict[str, str]) -> None:
    """Exact, all 80. Qwen3.5 is counted there, and here, as it runs as a language model, without its vision tower."""
    read = model(row["file"])
    counted = {
        "total_parameters": read.total_parameters,
        "routed_expert_parameters": part(read, ModelPart.ROUTED_EXPERTS),
        "embedding_parameters": part(read, ModelPart.EMBEDDING),
        "vision_audio_parameters": part(read, ModelPart.VISION_AUDIO),
    }
    assert counted == {column: int(row[column]) for column in counted}


@pytest.mark.parametrize(
    ("file_name", "with_mtp_billions"),
    [
        ("zai-org--GLM-5.json", 753.9),
        ("zai-org--GLM-5.1.json", 753.9),
        ("zai-org--GLM-5.2.json", 753.3),
        ("deepseek-ai--DeepSeek-V3.json", 671.0 + 11.6),
    ],
)
def test_parameters_of_draft_modules(file_name: str, with_mtp_billions: float) -> None:
    """DeepSeek-V3's is printed as 14 B with an embedding and a head of its own, which the engine shares."""
    read = model(file_name)
    assert round(((read.total_parameters or 0) + (read.mtp_parameters or 0)) / 1e9, 1) == with_mtp_billions


@pytest.mark.parametrize("path", paths(), ids=lambda path: path.stem)
def test_a_shipped_entry_has_the_facts_of_its_config(path: Path) -> None:
    """Entries that name a config of the folder as their source equal what importing it gives.

    Where it names no quantisation the entry states the formats, from another source.
    """
    repository = path.stem.replace("--", "/")
    entries = {
        entry.stem: from_table(ModelFile, read_table(entry)) for entry in SHIPPED_DIRECTORY.glob("models/*.toml")
    }
    reduced = '"_note"' in path.read_text(encoding="utf-8")
    for model_id, entry in entries.items():
        if entry.sources[0].split(",")[0] == f"config.json of {repository}" and not reduced:
            read = reading(path.name).architecture
            is_open = read.weight_format_source is WeightFormatSource.DATA_TYPE
            assert (without_formats(entry.architecture) if is_open else entry.architecture) == read, model_id


def without_formats(architecture: Architecture) -> Architecture:
    groups = tuple(evolve(group, stored=()) for group in architecture.layers)
    return evolve(
        architecture,
        layers=groups,
        formats=(),
        stored_around=(),
        weight_format_source=WeightFormatSource.DATA_TYPE,
    )


def test_quantised_checkpoints_whose_configs_do_not_say_so_leave_their_format_open() -> None:
    """The 11 of 96 whose names say FP8 or NVFP4 and whose configs name no quantisation."""
    quantised = [path.name for path in paths() if re.search("FP8|NVFP4", path.name)]
    silent = [name for name in quantised if model(name).weight_format_source is not WeightFormatSource.STATED]
    assert len(silent) == 11
    for name in silent:
        read = model(name)
        assert read.weight_format_source is WeightFormatSource.DATA_TYPE
        assert read.weight_bits_per_parameter == 16
        assert any("hf_quant_config.json" in sentence for sentence in read.assumptions)


def test_configs_that_name_a_quantisation_leave_nothing_open() -> None:
    for path in paths():
        names_one = '"quantization_config"' in path.read_text(encoding="utf-8")
        source = WeightFormatSource.STATED if names_one else WeightFormatSource.DATA_TYPE
        # Of a reduced file whose parts are not known there are no bytes, and no source of their format.
        if model(path.name).parameter_groups:
            assert model(path.name).weight_format_source is source, path.name


def test_the_file_beside_a_config_makes_it_the_checkpoint_that_it_is() -> None:
    """Qwen3-235B-A22B in NVFP4: 94 layers of experts and attention in 4 bits and a byte for 16 of them.

    By hand: 235.09 B parameters, of which two tables of 151,936 x 4,096, 94 routers of 128 x 4,096 and the norms stay
    in BF16; each of the 94 x (4 + 3 x 128) matrices has a float32.
    """
    excluded = ["lm_head", *(f"model.layers.{layer}.mlp.gate" for layer in range(94))]
    beside = {"quantization": {"quant_algo": "NVFP4", "group_size": 16, "exclude_modules": excluded}}
    config = json.loads((Path(FOLDER) / "hf_configs" / "nvidia--Qwen3-235B-A22B-NVFP4.json").read_text("utf-8"))
    read = read_values(with_quantisation(config, beside, "beside"), "config_json")
    counted = model_of(read, model_id="swept", display_name="Swept", sources=("the folder",))
    plain = 2 * 151_936 * 4096 + 94 * 128 * 4096 + part(counted, ModelPart.NORM)
    in_four_bits = (counted.total_parameters or 0) - plain
    expected = 2 * plain + in_four_bits * 9 // 16 + 4 * 94 * (4 + 3 * 128)
    assert sum(group.weight_bytes or 0 for group in counted.parameter_groups) == expected
