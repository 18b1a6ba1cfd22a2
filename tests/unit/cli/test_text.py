import pytest

from linkbound.cli import text
from linkbound.domain.estimate import Effect, Estimate
from linkbound.domain.link import Link, RateSource, ResolvedLink


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0 s"),
        (6.36, "6.36 s"),
        (0.138, "0.138 s"),
        (3.523e-3, "3.52 ms"),
        (4.3e-6, "4.30 us"),
        (-1.11, "-1.11 s"),
        (7344.0, "7,344 s"),
        (1e-12, "1e-12 s"),
    ],
)
def test_seconds(value: float, shown: str) -> None:
    assert text.seconds(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0 s"),
        (0.923, "+0.92 s"),
        (-1.106, "-1.11 s"),
        (0.000729, "+0.729 ms"),
        (1e-7, "+100.00 ns"),
        (-1e-7, "-100.00 ns"),
        (12_600.0, "+12,600 s"),
    ],
)
def test_signed_seconds(value: float, shown: str) -> None:
    assert text.signed_seconds(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (107_520, "107.52 kB"),
        (3_376_128, "3.38 MB"),
        (27_657_240_576, "27.66 GB"),
        (1e12, "1 TB"),
        (2**60, "1,152,921.5 TB"),
    ],
)
def test_size_bytes_has_decimal_prefixes(value: float, shown: str) -> None:
    assert text.size_bytes(value) == shown


def test_rates() -> None:
    assert text.bits_per_second(109e9) == "109 Gb/s"
    assert text.bytes_per_second(22.14e9) == "22.14 GB/s"
    assert text.tokens_per_second(10742.9) == "10,742.9 tok/s"
    assert text.samples_per_second(0.13) == "0.13 samples/s"
    assert text.samples_per_second(0.0013) == "0.0013 samples/s"
    assert text.tokens_per_second(0.0013) == "0.0013 tok/s"
    assert text.bits_per_second(0.0013) == "0.0013 b/s"


def test_shares() -> None:
    assert text.percent(0.17394) == "17.4 %"
    assert text.signed_percent(0.139) == "+13.9 %"
    assert text.signed_percent(-0.023) == "-2.3 %"
    assert text.signed_percent(0.0) == "0 %"
    assert text.percent(1.2e-6) == "0.0001 %"
    assert text.signed_percent(-1.2e-6) == "-0.0001 %"


@pytest.mark.parametrize(
    ("estimate", "shown"),
    [
        (Estimate(lower=1.11, upper=1.11), "1.11 s"),
        (Estimate(lower=6.36, upper=7.28), "6.36 s to 7.28 s"),
        (Estimate(lower=0.0, upper=0.92), "at most 0.920 s"),
        (Estimate(lower=1.11), "at least 1.11 s"),
        (Estimate(lower=0.0, upper=0.0), "0 s"),
        (Estimate(lower=-1.5, upper=0.0), "-1.50 s to 0 s"),
    ],
)
def test_interval(estimate: Estimate, shown: str) -> None:
    assert text.interval(estimate, text.seconds) == shown


@pytest.mark.parametrize(
    ("difference", "share", "shown"),
    [
        (Estimate(lower=0.0, upper=0.92), None, "at most +0.92 s"),
        (Estimate(lower=-1.106, upper=0.0), None, "up to 1.11 s less"),
        (Estimate(lower=0.0, upper=0.0), None, "no change"),
        (Estimate(lower=0.0, upper=0.92), Estimate(lower=0.0, upper=0.145), "at most +0.92 s (+14.5 %)"),
        (Estimate(lower=-0.92, upper=0.0), Estimate(lower=-0.128, upper=0.0), "up to 0.92 s (12.8 %) less"),
        (Estimate(lower=-0.000729, upper=0.0), None, "up to 0.729 ms less"),
        (Estimate(lower=0.5), None, "at least +0.50 s"),
        (Estimate(lower=-1.0, upper=2.0), None, "-1.00 s to +2.00 s"),
    ],
)
def test_a_change_is_told_in_its_direction(difference: Estimate, share: Estimate | None, shown: str) -> None:
    assert text.change(difference, text.signed_seconds, share) == shown


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (RateSource.GIVEN, "given rate"),
        (RateSource.WIRE_EFFICIENCY, "line rate less packet headers"),
        (RateSource.PCIE, "PCIe functions in use"),
        (RateSource.MEASURED, "measured rate"),
        (RateSource.UNKNOWN, "of unknown origin"),
    ],
)
def test_a_link_says_which_rate_was_used(source: RateSource, words: str) -> None:
    link = ResolvedLink(
        link=Link(line_rate_bits_per_second=200 * 10**9),
        effective_bits_per_second=109 * 10**9,
        rate_source=source,
        roce_mtu_bytes=1024,
    )
    assert text.rate_note(link) == f"109 Gb/s (13.62 GB/s), {words}"


def test_what_is_left_out_is_named_once() -> None:
    first = Estimate(lower=0.0, effects_left_out=(Effect.RATE_RAMP, Effect.COMPUTE_TIME))
    second = Estimate(lower=0.0, effects_left_out=(Effect.COMPUTE_TIME, Effect.STRAGGLERS))
    assert text.left_out(first, None, second) == "rate ramp, compute time, stragglers"


def test_assumptions_are_titled_once() -> None:
    assert text.assumed(["a", "b"]) == [("assumed", "a"), ("", "b")]
