from typing import Any

import pytest

from linkbound.client.estimator_questions import estimates, layouts, planning
from linkbound.domain.collective import CollectiveKind
from linkbound.domain.errors import InvalidArgumentError
from linkbound.domain.link import Link
from linkbound.domain.workload import PrefillWorkload

PREFILL: dict[str, Any] = {"model": "glm-5.3", "tensor_parallel_size": 8, "prompt_tokens": 1024}
WORKLOAD = PrefillWorkload(**PREFILL)


def paths(error: InvalidArgumentError) -> list[str]:
    return [violation.field for violation in error.field_violations]


def test_a_rate_as_text_becomes_a_link_of_that_rate() -> None:
    request = estimates.estimate_prefill(**PREFILL, link="200g", to_link="13.625GB/s").request
    assert request.link == Link(line_rate_bits_per_second=200_000_000_000)
    assert request.to_link == Link(line_rate_bits_per_second=109_000_000_000)


def test_a_link_is_kept_as_it_is() -> None:
    link = Link(line_rate_bits_per_second=10**11, roce_mtu_bytes=4096)
    assert estimates.estimate_decode(model="glm-5.3", tensor_parallel_size=8, link=link).request.link is link


def test_text_that_is_no_rate_does_not_hide_other_violations() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        estimates.estimate_prefill(
            model="glm-5.3",
            tensor_parallel_size=0,
            prompt_tokens=-1,
            link="fast",
            to_link="faster",
            baseline_ttft_seconds=-2.0,
        )
    assert paths(caught.value) == [
        "workload.tensor_parallel_size",
        "workload.prompt_tokens",
        "baseline_ttft_seconds",
        "link",
        "to_link",
    ]


def test_text_that_is_no_rate_is_a_violation_by_itself() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        estimates.estimate_collective(kind=CollectiveKind.ALL_REDUCE, rank_count=2, link="10 apples")
    assert paths(caught.value) == ["link"]


@pytest.mark.parametrize("rate", ["0g", "1e9", "-5g", "\uff15g", "9" * 30 + "g", ""])
def test_every_link_of_a_comparison_is_named(rate: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        planning.compare_links(workload=WORKLOAD, old_link=rate, new_link=rate)
    assert {path.split(".")[0] for path in paths(caught.value)} == {"old_link", "new_link"}


def test_sizes_may_be_any_sequence() -> None:
    asked = layouts.project_tp_sizes(
        workload=WORKLOAD, baseline_ttft_seconds=6.36, link="200g", to_link="100g", tensor_parallel_sizes=[2, 4]
    )
    assert asked.request.tensor_parallel_sizes == (2, 4)


@pytest.mark.parametrize("workload", [None, "glm-5.3", (WORKLOAD, WORKLOAD)])
def test_what_is_no_workload_is_named_as_the_keyword(workload: Any) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        planning.compare_links(workload=workload, old_link="200g", new_link="100g")
    assert paths(caught.value) == ["workload"]


@pytest.mark.parametrize("sizes", [None, 4])
def test_what_is_no_sequence_of_sizes_is_a_violation(sizes: Any) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        layouts.project_tp_sizes(
            workload=WORKLOAD, baseline_ttft_seconds=6.36, link="200g", to_link="100g", tensor_parallel_sizes=sizes
        )
    assert paths(caught.value) == ["tensor_parallel_sizes"]


def test_a_port_runs_at_the_line_rate_of_its_link_or_else_at_the_measured_one() -> None:
    both = Link(line_rate_bits_per_second=200 * 10**9, measured_bits_per_second=109 * 10**9)
    measured = Link(measured_bits_per_second=109 * 10**9)
    assert planning.size_cluster(node_count=2, rate=both).request.rate_bits_per_second == 200 * 10**9
    assert planning.size_cluster(node_count=2, rate=measured).request.rate_bits_per_second == 109 * 10**9


def test_links_of_single_nodes_are_named_by_their_index() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        estimates.estimate_prefill(**PREFILL, link="200g", inner_link="slow", rank_links=["100g", "slower"])
    assert paths(caught.value) == ["inner_link", "rank_links[1]"]
