"""Measured times of an engine as a TOML file: the fields of `EngineTable`, with short forms for what repeats.

`tensor_parallel_size` may stand for a `layout` of it alone. A point may have the `prompt_tokens` and `output_tokens` of
all its requests in place of `requests`; `arrival_seconds`, a list, says when each arrives, or `request_count` how many
there are. `sources` say where the times come from.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from attrs import frozen

from linkbound.domain.engine import LARGEST_ENGINE_POINT_COUNT, BurstTable, EngineTable
from linkbound.domain.errors import InvalidArgumentError, Violation
from linkbound.domain.link import Link
from linkbound.importers.tables import TableError, from_table

FIELD = "file"
"""What violations of a file are named by."""

_SHORT_LAYOUT = "tensor_parallel_size"
_OF_ALL_REQUESTS = ("prompt_tokens", "output_tokens")
_ARRIVALS, _COUNT = "arrival_seconds", "request_count"


@frozen(kw_only=True)
class EngineFile:
    """What a file says. The rules of the fields are not checked."""

    table: EngineTable
    sources: tuple[str, ...] = ()


@frozen(kw_only=True)
class BurstFile:
    """Bursts, and the link that they were seen on where the file says so. The rules of the fields are not checked."""

    bursts: BurstTable
    link: Link | None = None


def read_engine_file(text: str) -> EngineFile:
    """The measured times in a file. Raises InvalidArgumentError on `file` for what cannot be read as such."""
    try:
        return _file_of(tomllib.loads(text))
    except (TableError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidArgumentError([Violation(FIELD, f"{error}")]) from error


def read_burst_file(text: str) -> BurstFile:
    """The `bursts` and the `link` in a file; what else an engine file has may be there, or not.

    Raises InvalidArgumentError on `file` for what cannot be read as such.
    """
    try:
        content = tomllib.loads(text)
        return from_table(BurstFile, {key: value for key, value in content.items() if key in ("bursts", "link")})
    except (TableError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidArgumentError([Violation(FIELD, f"{error}")]) from error


def _file_of(content: dict[str, Any]) -> EngineFile:
    sources = content.pop("sources", [])
    if _SHORT_LAYOUT in content:
        if "layout" in content:
            raise TableError(f"{_SHORT_LAYOUT}: is given beside a layout")
        content["layout"] = {_SHORT_LAYOUT: content.pop(_SHORT_LAYOUT)}
    points = content.get("points")
    if isinstance(points, list):
        content["points"] = [_point(point, f"points[{index}]") for index, point in enumerate(points)]
    if not isinstance(sources, list) or not all(isinstance(source, str) for source in sources):
        raise TableError("sources: are not an array of texts")
    return EngineFile(table=from_table(EngineTable, content), sources=tuple(sources))


def _point(point: Any, place: str) -> Any:
    """The point with all its requests."""
    short = (*_OF_ALL_REQUESTS, _ARRIVALS, _COUNT)
    if not isinstance(point, Mapping) or not any(key in point for key in short):
        return point
    if "requests" in point:
        raise TableError(f"{place}: has requests, and what stands for them")
    rest = {key: value for key, value in point.items() if key not in short}
    return {**rest, "requests": list(_requests(point, place))}


def _requests(point: Mapping[str, Any], place: str) -> Iterator[dict[str, Any]]:
    request = {key: point[key] for key in _OF_ALL_REQUESTS if key in point}
    arrivals = point.get(_ARRIVALS)
    if arrivals is not None and not isinstance(arrivals, list):
        raise TableError(f"{place}.{_ARRIVALS}: is not an array")
    count = point.get(_COUNT, 1 if arrivals is None else len(arrivals))
    if type(count) is not int or not 1 <= count <= LARGEST_ENGINE_POINT_COUNT:
        raise TableError(f"{place}.{_COUNT}: is not a whole number from 1 to {LARGEST_ENGINE_POINT_COUNT}")
    if arrivals is not None and count != len(arrivals):
        raise TableError(f"{place}.{_ARRIVALS}: {len(arrivals)} arrivals are not those of {count} requests")
    for index in range(count):
        yield request if arrivals is None else {**request, _ARRIVALS: arrivals[index]}
