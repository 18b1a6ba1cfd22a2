"""What the estimator is asked, and its catalogue."""

from __future__ import annotations

from typing import Any

import attrs
from hypothesis import strategies as st

from linkbound.domain.catalog import (
    CacheGroup,
    Collective,
    Hardware,
    ImportModelRequest,
    Model,
    ModelPart,
    ParameterGroup,
    RowScope,
    WeightFormatSource,
    WeightSplit,
)
from linkbound.domain.collective import CollectiveKind
from linkbound.domain.link import (
    LARGEST_ETHERNET_MTU_BYTES,
    PCIE_FUNCTION_RAW_BITS_PER_SECOND,
    ROCE_MTUS_BYTES,
    SMALLEST_ETHERNET_MTU_BYTES,
    Link,
    LinkTransport,
)
from linkbound.domain.link_comparison import EmulatedLink, LinkComparisonRequest
from linkbound.domain.paging import PageRequest
from linkbound.domain.tp_projection import TpProjectionRequest
from linkbound.domain.workload import DecodeWorkload, PrefillWorkload
from tests.strategies.cuts import cuts, models_given
from tests.strategies.values import (
    IDS,
    INT32,
    LARGEST_RATE,
    LARGEST_SECONDS,
    Fill,
    Strategy,
    maybe,
    members,
    seconds,
    texts,
    tuples_of,
    wholes,
)


def not_above_the_line_rate(link: Link) -> Link:
    """`link`, its two rates exchanged where the measured one is the larger."""
    line, measured = link.line_rate_bits_per_second, link.measured_bits_per_second
    if line is None or measured is None or measured <= line:
        return link
    return attrs.evolve(link, line_rate_bits_per_second=measured, measured_bits_per_second=line)


def not_above_pcie(link: Link) -> Link:
    """`link`, its measured rate no more than what its PCIe functions carry."""
    count, measured = link.pcie_function_count, link.measured_bits_per_second
    if count is None or measured is None:
        return link
    return attrs.evolve(link, measured_bits_per_second=min(measured, int(count * PCIE_FUNCTION_RAW_BITS_PER_SECOND)))


def links(fill: Fill) -> Strategy:
    rates = st.integers(1, LARGEST_RATE)
    roce_mtus = maybe(fill, st.sampled_from(ROCE_MTUS_BYTES))
    of_rdma = {
        "roce_mtu_bytes": roce_mtus,
        "transport": members(fill, LinkTransport, "TCP", "FABRIC"),
        "pcie_function_count": maybe(fill, st.integers(1, 16)),
    }
    of_tcp = {
        "ethernet_mtu_bytes": maybe(fill, st.integers(SMALLEST_ETHERNET_MTU_BYTES, LARGEST_ETHERNET_MTU_BYTES)),
        "transport": st.just(LinkTransport.TCP),
        "pcie_function_count": maybe(fill, st.integers(1, 16)),
    }

    def build(details: dict[str, Any]) -> Strategy:
        with_line_rate = st.builds(
            Link, line_rate_bits_per_second=rates, measured_bits_per_second=maybe(fill, rates), **details
        ).map(not_above_the_line_rate)
        measured_only = st.builds(Link, measured_bits_per_second=rates, **details)
        with_line_rate, measured_only = with_line_rate.map(not_above_pcie), measured_only.map(not_above_pcie)
        return with_line_rate if fill is Fill.FULL else with_line_rate | measured_only

    of_fabric = {"transport": st.just(LinkTransport.FABRIC)}
    # No link has both MTUs: what is full is full of one transport.
    return build(of_rdma) | build(of_tcp) if fill is Fill.FULL else build(of_rdma) | build(of_tcp) | build(of_fabric)


def prefill_workloads(fill: Fill) -> Strategy:
    @st.composite
    def build(draw: st.DrawFn) -> PrefillWorkload:
        longest, most = draw(st.sampled_from([(10**9, 100), (10**6, 100_000)]))
        return PrefillWorkload(
            **draw(models_given(fill)),
            **draw(cuts(fill)),
            prompt_tokens=draw(st.integers(1, longest)),
            request_count=draw(st.integers(1, most)),
            max_num_batched_tokens=draw(maybe(fill, st.integers(1, 10**9))),
        )

    return build()


def decode_workloads(fill: Fill) -> Strategy:
    @st.composite
    def build(draw: st.DrawFn) -> DecodeWorkload:
        drafts = draw(wholes(fill, 0, 64))
        return DecodeWorkload(
            **draw(models_given(fill)),
            **draw(cuts(fill)),
            request_count=draw(st.integers(1, 100_000)),
            draft_token_count=drafts,
            context_tokens=draw(maybe(fill, st.integers(1, 10**6))),
            acceptance_length_tokens=draw(maybe(fill, st.floats(1, 1 + drafts))),
            hardware=draw(IDS if fill is Fill.FULL else st.just("") | IDS),
        )

    return build()


def emulated_links(fill: Fill) -> Strategy:
    return st.builds(
        EmulatedLink,
        link=links(fill),
        ttft_seconds=st.floats(1e-9, LARGEST_SECONDS),
        counter_bytes_per_prompt_token=maybe(fill, st.integers(1, 10**12)),
    )


def link_comparison_requests(fill: Fill) -> Strategy:
    of_prefills = st.builds(
        LinkComparisonRequest,
        prefill=prefill_workloads(fill),
        old_link=links(fill),
        new_link=links(fill),
        # Whatever the nodes of the workload hold.
        inner_link=links(fill),
        baseline_seconds=st.floats(1e-9, LARGEST_SECONDS),
        emulation=maybe(fill, emulated_links(fill)),
    )
    # A decode has no emulation, so it never is full.
    of_decodes = st.builds(
        LinkComparisonRequest,
        decode=decode_workloads(fill),
        old_link=links(fill),
        new_link=links(fill),
        inner_link=links(fill),
        baseline_seconds=seconds(fill),
    )
    return of_prefills if fill is Fill.FULL else of_prefills | of_decodes


def tp_projection_requests(fill: Fill) -> Strategy:
    return st.builds(
        TpProjectionRequest,
        workload=prefill_workloads(fill),
        baseline_ttft_seconds=st.floats(1e-9, LARGEST_SECONDS),
        link=links(fill),
        to_link=links(fill),
        hardware=IDS if fill is Fill.FULL else st.just("") | IDS,
        tensor_parallel_sizes=st.lists(st.integers(1, 4096), min_size=1, max_size=16, unique=True).map(tuple),
    )


def collectives(fill: Fill) -> Strategy:
    # Three of the largest stay within the bytes that one row may have.
    sizes = st.tuples(st.integers(1, 700_000), st.just(1)) | st.tuples(st.integers(1, 7), st.integers(1, 10**5))
    return st.builds(
        lambda size, **rest: Collective(width=size[0], count=size[1], **rest),
        size=sizes,
        kind=members(fill, CollectiveKind, "UNSPECIFIED"),
        row_scope=members(fill, RowScope, "UNSPECIFIED"),
        reason=texts(fill, 64, 1),
        part=members(fill, ModelPart),
    )


def models(fill: Fill) -> Strategy:
    counts = st.integers(1, 10**5)
    notes = tuples_of(fill, texts(fill, 64, 1))

    def build(active: int | None, more: int | None, **rest: Any) -> Model:
        total = None if more is None else (active or 0) + more
        return Model(total_parameters=total, active_parameters=active, **rest)

    return st.builds(
        build,
        active=maybe(fill, wholes(fill, 0, 10**14)),
        more=maybe(fill, wholes(fill, 0, 10**14)),
        model_id=IDS,
        display_name=texts(fill, 128, 1),
        hidden_size=st.integers(1, 10**6),
        layer_count=counts,
        attention_head_count=counts,
        key_value_head_count=counts,
        vocabulary_size=st.integers(1, 10**8),
        expert_count=wholes(fill, 0, 10**5),
        activation_value_bytes=st.integers(1, 16),
        # The first one, so that `all_reduce_count` is above zero where all is to be.
        collectives=st.lists(collectives(fill), min_size=1, max_size=3).map(
            lambda kinds: (attrs.evolve(kinds[0], kind=CollectiveKind.ALL_REDUCE), *kinds[1:])
        ),
        mtp_parameters=maybe(fill, wholes(fill, 0, 10**15)),
        weight_bits_per_parameter=maybe(fill, st.floats(1e-3, 64)),
        parameter_groups=tuples_of(fill, parameter_groups(fill)),
        cache_groups=tuples_of(fill, cache_groups(fill)),
        active_expert_count=wholes(fill, 0, 10**5),
        mtp_layer_count=wholes(fill, 0, 10**5),
        weight_format_source=members(fill, WeightFormatSource, "UNSPECIFIED"),
        undetermined=notes,
        unused_keys=notes,
        assumptions=notes,
        sources=notes,
    )


def parameter_groups(fill: Fill) -> Strategy:
    def build(active: int, more: int, **rest: Any) -> ParameterGroup:
        return ParameterGroup(parameter_count=active + more, active_parameter_count=active, **rest)

    return st.builds(
        build,
        active=wholes(fill, 0, 10**14),
        more=wholes(fill, 0, 10**14),
        part=members(fill, ModelPart, "UNSPECIFIED"),
        weight_bytes=maybe(fill, wholes(fill, 0, 10**15)),
        split=members(fill, WeightSplit, "UNSPECIFIED"),
        layer_count=wholes(fill, 0, 10**5),
    )


def cache_groups(fill: Fill) -> Strategy:
    tokens = maybe(fill, st.integers(1, 10**9))
    return st.builds(
        CacheGroup,
        reason=texts(fill, 64, 1),
        layer_count=st.integers(1, 10**5),
        values_per_token=wholes(fill, 0, 10**9),
        split_head_count=wholes(fill, 0, 10**5),
        window_tokens=tokens,
        state_bytes_per_request=wholes(fill, 0, 10**12),
        read_tokens=tokens,
        fp8_bytes_per_token=wholes(fill, 0, 10**9),
        fixed_bytes_per_token=wholes(fill, 0, 10**9),
    )


def import_model_requests(fill: Fill) -> Strategy:
    return st.builds(
        ImportModelRequest,
        model=IDS,
        config_json=texts(fill, 64, 1),
        display_name=texts(fill, 128, 1),
        validate_only=st.just(value=True) if fill is Fill.FULL else st.booleans(),
        quantization_json=texts(fill, 64, 1),
        weight_bits_per_parameter=maybe(fill, st.floats(1e-3, 64)),
    )


def hardware(fill: Fill) -> Strategy:
    return st.builds(
        Hardware,
        hardware_id=IDS,
        display_name=texts(fill, 128, 1),
        memory_bytes=st.integers(1, 10**15),
        memory_bandwidth_bytes_per_second=st.integers(1, 10**17),
        sources=tuples_of(fill, texts(fill, 64, 1)),
    )


def page_requests(fill: Fill) -> Strategy:
    return st.builds(PageRequest, page_size=wholes(fill, 0, INT32[1]), page_token=texts(fill, 128))
