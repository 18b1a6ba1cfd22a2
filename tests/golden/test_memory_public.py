"""Public figures about memory, and models that are known to run somewhere or not to: `docs/accuracy.md`, Memory."""

from __future__ import annotations

import os
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from estimator_service.architecture.model import model_of
from estimator_service.architecture.read_architecture import read_architecture
from estimator_service.catalog.directory import SHIPPED_DIRECTORY, Catalog
from estimator_service.core.memory import (
    MemorySettings,
    cache_bytes_of_rank,
    memory_need,
    stored_at,
    weights_of_rank,
)
from linkbound.domain.catalog import Model
from linkbound.domain.layout import ParallelLayout

FACTS = tomllib.loads(Path(__file__).with_name("memory_public.toml").read_text("utf-8"))
PAGE = (Path(__file__).parents[2] / "docs" / "accuracy.md").read_text("utf-8")
CATALOG = Catalog(SHIPPED_DIRECTORY)
ALONE = ParallelLayout(tensor_parallel_size=1)


def by_claim(kind: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("row", FACTS[kind], ids=lambda row: row["claim"])


@cache
def model_from(config: str) -> Model:
    folder = os.environ.get("LINKBOUND_REFERENCE_DATA")
    if not folder:
        pytest.skip("LINKBOUND_REFERENCE_DATA is not set: published configs are not read")
    text = (Path(folder) / "hf_configs" / f"{config}.json").read_text("utf-8")
    return model_of(read_architecture(text), model_id="published", display_name="Published", sources=("its config",))


def on_the_page(*cells: str) -> bool:
    return f"| {' | '.join(cells)} |" in PAGE


@by_claim("weights")
def test_weights_are_those_of_the_published_checkpoint(row: dict[str, Any]) -> None:
    weights = weights_of_rank(model_from(row["config"]), ALONE)
    assert weights is not None
    computed_gib = weights.total_bytes / 2**30
    assert computed_gib == pytest.approx(row["published_gib"], rel=0.005)
    assert on_the_page(row["claim"], f"{computed_gib:.2f} GiB", row["source"])


@by_claim("cache")
def test_caches_are_as_published(row: dict[str, Any]) -> None:
    kept = cache_bytes_of_rank(model_from(row["config"]), ALONE, 1, 1, 2)
    assert kept == row["published_bytes"]
    assert on_the_page(row["claim"], f"{kept} bytes", row["source"])


@by_claim("fit")
def test_what_is_known_to_fit_or_not(row: dict[str, Any]) -> None:
    need = memory_need(
        stored_at(model_from(row["config"]), row.get("weight_bits")),
        ParallelLayout(tensor_parallel_size=row.get("tp", 1), pipeline_parallel_size=row.get("pp", 1)),
        CATALOG.hardware.get(row["hardware"]),
        row["context"],
        row.get("requests", 1),
        MemorySettings(
            gpu_memory_utilization_fraction=row.get("utilization", 0.9),
            cache_value_bytes=row.get("cache_value_bytes", 2),
            max_num_batched_tokens=row.get("batched_tokens", 8192),
            draft_token_count=row.get("drafts", 0),
        ),
    )
    assert need is not None
    headroom_gb = (need.usable_bytes - need.total_bytes) / 1e9
    assert (headroom_gb >= 0) == row["fits"]
    weights_gb = (need.sliced_weight_bytes + need.replicated_weight_bytes) / 1e9
    assert on_the_page(
        row["claim"],
        f"{weights_gb:.1f}",
        f"{need.kv_cache_bytes / 1e9:.1f}",
        f"{need.total_bytes / 1e9:.1f}",
        f"{need.usable_bytes / 1e9:.1f}",
        f"{headroom_gb:+.1f}",
        row["source"],
    )
