"""Broken configs are read or refused in the right words: no other exception, whatever is wrong with them.

`FUZZ_EXAMPLES` says how many are tried (`make fuzz`: 100,000), `FUZZ_SEED` which; the configs of the reference folder
are among the seeds where LINKBOUND_REFERENCE_DATA names it.
"""

import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from estimator_service.catalog.imports import read_import
from estimator_service.core.feasibility import infeasible_reasons
from estimator_service.core.inventory import sent_bytes_per_logits_row, sent_bytes_per_token
from linkbound.domain.catalog import ImportModelRequest, Model
from linkbound.domain.errors import InvalidArgumentError
from tests.fuzz.config_mutations import mutations
from tests.unit.architecture.configs import PUBLISHED, RELEASED, SMALL, SMALL_MOE

DEFAULT_EXAMPLE_COUNT = 600
LARGEST_SEED_BYTES = 100_000


def seeds() -> list[dict[str, Any]]:
    published = [*PUBLISHED.values(), *RELEASED.values()]
    own = [SMALL, SMALL_MOE, *(entry["config"] for entry in published)]
    folder = os.environ.get("LINKBOUND_REFERENCE_DATA")
    paths = sorted((Path(folder) / "hf_configs").glob("*.json")) if folder else []
    return own + [json.loads(path.read_text()) for path in paths if path.stat().st_size < LARGEST_SEED_BYTES]


QUANTISATIONS: list[dict[str, Any]] = [
    {
        "producer": {"name": "modelopt", "version": "0.29.0"},
        "quantization": {"quant_algo": "NVFP4", "group_size": 16, "exclude_modules": ["lm_head", "*.mlp.gate"]},
    },
    {
        "quantization": {
            "quant_algo": "MIXED_PRECISION",
            "kv_cache_quant_algo": "FP8",
            "quantized_layers": {"model.layers.0.mlp.down_proj": {"quant_algo": "FP8"}},
        }
    },
    {"bits": 4, "group_size": 64, "damp_percent": 0.01, "desc_act": False, "sym": True},
    {"zero_point": True, "q_group_size": 64, "w_bit": 4, "version": "GEMM"},
    {**SMALL, "quantization_config": {"quant_method": "fp8", "weight_block_size": [32, 32]}},
]
"""What stands in files beside a config."""


def outcome_of(config_json: str, quantization_json: str = "") -> str:
    documents = ("config_json", "quantization_json")
    try:
        request = ImportModelRequest(config_json=config_json, quantization_json=quantization_json, validate_only=True)
        imported = read_import(request)
    except InvalidArgumentError as error:
        assert error.field_violations
        assert all(violation.field.startswith(documents) for violation in error.field_violations)
        return "refused"
    held(imported.model)
    return "read"


def held(model: Model) -> None:
    """What every model keeps, however it was read."""
    assert model.all_reduce_count >= 1
    for size in (1, 2, 8):
        assert sent_bytes_per_token(model, size) >= 0
        assert sent_bytes_per_logits_row(model, size) >= 0
        infeasible_reasons(model, size)
    if model.total_parameters is not None and model.active_parameters is not None:
        assert 0 <= model.active_parameters <= model.total_parameters
        assert sum(group.parameter_count for group in model.parameter_groups) == model.total_parameters + (
            model.mtp_parameters or 0
        )


def test_broken_files_beside_a_config_are_read_or_refused(capsys: pytest.CaptureFixture[str]) -> None:
    count = int(os.environ.get("FUZZ_EXAMPLES", DEFAULT_EXAMPLE_COUNT)) // 10
    seed = int(os.environ.get("FUZZ_SEED", "0"))
    outcomes: Counter[str] = Counter()
    for text in mutations(QUANTISATIONS, count, seed):
        try:
            outcomes[outcome_of(json.dumps(SMALL_MOE), text)] += 1
        except Exception as error:
            error.add_note(f"example {outcomes.total()} of seed {seed}: {text[:2000]}")
            raise
    assert outcomes.total() == count
    assert min(outcomes["read"], outcomes["refused"]) > count // 20
    with capsys.disabled():
        sys.stdout.write(
            f"\n{count} mutated files beside one: {outcomes['read']} read, {outcomes['refused']} refused, no other\n"
        )


def test_broken_configs_are_read_or_refused(capsys: pytest.CaptureFixture[str]) -> None:
    count = int(os.environ.get("FUZZ_EXAMPLES", DEFAULT_EXAMPLE_COUNT))
    seed = int(os.environ.get("FUZZ_SEED", "0"))
    outcomes: Counter[str] = Counter()
    for text in mutations(seeds(), count, seed):
        try:
            outcomes[outcome_of(text)] += 1
        except Exception as error:
            error.add_note(f"example {outcomes.total()} of seed {seed}: {text[:2000]}")
            raise
    assert outcomes.total() == count
    # Both happen, or the mutations are of no use.
    assert min(outcomes["read"], outcomes["refused"]) > count // 20
    with capsys.disabled():
        sys.stdout.write(
            f"\n{count} mutated configs: {outcomes['read']} read, {outcomes['refused']} refused, no other\n"
        )
