"""Rates, tokens and durations as people write them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkbound.domain.errors import InvalidArgumentError
from linkbound.domain.quantities import parse_bytes, parse_rate_bits_per_second, parse_seconds, parse_tokens


@pytest.mark.parametrize(
    ("text", "bits_per_second"),
    [
        ("200g", 200_000_000_000),
        ("109G", 109_000_000_000),
        ("10g", 10_000_000_000),
        ("2.5g", 2_500_000_000),
        ("109Gb/s", 109_000_000_000),
        ("200 Gbit/s", 200_000_000_000),
        ("400gbps", 400_000_000_000),
        ("22.14GB/s", 177_120_000_000),
        ("1.18GB/s", 9_440_000_000),
        ("800MB/s", 6_400_000_000),
        ("1t", 1_000_000_000_000),
        ("100m", 100_000_000),
        ("1000000000b/s", 1_000_000_000),
        ("0g", 0),
    ],
)
def test_rates(text: str, bits_per_second: int) -> None:
    assert parse_rate_bits_per_second(text) == bits_per_second


@pytest.mark.parametrize(
    "text",
    [
        "",
        "g",
        "200",
        "200.0",
        "1000000000",
        "-1g",
        "+1g",
        "1e9",
        "nan",
        "inf",
        "200x",
        "\uff12\uff10g",
        "1_000",
        "1,5g",
        "1GiB/s",
    ],
)
def test_what_is_not_a_rate_names_the_field_the_text_and_what_is_allowed(text: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        parse_rate_bits_per_second(text, "--link")
    (violation,) = caught.value.field_violations
    assert violation.field == "--link"
    assert "200g" in violation.description
    assert violation.description.isascii()


def test_bits_and_bytes_differ_by_eight_and_case_of_the_b_decides() -> None:
    assert parse_rate_bits_per_second("1GB/s") == 8 * parse_rate_bits_per_second("1Gb/s")


@pytest.mark.parametrize(("text", "tokens"), [("8192", 8192), ("8k", 8192), ("64K", 65536), ("0", 0)])
def test_tokens(text: str, tokens: int) -> None:
    assert parse_tokens(text) == tokens


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("10240", 10_240),
        ("16k", 16_384),
        ("16KiB", 16_384),
        ("64M", 67_108_864),
        ("1GB", 10**9),
        ("16 kB", 16_000),
        ("8B", 8),
        ("15.23GB", 15_230_000_000),
        ("1.5k", 1536),
        ("0.3k", 307),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize(("text", "seconds"), [("6.36", 6.36), ("1s", 1.0), ("100ms", 0.1), ("5 us", 5e-6), ("0", 0.0)])
def test_seconds(text: str, seconds: float) -> None:
    assert parse_seconds(text) == seconds


@pytest.mark.parametrize("text", ["1.5", "1.5B", "1.5iB"])
def test_a_fraction_of_a_byte_is_no_size(text: str) -> None:
    with pytest.raises(InvalidArgumentError):
        parse_bytes(text)


@pytest.mark.parametrize("parse", [parse_tokens, parse_bytes, parse_seconds])
@pytest.mark.parametrize("text", ["", "-1", "1.5.2", "k", "nan", "\uff18", "1 000", "1h"])
def test_what_is_neither_is_refused(parse: Callable[[str], object], text: str) -> None:
    with pytest.raises(InvalidArgumentError):
        parse(text)


@given(st.text(max_size=40))
def test_any_text_is_a_value_or_refused_and_never_another_error(text: str) -> None:
    for parse in (parse_rate_bits_per_second, parse_tokens, parse_bytes, parse_seconds):
        with contextlib.suppress(InvalidArgumentError):
            assert parse(text) >= 0


@given(st.integers(0, 10**6))
def test_whole_gigabits_are_exact(gigabits: int) -> None:
    assert parse_rate_bits_per_second(f"{gigabits}g") == gigabits * 10**9
