"""Rates, sizes, token counts and durations as people write them: `200g`, `22.14GB/s`, `16k`, `8k`, `100ms`."""

from __future__ import annotations

import re
from decimal import Decimal

from linkbound.domain.errors import InvalidArgumentError, Violation
from linkbound.domain.link import BITS_PER_BYTE
from linkbound.domain.rules import shown

_NUMBER = r"(?P<number>\d{1,20}(?:\.\d{1,20})?)"
_BITS_PER_SECOND = re.compile(rf"{_NUMBER}\s*(?P<prefix>[kmgt]?)(?:b(?:it)?(?:/s|ps)|bit)?", re.ASCII | re.IGNORECASE)
_BYTES_PER_SECOND = re.compile(rf"{_NUMBER}\s*(?P<prefix>[kKMGT]?)B/s", re.ASCII)
_TOKENS = re.compile(r"(?P<number>\d{1,20})(?P<prefix>[kK]?)", re.ASCII)
_BYTES = re.compile(rf"{_NUMBER}\s*(?P<prefix>[kKmMgGtT]?)(?P<unit>i?B)?", re.ASCII)
_SECONDS = re.compile(rf"{_NUMBER}\s*(?P<unit>us|ms|s)?", re.ASCII)

_DECIMAL_PREFIXES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY_PREFIXES = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_TOKENS_PER_K = 1024
_SECONDS_PER_UNIT = {None: Decimal(1), "s": Decimal(1), "ms": Decimal("1e-3"), "us": Decimal("1e-6")}


def parse_rate_bits_per_second(text: str, field: str = "rate") -> int:
    """Bits per second of a rate: `200g` and `109Gb/s` are 1e9 bit/s, `22.14GB/s` is 1e9 bytes/s, `64000b/s` as it is.

    Raises InvalidArgumentError on `field` for anything else.
    """
    stripped = text.strip()
    in_bytes = _BYTES_PER_SECOND.fullmatch(stripped)
    match = in_bytes or _BITS_PER_SECOND.fullmatch(stripped)
    # A bare number is far more often a forgotten `g` than a rate in bits per second.
    if match is None or match["number"] == stripped:
        raise _refused(field, text, "a rate such as 200g, 109Gb/s or 22.14GB/s")
    scale = _DECIMAL_PREFIXES[match["prefix"].lower()] * (BITS_PER_BYTE if in_bytes else 1)
    return round(Decimal(match["number"]) * scale)


def parse_tokens(text: str, field: str = "tokens") -> int:
    """A token count: `8192`, or `8k` for 8192. Raises InvalidArgumentError on `field` for anything else."""
    match = _TOKENS.fullmatch(text.strip())
    if match is None:
        raise _refused(field, text, "a whole number of tokens such as 8192 or 8k (= 8192)")
    return int(match["number"]) * (_TOKENS_PER_K if match["prefix"] else 1)


def parse_bytes(text: str, field: str = "bytes") -> int:
    """A size: `16384`, `16k` and `16KiB` for 16384 as nccl-tests writes them, `16kB` for 16000, `15.23GB`.

    Raises InvalidArgumentError on `field` for anything else.
    """
    match = _BYTES.fullmatch(text.strip())
    prefix = match["prefix"].lower() if match else ""
    # A fraction of a byte is none; one of a larger unit is rounded to whole bytes.
    if match is None or (not prefix and (match["unit"] == "iB" or "." in match["number"])):
        raise _refused(field, text, "a size in bytes such as 10240, 16k (= 16384), 64m or 1GB (= 10^9)")
    scale = (_DECIMAL_PREFIXES if match["unit"] == "B" else _BINARY_PREFIXES)[prefix]
    return round(Decimal(match["number"]) * scale)


def parse_seconds(text: str, field: str = "seconds") -> float:
    """A duration in seconds: `6.36`, `1s`, `100ms`. Raises InvalidArgumentError on `field` for anything else."""
    match = _SECONDS.fullmatch(text.strip())
    if match is None:
        raise _refused(field, text, "a duration such as 1.5, 1s or 100ms")
    return float(Decimal(match["number"]) * _SECONDS_PER_UNIT[match["unit"]])


def _refused(field: str, text: str, allowed: str) -> InvalidArgumentError:
    return InvalidArgumentError([Violation(field, f"{shown(text)} is not {allowed}")])
