"""The shipped catalogue: every entry loads, names its sources and counts right; and how broken files are told."""

import csv
import os
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from estimator_service.catalog.directory import SHIPPED_DIRECTORY, Catalog
from estimator_service.catalog.entries import read_hardware
from estimator_service.catalog.files import CatalogError
from estimator_service.catalog.model_files import read_model
from estimator_service.core.inventory import sent_bytes_per_token
from linkbound.domain.catalog import RowScope, WeightFormatSource
from linkbound.domain.errors import NotFoundError

EXPECTED: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_name("shipped_models.toml").read_text("utf-8"))
CATALOG = Catalog(SHIPPED_DIRECTORY)
QUANTISED = re.compile("FP8|NVFP4|MXFP4|INT4|INT8|AWQ|GPTQ", re.IGNORECASE)
"""In the name of a checkpoint."""

SMALL_MODEL = """
display_name = "Small"
sources = ["counted by hand"]

[architecture]
hidden_size = 10
vocabulary_size = 100
head_count = 2
key_value_head_count = 2

[[architecture.layers]]
layers = "0"

[[architecture.layers.mixers]]
type = "attention"
head_count = 2
key_value_head_count = 2
head_dim = 5
value_head_dim = 5

[[architecture.layers.feed_forwards]]
type = "dense_feed_forward"
inner_width = 20
"""


def test_the_shipped_models_are_the_expected_ones() -> None:
    assert set(CATALOG.models.ids) == set(EXPECTED)
    assert list(CATALOG.models.ids) == sorted(CATALOG.models.ids)


@pytest.mark.parametrize("model_id", EXPECTED)
def test_counts_and_bytes(model_id: str) -> None:
    model = CATALOG.models.get(model_id)
    expected = EXPECTED[model_id]
    assert model.model_id == model_id
    assert model.all_reduce_count == expected["all_reduces"]
    for size, sent in expected["sent_bytes_per_token"].items():
        assert sent_bytes_per_token(model, int(size)) == sent


@pytest.mark.parametrize("model_id", EXPECTED)
def test_facts_are_consistent(model_id: str) -> None:
    model = CATALOG.models.get(model_id)
    assert model.sources
    (logits,) = [row for row in model.collectives if row.row_scope is RowScope.LOGITS]
    assert 0 <= logits.width - model.vocabulary_size < 64
    has_experts = any("experts" in row.reason for row in model.collectives)
    assert has_experts == (model.expert_count > 0)


@pytest.mark.parametrize("model_id", [name for name in EXPECTED if "reference" in EXPECTED[name]])
def test_published_sweep_over_real_configs(model_id: str) -> None:
    folder = os.environ.get("LINKBOUND_REFERENCE_DATA")
    if not folder:
        pytest.skip("LINKBOUND_REFERENCE_DATA is not set: published configs are not swept")
    with (Path(folder) / "arch_facts.csv").open(encoding="utf-8", newline="") as file:
        rows = {row["model"]: row for row in csv.DictReader(file)}
    row = rows[EXPECTED[model_id]["reference"]]
    model = CATALOG.models.get(model_id)
    facts = (
        model.hidden_size,
        model.layer_count,
        model.attention_head_count,
        model.key_value_head_count,
        model.vocabulary_size,
        model.expert_count,
        model.active_expert_count,
        model.mtp_layer_count,
        model.all_reduce_count,
        sent_bytes_per_token(model, 2),
        sent_bytes_per_token(model, 4),
        sent_bytes_per_token(model, 8),
    )
    columns = (
        *("hidden", "layers", "heads", "kv_heads", "vocab", "experts", "topk", "mtp", "all_reduces_per_forward"),
        *("bytes_per_prompt_token_per_rank_tp2", "bytes_tp4", "bytes_tp8"),
    )
    # A reduced row leaves out what the folder does not hold; the entry stands on the published config.
    stated = [(fact, int(row[column])) for fact, column in zip(facts, columns, strict=True) if row[column]]
    assert len(stated) >= 6
    assert [fact for fact, _ in stated] == [expected for _, expected in stated]


def test_facts_of_the_studies() -> None:
    glm = CATALOG.models.get("glm-5.3")
    assert (glm.hidden_size, glm.layer_count, glm.activation_value_bytes) == (6144, 78, 2)
    assert (glm.active_parameters, glm.weight_bits_per_parameter) == (40 * 10**9, 4.5)
    # What the study does not print is GLM-5.2's, and the entry says so.
    stand_in = CATALOG.models.get("glm-5.2")
    assert any("GLM-5.2" in sentence for sentence in glm.assumptions)
    assert any("GLM-5.2" in source for source in glm.sources)
    assert (glm.attention_head_count, glm.key_value_head_count) == (64, 64)
    assert (glm.vocabulary_size, glm.expert_count) == (154_880, 256)
    assert glm.collectives == stand_in.collectives
    assert glm.total_parameters == stand_in.total_parameters
    spark = CATALOG.hardware.get("dgx-spark")
    # What programs see of the nominal 128 GB: 121.6 GiB.
    assert spark.memory_bytes / 2**30 == pytest.approx(121.6, abs=0.01)
    assert spark.memory_bandwidth_bytes_per_second == 273 * 10**9


@pytest.mark.parametrize("hardware_id", CATALOG.hardware.ids)
def test_hardware_has_sources_and_memory_of_its_size(hardware_id: str) -> None:
    hardware = CATALOG.hardware.get(hardware_id)
    assert len(hardware.sources) >= 2
    assert 20 * 10**9 < hardware.memory_bytes < 300 * 10**9
    # An accelerator reads all of its memory in 15 ms to half a second.
    assert 0.015 < hardware.memory_bytes / hardware.memory_bandwidth_bytes_per_second < 0.5


def test_parameters_are_those_of_an_independent_count() -> None:
    """Counted by building the classes of Transformers without weights, MTP layers not included."""
    totals = {
        "glm-5": 743_911_199_232,
        "glm-5.2": 743_377_000_704,
        "glm-5.3-flash": 313_786_889_214,
        "qwen2.5-7b": 7_615_616_512,
        "gpt-oss-120b": 116_829_156_672,
        "nemotron-3-super-120b": 120_668_687_360,
        "gemma-3-27b": 27_432_406_640,
    }
    assert {name: CATALOG.models.get(name).total_parameters for name in totals} == totals
    # By hand: one more MoE layer, a projection of 2 hidden sizes to 1 and three norms.
    assert CATALOG.models.get("glm-5").mtp_parameters == 9_952_920_320
    assert CATALOG.models.get("deepseek-v3.2").mtp_parameters == 11_624_027_392


@pytest.mark.parametrize("model_id", EXPECTED)
def test_how_weights_are_stored_is_stated_and_not_taken_from_a_number_type(model_id: str) -> None:
    model = CATALOG.models.get(model_id)
    assert model.weight_format_source is WeightFormatSource.STATED
    bits = model.weight_bits_per_parameter or 0.0
    # Of a quantised checkpoint no entry is silently counted as if it were not; of others a source says what they are.
    if QUANTISED.search(" ".join((model_id, model.display_name, model.sources[0]))):
        assert 4 <= bits < 9
    elif bits >= 16:
        assert any(source.startswith("weights in BF16") for source in model.sources)


def test_what_quantised_checkpoints_hold_in_all() -> None:
    """GLM-5.3-Flash: 305.81 GiB of FP8 on Hugging Face; what is beside tensors, and vectors in float32, is the rest.

    Nemotron 3 Super in FP8, by hand: experts 40 x (512 x 2 x 2688 x 1024 + 2 x 5376 x 4096), Mamba projections
    40 x 4096 x (18560 + 8192), a byte each.
    """
    flash, nemotron = CATALOG.models.get("glm-5.3-flash"), CATALOG.models.get("nemotron-3-super-120b")
    stored = {model.model_id: sum(g.weight_bytes or 0 for g in model.parameter_groups) for model in (flash, nemotron)}
    assert stored["glm-5.3-flash"] == pytest.approx(305.81 * 2**30, rel=0.002)
    in_a_byte = 40 * (512 * 2 * 2688 * 1024 + 2 * 5376 * 4096) + 40 * 4096 * (18560 + 8192)
    parameters = (nemotron.total_parameters or 0) + (nemotron.mtp_parameters or 0)
    scales = 4 * 40 * (512 * 2 + 2 + 2)
    assert stored["nemotron-3-super-120b"] == 2 * (parameters - in_a_byte) + in_a_byte + scales


def test_a_dense_model_uses_all_but_its_input_embedding() -> None:
    """Qwen3 32B has no experts; one row of 151,936 x 5,120 is read for a token."""
    dense = CATALOG.models.get("qwen3-32b")
    assert dense.active_parameters == 32_762_123_264 - 151_936 * 5120
    assert any("input embedding" in sentence for sentence in dense.assumptions)
    sparse = CATALOG.models.get("glm-5.3")
    assert sparse.expert_count
    assert not any("input embedding" in sentence for sentence in sparse.assumptions)


def test_an_entry_is_read_once_and_only_when_asked_for(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    small, broken = tmp_path / "models" / "small.toml", tmp_path / "models" / "broken.toml"
    small.write_text(SMALL_MODEL)
    broken.write_text("= nothing")
    catalog = Catalog(tmp_path)
    assert catalog.models.ids == ("broken", "small")
    assert catalog.hardware.ids == ()
    first = catalog.models.get("small")
    small.unlink()
    assert catalog.models.get("small") is first
    assert first.all_reduce_count == 3


def test_an_unknown_id_lists_near_names() -> None:
    with pytest.raises(NotFoundError) as raised:
        CATALOG.models.get("glm-5.4")
    assert raised.value.reason == "MODEL_NOT_FOUND"
    assert raised.value.resource.name == "glm-5.4"
    assert "glm-5.3" in raised.value.near_names
    with pytest.raises(NotFoundError) as raised:
        CATALOG.hardware.get("dgx-spork")
    assert raised.value.reason == "HARDWARE_NOT_FOUND"
    assert raised.value.near_names == ("dgx-spark",)


def test_an_id_never_leaves_the_directory() -> None:
    with pytest.raises(NotFoundError):
        CATALOG.models.get("../hardware/dgx-spark")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("hidden_size = 10", "hidden_size = 0", "hidden_size: 0 is not a whole number"),
        ("hidden_size = 10\n", "", "architecture.hidden_size: is missing"),
        ("hidden_size = 10", "hidden_size = true", "is not of the type int"),
        ("hidden_size = 10", "hidden_size = 10\nwidth = 1", "architecture.width: is not a key of it"),
        ('layers = "0"', 'layers = "1"', "each layer from 0 once"),
        ('layers = "0"', 'layers = "0-"', "is not ranges of layers"),
        ('type = "attention"', 'type = "attention"\nheads = 1', "heads: is not a key of it"),
        ('type = "attention"', 'type = "magic"', "is not one of attention, latent_attention"),
        ('type = "attention"', 'type = ["attention"]', "is not one of attention, latent_attention"),
        ('type = "attention"', "type = { name = 1 }", "is not one of attention, latent_attention"),
        ("[architecture]", "[blocks]", "blocks: is not a key of it"),
        ("[[architecture.layers.mixers]]", "[architecture.layers.mixers]", "mixers: is not an array"),
        ('sources = ["counted by hand"]', "sources = []", "sources"),
        ("hidden_size = 10", "hidden_size = ten", "Invalid value"),
        ('"Small"', '"Sm\xe4ll\x07"', "Illegal character"),
        ('display_name = "Small"', 'display_name = "Small"\nactive_parameters = 1000000', "is above total_parameters"),
    ],
)
def test_a_broken_model_file_is_told_with_its_name(tmp_path: Path, old: str, new: str, told: str) -> None:
    path = tmp_path / "small.toml"
    assert old in SMALL_MODEL
    path.write_text(SMALL_MODEL.replace(old, new), encoding="utf-8")
    with pytest.raises(CatalogError) as raised:
        read_model(path)
    assert "small.toml" in str(raised.value)
    assert told in str(raised.value)


def test_a_file_name_that_is_no_id_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "Small Model.toml"
    path.write_text(SMALL_MODEL)
    with pytest.raises(CatalogError, match="model_id"):
        read_model(path)


@pytest.mark.parametrize(
    "content",
    ['sources = ["x"]', 'sources = ["x"]\ndisplay_name = "B"\nmemory_bytes = 0\nmemory_bandwidth_bytes_per_second = 1'],
)
def test_a_broken_hardware_file_is_told_with_its_name(tmp_path: Path, content: str) -> None:
    path = tmp_path / "board.toml"
    path.write_text(content)
    with pytest.raises(CatalogError, match=r"board\.toml"):
        read_hardware(path)


def test_a_file_that_is_not_there_or_not_text_is_told(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match=r"gone\.toml"):
        read_model(tmp_path / "gone.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(CatalogError, match=r"bytes\.toml"):
        read_model(tmp_path / "bytes.toml")
