"""What the estimator is asked, and its catalogue."""

from __future__ import annotations

from typing import Any

import attrs
from hypothesis import strategies as st

from linkbound.domain.catalog import Collective, Hardware, Model, RowScope
from linkbound.domain.collective import CollectiveKind, CollectiveRequest
from linkbound.domain.link import ROCE_MTUS_BYTES, Link
from linkbound.domain.link_comparison import EmulatedLink, LinkComparisonRequest
from linkbound.domain.paging import PageRequest
from linkbound.domain.prefill import PrefillRequest
from linkbound.domain.tp_projection import TpProjectionRequest
from linkbound.domain.training import TrainingStepRequest
from linkbound.domain.workload import DecodeWorkload, PrefillWorkload
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


def links(fill: Fill) -> Strategy:
    rates = st.integers(1, LARGEST_RATE)
    details = {
        "roce_mtu_bytes": maybe(fill, st.sampled_from(ROCE_MTUS_BYTES)),
        "pcie_function_count": maybe(fill, st.integers(1, 16)),
    }
    with_line_rate = st.builds(
        Link, line_rate_bits_per_second=rates, measured_bits_per_second=maybe(fill, rates), **details
    )
    measured_only = st.builds(Link, measured_bits_per_second=rates, **details)
    return with_line_rate if fill is Fill.FULL else with_line_rate | measured_only


def prefill_workloads(fill: Fill) -> Strategy:
    workloads = st.builds(
        PrefillWorkload,
        model=IDS,
        tensor_parallel_size=st.integers(1, 4096),
        prompt_tokens=st.integers(1, 10**9),
        request_count=st.integers(1, 100),
        max_num_batched_tokens=maybe(fill, st.integers(1, 10**9)),
    )
    many_short_ones = st.builds(
        PrefillWorkload,
        model=IDS,
        tensor_parallel_size=st.integers(1, 4096),
        prompt_tokens=st.integers(1, 10**6),
        request_count=st.integers(1, 100_000),
        max_num_batched_tokens=maybe(fill, st.integers(1, 10**9)),
    )
    return workloads | many_short_ones


def decode_workloads(fill: Fill) -> Strategy:
    @st.composite
    def build(draw: st.DrawFn) -> DecodeWorkload:
        drafts = draw(wholes(fill, 0, 64))
        return DecodeWorkload(
            model=draw(IDS),
            tensor_parallel_size=draw(st.integers(1, 4096)),
            request_count=draw(st.integers(1, 100_000)),
            draft_token_count=drafts,
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


def prefill_requests(fill: Fill) -> Strategy:
    return st.builds(
        PrefillRequest,
        workload=prefill_workloads(fill),
        link=links(fill),
        to_link=maybe(fill, links(fill)),
        baseline_ttft_seconds=seconds(fill),
    )


def link_comparison_requests(fill: Fill) -> Strategy:
    of_prefills = st.builds(
        LinkComparisonRequest,
        prefill=prefill_workloads(fill),
        old_link=links(fill),
        new_link=links(fill),
        baseline_seconds=st.floats(1e-9, LARGEST_SECONDS),
        emulation=maybe(fill, emulated_links(fill)),
    )
    # A decode has no emulation, so it never is full.
    of_decodes = st.builds(
        LinkComparisonRequest,
        decode=decode_workloads(fill),
        old_link=links(fill),
        new_link=links(fill),
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
        tensor_parallel_sizes=st.lists(st.integers(1, 4096), min_size=1, max_size=16, unique=True).map(tuple),
    )


def collective_requests(fill: Fill) -> Strategy:
    return st.builds(
        CollectiveRequest,
        kind=members(fill, CollectiveKind, "UNSPECIFIED"),
        rank_count=st.integers(2, 65_536),
        message_bytes=maybe(fill, st.integers(1, 10**15)),
        link=links(fill),
    )


def training_step_requests(fill: Fill) -> Strategy:
    return st.builds(
        TrainingStepRequest,
        gradient_bytes=st.integers(1, 10**15),
        rank_count=st.integers(1, 65_536),
        link=links(fill),
        compute_step_seconds=st.floats(1e-9, LARGEST_SECONDS),
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
        unused_keys=notes,
        assumptions=notes,
        sources=notes,
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
