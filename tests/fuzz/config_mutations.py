"""Configs broken at random: hostile values, keys dropped, moved and borrowed, bytes of the text changed."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

HOSTILE_VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    2,
    7,
    10**5,
    10**6,
    10**9,
    10**18,
    10**30,
    0.0,
    0.5,
    -2.5,
    1e308,
    float("inf"),
    float("nan"),
    "",
    "7",
    "4096",
    "silu",
    "relu2",
    "full_attention",
    "M*E-",
    "\x00",
    "\ud800",
    "x" * 3000,
    [],
    [0],
    [-1, 2],
    ["full_attention", "mamba", 3],
    [None] * 40,
    [1] * 5000,
    {},
    {"a": 1},
    {"hidden_size": 8},
    [[[]]],
)
_LARGEST_CHANGE_COUNT = 6


def mutations(seeds: Sequence[dict[str, Any]], count: int, seed: int) -> Iterator[str]:
    """`count` broken configs as text, the same for the same `seed`."""
    random = Random(seed)
    keys = sorted({key for config in seeds for key in _keys(config)})
    for _ in range(count):
        config = copy.deepcopy(random.choice(seeds))
        for _ in range(random.randint(1, _LARGEST_CHANGE_COUNT)):
            _change(config, random, seeds, keys)
        text = json.dumps(config)
        yield _broken_text(text, random) if random.random() < 0.05 else text


def _change(config: dict[str, Any], random: Random, seeds: Sequence[dict[str, Any]], known_keys: Sequence[str]) -> None:
    place = _place(config, random)
    keys = list(place) if isinstance(place, dict) else list(range(len(place)))
    kind = random.random()
    if isinstance(place, dict) and (kind < 0.25 or not keys):
        place[random.choice(known_keys)] = _value(random, seeds)
    elif not keys:
        return
    elif kind < 0.7:
        place[random.choice(keys)] = _value(random, seeds)
    elif kind < 0.85 and isinstance(place, dict):
        del place[random.choice(keys)]
    elif isinstance(place, dict):
        place[random.choice(keys)], place[random.choice(known_keys)] = (
            _value(random, seeds),
            place[random.choice(keys)],
        )


def _keys(config: dict[str, Any]) -> Iterator[str]:
    for key, value in config.items():
        yield key
        if isinstance(value, dict):
            yield from _keys(value)


def _place(config: dict[str, Any], random: Random) -> Any:
    """The config, or an object or array within it."""
    place: Any = config
    while random.random() < 0.35:
        inner = list(place.values()) if isinstance(place, dict) else list(place)
        nested = [value for value in inner if isinstance(value, dict | list) and value]
        if not nested:
            break
        place = random.choice(nested)
    return place


def _value(random: Random, seeds: Sequence[dict[str, Any]]) -> Any:
    kind = random.random()
    if kind < 0.6:
        return copy.deepcopy(random.choice(HOSTILE_VALUES))
    if kind < 0.8:
        return random.randint(0, 5000)
    other = random.choice(seeds)
    return copy.deepcopy(other[random.choice(list(other))])


def _broken_text(text: str, random: Random) -> str:
    position = random.randrange(len(text))
    kind = random.randrange(4)
    if kind == 0:
        return text[:position]
    if kind == 1:
        return text[:position] + chr(random.randrange(0x110000)) + text[position + 1 :]
    if kind == 2:
        return text[:position] + "[" * random.randint(1, 2000) + text[position:]
    return text[position:] + text[:position]
