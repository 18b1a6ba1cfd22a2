"""Law 10 of `docs/invariants.md`: what changes at line rates is a value of its own, and no bound is made of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkbound.domain.decode import DecodeRequest
from linkbound.domain.estimate import Basis, Estimate
from linkbound.domain.link import Link
from linkbound.domain.link_comparison import LinkComparisonRequest
from linkbound.domain.prefill import PrefillRequest
from tests.property.estimator_strategies import ESTIMATOR, LINKS, RATES
from tests.property.layout_strategies import decode_requests, prefill_requests
from tests.property.test_laws_slower_link import load_of

FLOAT = 1e-12


def nominal_paths(value: Any, path: str = "") -> Iterator[str]:
    """Where an answer holds an interval that is made of data-sheet rates."""
    if isinstance(value, Estimate):
        if Basis.NOMINAL in (value.lower_basis, value.expected_basis, value.upper_basis):
            yield path
    elif attrs.has(type(value)):
        for attribute in attrs.fields(type(value)):
            yield from nominal_paths(getattr(value, attribute.name), f"{path}.{attribute.name}")
    elif isinstance(value, tuple):
        for entry in value:
            yield from nominal_paths(entry, path)


@given(prefill_requests(), LINKS)
def test_only_the_nominal_difference_is_nominal(request: PrefillRequest, to_link: Link) -> None:
    asked = attrs.evolve(request, to_link=to_link)
    answer = ESTIMATOR.estimate_prefill(asked)
    is_told = answer.nominal_extra_ttft_seconds is not None
    assert list(nominal_paths(answer)) == ([".nominal_extra_ttft_seconds"] if is_told else [])


@given(prefill_requests(), LINKS)
def test_a_nominal_difference_is_that_of_the_line_rates(request: PrefillRequest, to_link: Link) -> None:
    answer = ESTIMATOR.estimate_prefill(attrs.evolve(request, to_link=to_link, rank_links=()))
    nominal = answer.nominal_extra_ttft_seconds
    if nominal is None or answer.to_link is None:
        return
    old, new = answer.link.link.line_rate_bits_per_second, answer.to_link.link.line_rate_bits_per_second
    assert old is not None
    assert new is not None
    sent = load_of(request.workload).outer.sequential_bytes
    change = sent * 8 * (1 / new - 1 / old)
    rounding = FLOAT * sent * 8 * (1 / new + 1 / old)
    assert nominal.lower == pytest.approx(min(0.0, change), rel=FLOAT, abs=rounding)
    assert nominal.upper == pytest.approx(max(0.0, change), rel=FLOAT, abs=rounding)


@given(decode_requests(), LINKS)
def test_no_answer_about_a_pass_is_nominal(request: DecodeRequest, to_link: Link) -> None:
    assert list(nominal_paths(ESTIMATOR.estimate_decode(attrs.evolve(request, to_link=to_link)))) == []


@given(prefill_requests(), LINKS, LINKS)
def test_no_comparison_is_nominal(request: PrefillRequest, old_link: Link, new_link: Link) -> None:
    answer = ESTIMATOR.compare_links(
        LinkComparisonRequest(
            prefill=request.workload, old_link=old_link, new_link=new_link, inner_link=request.inner_link
        )
    )
    assert list(nominal_paths(answer)) == []


@given(prefill_requests(), RATES, RATES, RATES, RATES)
def test_line_rates_do_not_move_a_bound_between_measured_ones(
    request: PrefillRequest, old_line: int, new_line: int, old: int, new: int
) -> None:
    asked = attrs.evolve(request, baseline_ttft_seconds=None, rank_links=())
    answers = [
        ESTIMATOR.estimate_prefill(
            attrs.evolve(
                asked,
                link=Link(measured_bits_per_second=old, line_rate_bits_per_second=line),
                to_link=Link(measured_bits_per_second=new, line_rate_bits_per_second=to_line),
            )
        )
        for line, to_line in ((None, None), (max(old_line, old), max(new_line, new)))
    ]
    assert answers[0].extra_ttft_seconds == answers[1].extra_ttft_seconds
    assert answers[0].network_seconds == answers[1].network_seconds
    assert answers[0].nominal_extra_ttft_seconds is None


@given(prefill_requests(), st.integers(1, 10**12), st.integers(1, 10**12), st.integers(2, 100))
def test_links_that_miss_their_line_rate_lose_more_than_the_nominal_difference(
    request: PrefillRequest, old: int, new: int, factor: int
) -> None:
    """Why it is no bound: where links reach a k-th of their line rates, the bound is k times the nominal difference."""
    links = [Link(line_rate_bits_per_second=rate * factor, measured_bits_per_second=rate) for rate in (old, new)]
    asked = attrs.evolve(request, baseline_ttft_seconds=None, rank_links=(), link=links[0], to_link=links[1])
    answer = ESTIMATOR.estimate_prefill(asked)
    extra, nominal = answer.extra_ttft_seconds, answer.nominal_extra_ttft_seconds
    assert extra is not None
    assert extra.upper is not None
    assert nominal is not None
    assert nominal.upper is not None
    rounding = FLOAT * load_of(request.workload).outer.sequential_bytes * 8 * (1 / old + 1 / new)
    assert extra.upper == pytest.approx(factor * nominal.upper, rel=FLOAT, abs=rounding)
    assert extra.lower == pytest.approx(factor * nominal.lower, rel=FLOAT, abs=rounding)
