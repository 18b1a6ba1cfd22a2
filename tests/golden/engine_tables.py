"""Measured engines, read from the files beside this one."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from attrs import frozen

from estimator_service.service import default_estimator
from linkbound.domain.catalog import Model
from linkbound.domain.engine import (
    BurstPoint,
    BurstTable,
    EnginePoint,
    EngineRequest,
    EngineTable,
    SchedulerSettings,
)
from linkbound.domain.layout import ParallelLayout
from linkbound.domain.link import Link
from linkbound.domain.measured_range import MeasuredRange


@frozen
class MeasuredEngine:
    """One engine over two links: what a calibration may see, and what its predictions are held against."""

    model: Model
    seen: EngineTable
    unseen: EngineTable


def measured_engine(file_name: str) -> MeasuredEngine:
    """The engine of a file."""
    content = tomllib.loads(Path(__file__).with_name(file_name).read_text("utf-8"))
    seen, unseen = (_table(content, table) for table in content["tables"])
    model = default_estimator().model_of(seen.model, seen.model_config_json, "model_config_json")
    return MeasuredEngine(model, seen, unseen)


def _table(content: dict[str, Any], table: dict[str, Any]) -> EngineTable:
    return EngineTable(
        model=content.get("model", ""),
        model_config_json=content.get("model_config_json", ""),
        layout=ParallelLayout(tensor_parallel_size=content["tensor_parallel_size"]),
        link=Link(**table["link"]),
        bursts=_bursts(table["bursts"]) if "bursts" in table else None,
        scheduler=SchedulerSettings(**content["scheduler"]),
        points=tuple(map(_point, table["points"])),
    )


def _bursts(bursts: dict[str, Any]) -> BurstTable:
    return BurstTable(**{**bursts, "points": tuple(BurstPoint(**point) for point in bursts["points"])})


def _point(point: dict[str, Any]) -> EnginePoint:
    request = {key: point.pop(key) for key in ("prompt_tokens", "output_tokens")}
    arrivals = point.pop("arrival_seconds", [None])
    requests = [EngineRequest(**request, arrival_seconds=arrival) for arrival in arrivals] * point.pop("requests", 1)
    ttft_seconds = tuple(point.pop("ttft_seconds", ()))
    ranges = tuple(MeasuredRange(**found) for found in point.pop("ttft_range_seconds", ()))
    of_all: dict[str, Any] = {key: MeasuredRange(**point.pop(key)) for key in [*point] if "_range_" in key}
    return EnginePoint(
        requests=tuple(requests), ttft_seconds=ttft_seconds, ttft_range_seconds=ranges, **of_all, **point
    )
