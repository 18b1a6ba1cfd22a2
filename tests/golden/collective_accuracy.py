"""How well a calibration predicts sizes that it was not given, beside two plain rules on the same points."""

from __future__ import annotations

import csv
import hashlib
import math
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import mean, median

from attrs import frozen

from estimator_service.core.collective_time import calibrated_time, fit
from linkbound.domain.calibration import CollectivePoint, CollectiveTable
from linkbound.domain.collective import CollectiveKind

Points = Sequence[tuple[int, float]]
"""Sizes in bytes and times in seconds, in rising order."""
Rule = Callable[[float], float]

KINDS = {
    "all_reduce": CollectiveKind.ALL_REDUCE,
    "all_gather": CollectiveKind.ALL_GATHER,
    "reduce_scatter": CollectiveKind.REDUCE_SCATTER,
    "alltoall": CollectiveKind.ALL_TO_ALL,
}
SMALL_BYTES, LARGE_BYTES = 16 * 2**10, 64 * 2**20


@frozen
class Group:
    """One system, library, version, kernel source, backend, operation, type and rank count."""

    name: tuple[str, ...]
    kind: CollectiveKind
    rank_count: int
    points: Points

    @property
    def half(self) -> int:
        """Half 0 is the one that the constants were chosen on. Versions of a library stay together."""
        return hashlib.sha256("|".join(self.name[:3]).encode()).digest()[0] & 1


@frozen
class Accuracy:
    """What is left at the sizes that were held out, over groups and over points."""

    group_count: int
    point_count: int
    median_error: float
    p90_error: float
    p90_point_error: float
    inside: float
    groups_mostly_inside: float
    median_width: float


def table_groups(path: Path) -> list[Group]:
    """The groups of a table as AIConfigurator publishes it; repeated sizes are averaged."""
    times: dict[tuple[str, ...], dict[int, list[float]]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            name = tuple(
                row[column]
                for column in ("system", "lib", "version", "kernel_source", "backend", "op", "dtype", "num_gpus")
            )
            times.setdefault(name, {}).setdefault(int(row["bytes"]), []).append(float(row["time_us"]) * 1e-6)
    return [Group(name, KINDS[name[5]], int(name[7]), _averaged(sizes)) for name, sizes in sorted(times.items())]


def spark_groups(path: Path) -> list[Group]:
    """The series of collective times on DGX Spark with four sizes or more."""
    times: dict[tuple[str, ...], dict[int, list[float]]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found = re.match(r"bytes=(\d+);?(.*)", row["note"])
            if row["kind"] != "nccl_latency" or found is None:
                continue
            series = re.sub(r"\(in-place [^)]*\)|low of range.*", "", found[2]).strip()
            name = (
                row["system"],
                row["engine"],
                row["source"],
                series,
                "",
                row["metric"].removesuffix("_time"),
                row["nodes"],
            )
            times.setdefault(name, {}).setdefault(int(found[1]), []).append(float(row["value"]) * 1e-6)
    return [
        Group(name, KINDS[name[5]], int(name[6]), _averaged(sizes))
        for name, sizes in sorted(times.items())
        if len(sizes) >= 4
    ]


def every_third(group: Group) -> Points:
    """Sizes 1, 4, 7, ... in rising order."""
    return group.points[::3]


def small_and_large(group: Group) -> Points:
    """16 KB and 64 MB."""
    return [(size, time) for size, time in group.points if size in {SMALL_BYTES, LARGE_BYTES}]


def accuracy(groups: Iterable[Group], choose: Callable[[Group], Points]) -> Accuracy:
    """What a calibration on the chosen points leaves at the others."""
    errors: list[list[float]] = []
    insides: list[list[bool]] = []
    widths: list[float] = []
    for group in groups:
        given = choose(group)
        time = calibrated_time(fit(_table(group, given)))
        errors.append([])
        insides.append([])
        for size, measured in _held_out(group, given):
            answer = time.seconds(size)
            assert answer.expected is not None
            assert answer.upper is not None
            errors[-1].append(abs(answer.expected / measured - 1))
            insides[-1].append(answer.contains(measured))
            widths.append((answer.upper - answer.lower) / answer.expected)
    every_error = [error for group in errors for error in group]
    return Accuracy(
        group_count=len(errors),
        point_count=len(every_error),
        median_error=median(map(median, errors)),
        p90_error=quantile([median(group) for group in errors], 0.9),
        p90_point_error=quantile(every_error, 0.9),
        inside=mean(inside for group in insides for inside in group),
        groups_mostly_inside=mean(mean(group) >= 0.8 for group in insides),
        median_width=median(widths),
    )


def median_error_of(
    groups: Iterable[Group], choose: Callable[[Group], Points], rule: Callable[[Points], Rule]
) -> float:
    """The same median over groups for a plain rule."""
    medians = []
    for group in groups:
        given = choose(group)
        predict = rule(given)
        medians.append(median(abs(predict(size) / time - 1) for size, time in _held_out(group, given)))
    return median(medians)


def log_log(points: Points) -> Rule:
    """Straight lines between the logarithms."""
    sizes, times = [math.log(size) for size, _ in points], [math.log(time) for _, time in points]

    def predict(size: float) -> float:
        place = math.log(size)
        index = min(max(sum(1 for known in sizes if known <= place) - 1, 0), len(sizes) - 2)
        slope = (times[index + 1] - times[index]) / (sizes[index + 1] - sizes[index])
        return math.exp(times[index] + slope * (place - sizes[index]))

    return predict


def alpha_beta(points: Points) -> Rule:
    """Two parameters by least squares of relative errors."""
    weights = [time**-2 for _, time in points]
    total = sum(weights)
    size_mean = sum(weight * size for weight, (size, _) in zip(weights, points, strict=True)) / total
    time_mean = sum(weight * time for weight, (_, time) in zip(weights, points, strict=True)) / total
    slope = sum(
        weight * (size - size_mean) * (time - time_mean) for weight, (size, time) in zip(weights, points, strict=True)
    ) / sum(weight * (size - size_mean) ** 2 for weight, (size, _) in zip(weights, points, strict=True))
    return lambda size: time_mean + slope * (size - size_mean)


def quantile(values: Iterable[float], share: float) -> float:
    """The value that `share` of all do not exceed."""
    ordered = sorted(values)
    return ordered[math.ceil(share * len(ordered)) - 1]


def _held_out(group: Group, given: Points) -> list[tuple[int, float]]:
    sizes = {size for size, _ in given}
    return [(size, time) for size, time in group.points if size not in sizes]


def _table(group: Group, points: Points) -> CollectiveTable:
    return CollectiveTable(
        kind=group.kind,
        rank_count=group.rank_count,
        points=tuple(CollectivePoint(message_bytes=size, seconds=time) for size, time in points),
    )


def _averaged(sizes: dict[int, list[float]]) -> Points:
    return [(size, mean(times)) for size, times in sorted(sizes.items())]


def accuracy_row(label: str, given: str, groups: Sequence[Group], choose: Callable[[Group], Points]) -> str:
    """The row of `docs/accuracy.md`: a calibration and both plain rules on the same points."""
    left = accuracy(groups, choose)
    shares = [
        left.median_error,
        left.p90_error,
        left.p90_point_error,
        median_error_of(groups, choose, log_log),
        median_error_of(groups, choose, alpha_beta),
        left.inside,
        left.groups_mostly_inside,
        left.median_width,
    ]
    cells = [label, f"{left.group_count}", f"{left.point_count}", given, *(f"{share:.1%}" for share in shares)]
    return f"| {' | '.join(cells)} |"
