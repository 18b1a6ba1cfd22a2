"""Values of every domain type for Hypothesis, derived from the attrs classes.

Integers take their range from the proto field of the same name, so that extremes of the wire are drawn. Types with
rules have their own strategies here, which keep the rules. `Fill.FULL` leaves nothing at its default: every optional
is there, every sequence has entries, nothing is zero or empty; it shows that no field is forgotten.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from enum import Enum
from typing import Any

import attrs
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from hypothesis import strategies as st

from linkbound.domain.catalog import Collective, Hardware, HardwareRequest, Model, ModelRequest, RowScope
from linkbound.domain.collective import CollectiveKind, CollectiveRequest
from linkbound.domain.estimate import Effect, Estimate
from linkbound.domain.link import ROCE_MTUS_BYTES, Link
from linkbound.domain.link_comparison import EmulatedLink, LinkComparisonRequest
from linkbound.domain.metric import MEASURED_METRIC_OF_DIFFERENCE, Metric, Spread
from linkbound.domain.paging import Page, PageRequest
from linkbound.domain.prediction import Baseline, PredictedValue, Prediction, TransferModel
from linkbound.domain.prefill import PrefillRequest
from linkbound.domain.records import (
    AppendRequest,
    CollectiveResult,
    MetricAggregate,
    RequestRecord,
    TrainingStep,
)
from linkbound.domain.run import CreateRunRequest, RunRequest, SealRunRequest, Setting
from linkbound.domain.samples import OpenStreamRequest, SampleBatch, SampleColumns, SeriesDescriptor
from linkbound.domain.tp_projection import TpProjectionRequest
from linkbound.domain.training import TrainingStepRequest
from linkbound.domain.workload import DecodeWorkload, PrefillWorkload

Strategy = st.SearchStrategy[Any]


class Fill(Enum):
    """How much of a value is there."""

    ANY = "ANY"
    FULL = "FULL"


INT32 = (-(2**31), 2**31 - 1)
INT64 = (-(2**63), 2**63 - 1)
LARGEST_SECONDS = 1e9
LARGEST_RATE = 10**15

_ID_STARTS = "abcdefghijklmnopqrstuvwxyz0123456789"
IDS = st.builds(str.__add__, st.sampled_from(_ID_STARTS), st.text(_ID_STARTS + "._-", max_size=63))
WRITER_IDS = st.text(_ID_STARTS + _ID_STARTS.upper() + "._:-", min_size=1, max_size=128)
# Any script, but nothing that a terminal would act on.
PRINTABLE = st.characters(exclude_categories=("C", "Z"))


def texts(fill: Fill, maximum_length: int = 64, minimum_length: int = 0) -> Strategy:
    return st.text(PRINTABLE, min_size=1 if fill is Fill.FULL else minimum_length, max_size=maximum_length)


def reals(fill: Fill, low: float, high: float) -> Strategy:
    numbers = st.floats(low, high, allow_nan=False)
    return numbers.filter(bool) if fill is Fill.FULL else numbers


def wholes(fill: Fill, low: int, high: int) -> Strategy:
    numbers = st.integers(low, high)
    return numbers.filter(bool) if fill is Fill.FULL and low <= 0 <= high else numbers


def maybe(fill: Fill, strategy: Strategy) -> Strategy:
    return strategy if fill is Fill.FULL else st.none() | strategy


def tuples_of(fill: Fill, item: Strategy, maximum_count: int = 3, minimum_count: int = 0) -> Strategy:
    minimum = max(minimum_count, 1 if fill is Fill.FULL else 0)
    return st.lists(item, min_size=minimum, max_size=maximum_count).map(tuple)


def members(fill: Fill, kind: type[Enum], *refused: str) -> Strategy:
    """Members that a message can hold: UNKNOWN is what was read, never what is written."""
    left_out = {"UNKNOWN", *refused, *(("UNSPECIFIED",) if fill is Fill.FULL else ())}
    return st.sampled_from([member for member in kind if member.name not in left_out])


def instants(fill: Fill) -> Strategy:
    # Without bounds: every instant that a datetime can hold.
    drawn = st.datetimes(timezones=st.just(UTC))
    return drawn.filter(lambda instant: bool(instant.microsecond)) if fill is Fill.FULL else drawn


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


def estimates(fill: Fill) -> Strategy:
    def build(numbers: list[float], *, has_expected: bool, has_upper: bool, rest: dict[str, Any]) -> Estimate:
        low, middle, high = sorted(numbers)
        return Estimate(lower=low, expected=middle if has_expected else None, upper=high if has_upper else None, **rest)

    flags = st.just(True) if fill is Fill.FULL else st.booleans()
    rest = {
        name: of_type(fill, typing.get_type_hints(Estimate)[name], None)
        for name in (attribute.name for attribute in attrs.fields(Estimate))
        if name not in {"lower", "expected", "upper", "effects_left_out"}
    }
    rest["effects_left_out"] = tuples_of(fill, members(fill, Effect, "UNSPECIFIED"))
    return st.builds(
        build,
        st.lists(reals(fill, -1e30, 1e30), min_size=3, max_size=3),
        has_expected=flags,
        has_upper=flags,
        rest=st.fixed_dictionaries(rest),
    )


def spreads(fill: Fill) -> Strategy:
    def build(numbers: list[float], *, has_range: bool, round_count: int | None) -> Spread:
        low, middle, high = sorted(numbers)
        return Spread(
            mean=middle,
            minimum=low if has_range else None,
            maximum=high if has_range else None,
            round_count=round_count,
        )

    return st.builds(
        build,
        st.lists(st.floats(1e-300, 1e18), min_size=3, max_size=3),
        has_range=st.just(True) if fill is Fill.FULL else st.booleans(),
        round_count=maybe(fill, st.integers(1, 10**9)),
    )


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


def seconds(fill: Fill) -> Strategy:
    return maybe(fill, st.floats(1e-9, LARGEST_SECONDS))


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


def transfer_models(fill: Fill) -> Strategy:
    return st.builds(
        TransferModel,
        fixed_seconds=reals(fill, -1e12, 1e12),
        sent_bytes_per_rank=wholes(fill, 0, INT64[1]),
        assumed_bytes_per_second=reals(fill, 0, 1e30),
        assumed_source=texts(fill, 256),
    )


def baselines(fill: Fill) -> Strategy:
    return st.builds(Baseline, value=spreads(fill), run=IDS if fill is Fill.FULL else st.just("") | IDS)


def predicted_values(fill: Fill) -> Strategy:
    differences = list(MEASURED_METRIC_OF_DIFFERENCE)
    others = [m for m in Metric if m not in differences and m.name not in {"UNSPECIFIED", "UNKNOWN"}]
    common = {
        "subject": texts(fill, 64, 1),
        "transfer": maybe(fill, transfer_models(fill)),
        "assumptions": tuples_of(fill, texts(fill, 64, 1)),
    }
    missing = st.lists(texts(fill, 64, 1), min_size=1, max_size=3).map(tuple)
    of_differences = st.builds(
        PredictedValue,
        metric=st.sampled_from(differences),
        estimate=estimates(fill),
        baseline=baselines(fill),
        missing_inputs=missing,
        **common,
    )
    of_others = st.builds(
        PredictedValue,
        metric=st.sampled_from(others),
        estimate=maybe(fill, estimates(fill)),
        missing_inputs=missing,
        **common,
    )
    # Only a difference has a baseline, so only it is ever full.
    return of_differences if fill is Fill.FULL else of_differences | of_others


def predictions(fill: Fill) -> Strategy:
    return st.builds(
        Prediction,
        estimator_version=texts(fill, 64, 1),
        values=st.lists(predicted_values(fill), min_size=1, max_size=3, unique_by=lambda v: (v.metric, v.subject)).map(
            tuple
        ),
        store_time=maybe(fill, instants(fill)),
    )


def settings_of_runs(fill: Fill) -> Strategy:
    settings = st.builds(Setting, key=texts(fill, 128, 1), value=texts(fill))
    minimum = 1 if fill is Fill.FULL else 0
    unique = st.lists(settings, min_size=minimum, max_size=4, unique_by=lambda s: s.key)
    return unique.map(lambda chosen: tuple(sorted(chosen, key=lambda s: s.key)))


def create_run_requests(fill: Fill) -> Strategy:
    return st.builds(
        CreateRunRequest,
        run_id=IDS,
        display_name=texts(fill, 256),
        source=texts(fill),
        settings=settings_of_runs(fill),
        # When it is stored is not the caller's to say.
        prediction=maybe(fill, predictions(fill).map(lambda p: attrs.evolve(p, store_time=None))),
    )


def request_records(fill: Fill) -> Strategy:
    @st.composite
    def build(draw: st.DrawFn) -> RequestRecord:
        ttft_ns = draw(maybe(fill, st.integers(1, INT64[1])))
        last = st.none() if ttft_ns is None else maybe(fill, st.integers(ttft_ns, INT64[1]))
        return RequestRecord(
            subject=draw(texts(fill, 128, 1)),
            round_index=draw(wholes(fill, -1000, 10**6)),
            request_index=draw(wholes(fill, 0, 10**6)),
            prompt_tokens=draw(st.integers(1, 10**9)),
            output_tokens=draw(wholes(fill, 0, 10**9)),
            send_ns=draw(maybe(fill, wholes(fill, 0, INT64[1]))),
            ttft_ns=ttft_ns,
            last_token_ns=draw(last),
            first_chunk_tokens=draw(maybe(fill, st.integers(1, 10**9))),
            send_time_unix_ns=draw(maybe(fill, wholes(fill, 0, INT64[1]))),
            node=draw(texts(fill, 256)),
            boot_id=draw(texts(fill, 64)),
        )

    return build()


def metric_aggregates(fill: Fill) -> Strategy:
    refused = {*MEASURED_METRIC_OF_DIFFERENCE, Metric.UNSPECIFIED, Metric.UNKNOWN}
    return st.builds(
        MetricAggregate,
        metric=st.sampled_from([m for m in Metric if m not in refused]),
        subject=texts(fill, 128, 1),
        value=spreads(fill),
        source=texts(fill),
    )


def collective_results(fill: Fill) -> Strategy:
    return st.builds(
        CollectiveResult,
        subject=texts(fill, 128, 1),
        kind=members(fill, CollectiveKind),
        rank_count=st.integers(2, 65_536),
        message_bytes=maybe(fill, st.integers(1, 10**15)),
        seconds=seconds(fill),
        bus_bandwidth_bytes_per_second=st.floats(1e-3, 1e15),
        error_count=maybe(fill, wholes(fill, 0, 2**62)),
        source=texts(fill),
    )


def training_steps(fill: Fill) -> Strategy:
    rates = maybe(fill, st.floats(1e-9, 1e18))
    return st.builds(
        TrainingStep,
        subject=texts(fill, 128, 1),
        node_count=st.integers(1, 65_536),
        step_index=maybe(fill, wholes(fill, 0, 2**62)),
        step_seconds=st.floats(1e-9, LARGEST_SECONDS),
        samples_per_second=rates,
        tokens_per_second=rates,
        elapsed_seconds=seconds(fill),
        source=texts(fill),
    )


RECORDS: dict[type, Callable[[Fill], Strategy]] = {
    RequestRecord: request_records,
    MetricAggregate: metric_aggregates,
    CollectiveResult: collective_results,
    TrainingStep: training_steps,
}


def append_requests(fill: Fill, *kinds: type) -> Strategy:
    one_kind = [
        st.builds(
            AppendRequest,
            run=IDS,
            writer_id=WRITER_IDS,
            sequence_number=st.integers(1, 2**62),
            records=st.lists(RECORDS[kind](fill), min_size=1, max_size=3).map(tuple),
        )
        for kind in kinds or RECORDS
    ]
    return st.one_of(*one_kind)


def series(fill: Fill) -> Strategy:
    return st.builds(
        SeriesDescriptor,
        metric=texts(fill, 128, 1),
        node=texts(fill, 256, 1),
        device=texts(fill, 128),
        port=wholes(fill, 0, 10**6),
        unit_bytes=wholes(fill, 0, 4096),
        counter_bits=st.sampled_from([32, 64] if fill is Fill.FULL else [0, 32, 64]),
        boot_id=texts(fill, 64),
    )


def open_stream_requests(fill: Fill) -> Strategy:
    return st.builds(
        OpenStreamRequest,
        run=IDS,
        writer_id=WRITER_IDS,
        series=st.lists(series(fill), min_size=1, max_size=3).map(tuple),
        last_acked_sequence_number=wholes(fill, 0, 2**62),
    )


def sample_columns(fill: Fill) -> Strategy:
    readings = tuples_of(fill, st.integers(*INT64), maximum_count=20)
    return st.builds(
        SampleColumns,
        series_index=wholes(fill, *INT32),
        time_ns=readings,
        value=readings,
        read_duration_ns=readings,
    )


def sample_batches(fill: Fill) -> Strategy:
    return st.builds(
        SampleBatch,
        sequence_number=st.integers(1, 2**62),
        columns=tuples_of(fill, sample_columns(fill)),
    )


def page_requests(fill: Fill) -> Strategy:
    return st.builds(PageRequest, page_size=wholes(fill, 0, INT32[1]), page_token=texts(fill, 128))


def seal_run_requests(fill: Fill) -> Strategy:
    return st.builds(SealRunRequest, run=IDS, expected_row_count=maybe(fill, wholes(fill, 0, INT64[1])))


OWN: dict[type, Callable[[Fill], Strategy]] = {
    **RECORDS,
    AppendRequest: append_requests,
    Baseline: baselines,
    Collective: collectives,
    CollectiveRequest: collective_requests,
    CreateRunRequest: create_run_requests,
    DecodeWorkload: decode_workloads,
    EmulatedLink: emulated_links,
    Estimate: estimates,
    Hardware: hardware,
    HardwareRequest: lambda _fill: st.builds(HardwareRequest, hardware=IDS),
    Link: links,
    LinkComparisonRequest: link_comparison_requests,
    Model: models,
    ModelRequest: lambda _fill: st.builds(ModelRequest, model=IDS),
    OpenStreamRequest: open_stream_requests,
    PageRequest: page_requests,
    PredictedValue: predicted_values,
    Prediction: predictions,
    PrefillRequest: prefill_requests,
    PrefillWorkload: prefill_workloads,
    RunRequest: lambda _fill: st.builds(RunRequest, run=IDS),
    SampleBatch: sample_batches,
    SampleColumns: sample_columns,
    SealRunRequest: seal_run_requests,
    SeriesDescriptor: series,
    Spread: spreads,
    TpProjectionRequest: tp_projection_requests,
    TrainingStepRequest: training_step_requests,
    TransferModel: transfer_models,
}
"""Types whose rules, or whose columns, a value drawn by type alone would not keep."""

RESOURCE_FIELDS = {"model", "run", "run_id", "model_id", "hardware_id"}
"""Text fields that hold the id of a resource."""


def of_type(fill: Fill, hint: Any, descriptor: Descriptor | None) -> Strategy:
    """Values of the type `hint`; `descriptor` is the message that holds them."""
    if typing.get_args(hint):
        return _of_generic_type(fill, hint, descriptor)
    if hint in OWN:
        return OWN[hint](fill)
    if attrs.has(hint):
        return of_class(fill, hint, descriptor)
    return _of_plain_type(fill, hint)


def _of_generic_type(fill: Fill, hint: Any, descriptor: Descriptor | None) -> Strategy:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple and arguments[0] is Setting:
        return settings_of_runs(fill)
    if origin is tuple:
        return tuples_of(fill, of_type(fill, arguments[0], descriptor))
    if origin is Page:
        entries = tuples_of(fill, of_type(fill, arguments[0], None))
        return st.builds(Page, entries=entries, next_page_token=texts(fill))
    kinds = [of_type(fill, argument, descriptor) for argument in arguments if argument is not type(None)]
    return maybe(fill, st.one_of(*kinds)) if type(None) in arguments else st.one_of(*kinds)


def of_class(fill: Fill, kind: type[Any], descriptor: Descriptor | None) -> Strategy:
    """Values of the attrs class `kind`, for a message of type `descriptor`."""
    hints = typing.get_type_hints(kind)
    proto_fields = descriptor.fields_by_name if descriptor is not None else {}
    return st.builds(
        kind,
        **{
            attribute.name: _of_field(fill, attribute.name, hints[attribute.name], proto_fields.get(attribute.name))
            for attribute in attrs.fields(kind)
        },
    )


def _of_field(fill: Fill, name: str, hint: Any, proto_field: FieldDescriptor | None) -> Strategy:
    if hint is str and name in RESOURCE_FIELDS:
        return IDS
    if hint in {int, int | None}:
        limits = INT64 if proto_field is not None and _is_64_bits(proto_field) else INT32
        numbers = wholes(fill, *limits)
        return numbers if hint is int else maybe(fill, numbers)
    return of_type(fill, hint, proto_field.message_type if proto_field is not None else None)


def _is_64_bits(field: FieldDescriptor) -> bool:
    return field.cpp_type == FieldDescriptor.CPPTYPE_INT64


def _of_plain_type(fill: Fill, hint: Any) -> Strategy:
    if isinstance(hint, type) and issubclass(hint, Enum):
        return members(fill, hint)
    by_type: dict[Any, Strategy] = {
        int: wholes(fill, *INT32),
        float: reals(fill, -1.7e308, 1.7e308),
        str: texts(fill),
        bool: st.just(True) if fill is Fill.FULL else st.booleans(),
        datetime: instants(fill),
    }
    return by_type[hint]


def unset_fields(message: Any, path: str = "") -> Iterable[str]:
    """Fields of a message, and of the messages in it, that are at their default; of a oneof, one has to be set."""
    present = {field.name for field, _ in message.ListFields()}
    for field in message.DESCRIPTOR.fields:
        oneof = field.containing_oneof
        alternatives = {f.name for f in oneof.fields} if oneof is not None else {field.name}
        if not alternatives & present:
            yield path + field.name
    for field, content in message.ListFields():
        kind = field.message_type
        if kind is None or kind.GetOptions().map_entry or kind.full_name.startswith("google."):
            continue
        for entry in content if field.is_repeated else [content]:
            yield from unset_fields(entry, f"{path}{field.name}.")
