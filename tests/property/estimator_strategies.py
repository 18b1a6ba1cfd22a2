"""Requests of the estimator for Hypothesis, and how to walk an answer."""

from collections.abc import Iterator
from typing import Any

import attrs
from hypothesis import strategies as st

from estimator_service.service import default_estimator
from linkbound.domain.catalog import Model
from linkbound.domain.collective import CollectiveKind
from linkbound.domain.collective_estimate import CollectiveRequest
from linkbound.domain.decode import DecodeRequest
from linkbound.domain.link import (
    LARGEST_ETHERNET_MTU_BYTES,
    ROCE_MTUS_BYTES,
    SMALLEST_ETHERNET_MTU_BYTES,
    Link,
    LinkTransport,
)
from linkbound.domain.link_comparison import EmulatedLink, LinkComparisonRequest
from linkbound.domain.paging import PageRequest
from linkbound.domain.prefill import PrefillRequest
from linkbound.domain.tp_projection import TpProjectionRequest
from linkbound.domain.training import TrainingStepRequest
from linkbound.domain.workload import DecodeWorkload, PrefillWorkload
from tests.strategies.estimator import not_above_pcie, not_above_the_line_rate

ESTIMATOR = default_estimator()
MODELS: tuple[Model, ...] = ESTIMATOR.list_models(PageRequest()).entries

RATES = st.integers(1, 10**15)
KINDS = st.sampled_from(
    [
        CollectiveKind.ALL_REDUCE,
        CollectiveKind.ALL_GATHER,
        CollectiveKind.REDUCE_SCATTER,
        CollectiveKind.ALL_TO_ALL,
    ]
)
# Four divides the heads of every shipped model and works with its key-value heads.
SIZES = st.sampled_from([1, 2, 4])
MODEL_IDS = st.sampled_from([model.model_id for model in MODELS])

BARE_LINKS = st.builds(Link, line_rate_bits_per_second=RATES)
DETAILS: dict[str, Any] = {
    "roce_mtu_bytes": st.none() | st.sampled_from(ROCE_MTUS_BYTES),
    "pcie_function_count": st.none() | st.integers(1, 16),
}
TRANSPORTS = st.sampled_from([LinkTransport.UNSPECIFIED, LinkTransport.ROCE, LinkTransport.INFINIBAND])
LINKS = (
    st.builds(
        Link,
        line_rate_bits_per_second=RATES,
        measured_bits_per_second=st.none() | RATES,
        transport=TRANSPORTS,
        **DETAILS,
    )
    .map(not_above_the_line_rate)
    .map(not_above_pcie)
    | st.builds(Link, measured_bits_per_second=RATES, **DETAILS).map(not_above_pcie)
    | st.builds(
        Link,
        line_rate_bits_per_second=RATES,
        transport=st.just(LinkTransport.TCP),
        ethernet_mtu_bytes=st.none() | st.integers(SMALLEST_ETHERNET_MTU_BYTES, LARGEST_ETHERNET_MTU_BYTES),
        pcie_function_count=st.none() | st.integers(1, 16),
    )
    | st.builds(Link, line_rate_bits_per_second=RATES, transport=st.just(LinkTransport.FABRIC))
)
PREFILL_WORKLOADS = st.builds(
    PrefillWorkload,
    model=MODEL_IDS,
    tensor_parallel_size=SIZES,
    prompt_tokens=st.integers(1, 10**6),
    request_count=st.integers(1, 10**5),
    max_num_batched_tokens=st.none() | st.integers(1, 10**9),
)


@st.composite
def decode_workloads(draw: st.DrawFn) -> DecodeWorkload:
    drafts = draw(st.integers(0, 64))
    return DecodeWorkload(
        model=draw(MODEL_IDS),
        tensor_parallel_size=draw(SIZES),
        request_count=draw(st.integers(1, 10**5)),
        draft_token_count=drafts,
        acceptance_length_tokens=draw(st.none() | st.floats(1, 1 + drafts)),
        hardware=draw(st.sampled_from(["", "dgx-spark"])),
    )


def baselines_over(needed_seconds: float) -> st.SearchStrategy[float | None]:
    """Baselines that a link which needs `needed_seconds` allows; none where no baseline can be that long."""
    if needed_seconds > 1e8:
        return st.none()
    return st.none() | st.floats(1, 10).map(lambda factor: max(needed_seconds * factor, 1e-6))


@st.composite
def prefill_requests(draw: st.DrawFn) -> PrefillRequest:
    request = PrefillRequest(workload=draw(PREFILL_WORKLOADS), link=draw(LINKS), to_link=draw(st.none() | LINKS))
    needed_seconds = ESTIMATOR.estimate_prefill(request).network_seconds.lower
    return attrs.evolve(request, baseline_ttft_seconds=draw(baselines_over(needed_seconds)))


@st.composite
def comparison_requests(draw: st.DrawFn) -> LinkComparisonRequest:
    old_link, new_link = draw(LINKS), draw(LINKS)
    if draw(st.booleans()):
        request = LinkComparisonRequest(decode=draw(decode_workloads()), old_link=old_link, new_link=new_link)
    else:
        request = LinkComparisonRequest(prefill=draw(PREFILL_WORKLOADS), old_link=old_link, new_link=new_link)
    needed_seconds = ESTIMATOR.compare_links(request).old_network_seconds.lower
    baseline_seconds = draw(baselines_over(needed_seconds))
    request = attrs.evolve(request, baseline_seconds=baseline_seconds)
    if baseline_seconds is None or request.prefill is None:
        return request
    return attrs.evolve(request, emulation=draw(st.none() | emulations(request.prefill)))


@st.composite
def emulations(draw: st.DrawFn, workload: PrefillWorkload) -> EmulatedLink | None:
    link = draw(LINKS)
    needed_seconds = ESTIMATOR.estimate_prefill(PrefillRequest(workload=workload, link=link)).network_seconds.lower
    ttft_seconds = draw(baselines_over(needed_seconds))
    if ttft_seconds is None:
        return None
    counter_bytes = draw(st.none() | st.integers(1, 10**12))
    return EmulatedLink(link=link, ttft_seconds=ttft_seconds, counter_bytes_per_prompt_token=counter_bytes)


@st.composite
def projection_requests(draw: st.DrawFn) -> TpProjectionRequest:
    workload, link = draw(PREFILL_WORKLOADS), draw(LINKS)
    needed = ESTIMATOR.estimate_prefill(PrefillRequest(workload=workload, link=link)).network_seconds.lower
    baseline_seconds = draw(baselines_over(needed).filter(lambda seconds: seconds is not None))
    assert baseline_seconds is not None
    sizes = st.lists(st.integers(1, 4096), min_size=1, max_size=16, unique=True)
    return TpProjectionRequest(
        workload=workload,
        baseline_ttft_seconds=baseline_seconds,
        link=link,
        to_link=draw(LINKS),
        tensor_parallel_sizes=tuple(draw(sizes)),
    )


DECODE_REQUESTS = st.builds(DecodeRequest, workload=decode_workloads(), link=LINKS, to_link=st.none() | LINKS)
COLLECTIVE_REQUESTS = st.builds(
    CollectiveRequest,
    kind=KINDS,
    rank_count=st.integers(2, 65_536),
    message_bytes=st.none() | st.integers(1, 10**15),
    link=LINKS,
)
TRAINING_REQUESTS = st.builds(
    TrainingStepRequest,
    gradient_bytes=st.integers(1, 10**15),
    rank_count=st.integers(1, 65_536),
    link=LINKS,
    compute_step_seconds=st.floats(0, 1e9, exclude_min=True, allow_subnormal=False),
)


def parts_of(value: Any) -> Iterator[Any]:
    """`value` and everything nested in it."""
    yield value
    if attrs.has(type(value)):
        for attribute in attrs.fields(type(value)):
            yield from parts_of(getattr(value, attribute.name))
    elif isinstance(value, tuple):
        for entry in value:
            yield from parts_of(entry)
