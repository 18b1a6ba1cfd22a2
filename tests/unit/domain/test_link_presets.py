"""Links with names: each keeps the rules, carries what its sources say, and stands wherever a rate does."""

import pytest

from estimator_service.core.links import resolve
from linkbound.client.estimator_questions import estimates
from linkbound.domain.errors import InvalidArgumentError
from linkbound.domain.link import Link, LinkTransport, RateSource
from linkbound.domain.link_presets import LINK_PRESETS, LinkPreset, parse_link, preset_named
from linkbound.domain.quantities import parse_rate_bits_per_second
from linkbound.domain.rules import violations_of

GIGABIT = 10**9


@pytest.mark.parametrize("preset", LINK_PRESETS, ids=lambda preset: preset.name)
def test_a_preset_keeps_the_rules_and_carries_at_most_its_line_rate(preset: LinkPreset) -> None:
    assert list(violations_of(preset)) == []
    line_rate = preset.link.line_rate_bits_per_second
    assert line_rate is not None
    assert 0.5 * line_rate < resolve(preset.link).effective_bits_per_second <= line_rate


@pytest.mark.parametrize("preset", LINK_PRESETS, ids=lambda preset: preset.name)
def test_a_name_is_no_rate_and_reads_as_itself(preset: LinkPreset) -> None:
    with pytest.raises(InvalidArgumentError):
        parse_rate_bits_per_second(preset.name)
    assert preset.name == preset.name.casefold()
    assert parse_link(f" {preset.name.upper()} ") is preset.link


def test_names_are_different() -> None:
    names = [preset.name for preset in LINK_PRESETS]
    assert len(set(names)) == len(names) >= 25


@pytest.mark.parametrize("gigabits", [1, 10, 25, 100, 200, 400])
def test_ethernet_comes_as_roce_and_as_sockets(gigabits: int) -> None:
    roce, tcp = parse_link(f"{gigabits}gbe"), parse_link(f"{gigabits}gbe-tcp")
    assert (roce.transport, tcp.transport) == (LinkTransport.ROCE, LinkTransport.TCP)
    assert roce.line_rate_bits_per_second == tcp.line_rate_bits_per_second == gigabits * GIGABIT
    assert resolve(roce).effective_bits_per_second == round(gigabits * GIGABIT * 1024 / 1106)
    assert resolve(tcp).effective_bits_per_second == round(gigabits * GIGABIT * 1448 / 1538)


@pytest.mark.parametrize(
    ("name", "gigabits", "source"),
    [
        # Study 1, 7.3.
        ("spark-1f", 109, RateSource.MEASURED),
        # Public runs of ib_write_bw over both functions: 185 Gb/s.
        ("spark-2f", 185, RateSource.WIRE_EFFICIENCY),
        # Study 2, 6: 1.18 GB/s.
        ("spark-10g", 9.44, RateSource.MEASURED),
        ("nvlink4", 3600, RateSource.GIVEN),
        ("infiniband-ndr", 397.5, RateSource.WIRE_EFFICIENCY),
        ("pcie4-x16", 252.1, RateSource.GIVEN),
        ("thunderbolt5", 80, RateSource.GIVEN),
    ],
)
def test_rates_of_the_sources(name: str, gigabits: float, source: RateSource) -> None:
    resolved = resolve(parse_link(name))
    assert resolved.rate_source is source
    assert resolved.effective_bits_per_second / GIGABIT == pytest.approx(gigabits, rel=2e-3)


def test_both_functions_at_mtu_9000_reach_what_was_measured() -> None:
    """98 and 98 Gb/s at the same time, a public run over a CRS804."""
    link = Link(line_rate_bits_per_second=200 * GIGABIT, pcie_function_count=2, roce_mtu_bytes=4096)
    assert resolve(link).effective_bits_per_second / GIGABIT == pytest.approx(196, abs=0.2)


def test_a_rate_is_read_as_before() -> None:
    assert parse_link("200g") == Link(line_rate_bits_per_second=200 * GIGABIT)
    assert preset_named("200g") is None


def test_a_near_name_is_proposed() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        parse_link("sparc-1f", "to_link")
    (violation,) = caught.value.field_violations
    assert violation.field == "to_link"
    assert "did you mean spark-1f" in violation.description


def test_a_name_stands_where_a_rate_does() -> None:
    asked = estimates.estimate_training_step(gradient_bytes=1, rank_count=2, link="spark-10g", compute_step_seconds=1.0)
    assert asked.request.link == parse_link("spark-10g")


@pytest.mark.parametrize("text", ["", " ", "spark", "x" * 10_000, "200gbe\x00", "\ud800"])
def test_what_is_neither_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgumentError):
        parse_link(text)
