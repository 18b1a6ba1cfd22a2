"""Runs, records and samples."""

from __future__ import annotations

from collections.abc import Callable

import attrs
from hypothesis import strategies as st

from linkbound.domain.collective import CollectiveKind
from linkbound.domain.metric import MEASURED_METRIC_OF_DIFFERENCE, Metric
from linkbound.domain.records import (
    CLOCK_ANCHOR,
    AppendRequest,
    CollectiveResult,
    Event,
    LinkTest,
    LinkTestDirection,
    ListRequestRecordsRequest,
    MetricAggregate,
    Record,
    RequestRecord,
    TrainingStep,
)
from linkbound.domain.run import CreateRunRequest, SealRunRequest, Setting
from linkbound.domain.samples import (
    OpenStreamRequest,
    SampleBatch,
    SampleColumns,
    SeriesDescriptor,
    StreamLimits,
    StreamStart,
)
from linkbound.domain.traffic import LARGEST_WINDOW_NS, SMALLEST_WINDOW_NS, ListPhaseTrafficRequest, TrafficRequest
from tests.strategies.predictions import predictions, spreads
from tests.strategies.values import (
    IDS,
    INT32,
    INT64,
    LARGEST_SECONDS,
    WRITER_IDS,
    Fill,
    Strategy,
    maybe,
    members,
    seconds,
    texts,
    tuples_of,
    wholes,
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
        offsets = sorted(draw(tuples_of(fill, st.integers(1, INT64[1]), maximum_count=5)))
        tokens = draw(st.tuples(*[st.integers(1, 10**9)] * len(offsets)))
        ttft_ns = draw(st.just(offsets[0]) if offsets else maybe(fill, st.integers(1, INT64[1])))
        last = st.none() if ttft_ns is None else maybe(fill, st.integers(ttft_ns, INT64[1]))
        return RequestRecord(
            subject=draw(texts(fill, 128, 1)),
            round_index=draw(wholes(fill, -1000, 10**6)),
            request_index=draw(wholes(fill, 0, 10**6)),
            prompt_tokens=draw(st.integers(1, 10**9)),
            output_tokens=draw(wholes(fill, 0, 10**9)),
            send_ns=draw(maybe(fill, wholes(fill, 0, INT64[1]))),
            ttft_ns=ttft_ns,
            last_token_ns=offsets[-1] if offsets else draw(last),
            first_chunk_tokens=draw(maybe(fill, st.integers(1, 10**9))),
            send_time_unix_ns=draw(maybe(fill, wholes(fill, 0, INT64[1]))),
            node=draw(texts(fill, 256)),
            boot_id=draw(texts(fill, 64)),
            chunk_offset_ns=tuple(offsets),
            # Without tokens each chunk is one token.
            chunk_tokens=tokens if fill is Fill.FULL or draw(st.booleans()) else (),
            writer_id=draw(texts(fill, 128)),
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


def link_tests(fill: Fill) -> Strategy:
    return st.builds(
        LinkTest,
        subject=texts(fill, 128, 1),
        tool=texts(fill, 64, 1),
        source_node=texts(fill, 256),
        destination_node=texts(fill, 256),
        device=texts(fill, 128),
        direction=members(fill, LinkTestDirection),
        message_bytes=maybe(fill, st.integers(1, 10**15)),
        bits_per_second=st.floats(1e-3, 1e15),
        latency_seconds=seconds(fill),
        mtu_bytes=maybe(fill, st.integers(1, 65_536)),
        source=texts(fill),
    )


def events(fill: Fill) -> Strategy:
    times = maybe(fill, wholes(fill, 0, INT64[1]))
    return st.builds(
        Event,
        kind=st.from_regex(r"[a-z][a-z0-9_]{0,63}", fullmatch=True).filter(lambda kind: kind != CLOCK_ANCHOR),
        subject=texts(fill, 128),
        node=texts(fill, 256),
        boot_id=texts(fill, 64),
        time_ns=times,
        time_unix_ns=times,
        event_count=maybe(fill, wholes(fill, 0, 2**62)),
        text=texts(fill, 4096),
    )


RECORDS: dict[type, Callable[[Fill], Strategy]] = {
    RequestRecord: request_records,
    MetricAggregate: metric_aggregates,
    CollectiveResult: collective_results,
    TrainingStep: training_steps,
    LinkTest: link_tests,
    Event: events,
}


def without_writer(record: Record) -> Record:
    """A record to append: the append states the writer."""
    return attrs.evolve(record, writer_id="") if isinstance(record, RequestRecord) else record


def append_requests(fill: Fill, *kinds: type) -> Strategy:
    one_kind = [
        st.builds(
            AppendRequest,
            run=IDS,
            writer_id=WRITER_IDS,
            sequence_number=st.integers(1, 2**62),
            records=st.lists(RECORDS[kind](fill).map(without_writer), min_size=1, max_size=3).map(tuple),
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
        physical_port=texts(fill, 128),
    )


def open_stream_requests(fill: Fill) -> Strategy:
    return st.builds(
        OpenStreamRequest,
        run=IDS,
        writer_id=WRITER_IDS,
        series=st.lists(series(fill), min_size=1, max_size=3).map(tuple),
        last_acked_sequence_number=wholes(fill, 0, 2**62),
        first_kept_sequence_number=wholes(fill, 0, 2**62),
    )


def stream_starts(fill: Fill) -> Strategy:
    return st.builds(
        StreamStart,
        committed_sequence_number=wholes(fill, 0, 2**62),
        checkpointed_sequence_number=wholes(fill, 0, 2**62),
        rejected_sample_count=wholes(fill, 0, INT64[1]),
        limits=st.builds(
            StreamLimits, max_in_flight_batches=wholes(fill, 0, INT32[1]), max_batch_bytes=wholes(fill, 0, INT64[1])
        ),
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


def seal_run_requests(fill: Fill) -> Strategy:
    return st.builds(SealRunRequest, run=IDS, expected_row_count=maybe(fill, wholes(fill, 0, INT64[1])))


def list_request_records_requests(fill: Fill) -> Strategy:
    return st.builds(
        ListRequestRecordsRequest,
        run=IDS,
        subject=texts(fill, 128),
        page_size=wholes(fill, 0, INT32[1]),
        page_token=texts(fill, 128),
    )


def traffic_requests(fill: Fill) -> Strategy:
    @st.composite
    def build(draw: st.DrawFn) -> TrafficRequest:
        start_ns = draw(maybe(fill, wholes(fill, 0, INT64[1] - 1)))
        return TrafficRequest(
            run=draw(IDS),
            windows_ns=draw(tuples_of(fill, st.integers(SMALLEST_WINDOW_NS, LARGEST_WINDOW_NS), maximum_count=8)),
            node=draw(texts(fill, 256)),
            metric=draw(texts(fill, 128)),
            start_ns=start_ns,
            end_ns=draw(maybe(fill, st.integers((start_ns or 0) + 1, INT64[1]))),
            max_point_count=draw(wholes(fill, 0, 10_000)),
        )

    return build()


def list_phase_traffic_requests(fill: Fill) -> Strategy:
    return st.builds(
        ListPhaseTrafficRequest,
        run=IDS,
        subject=texts(fill, 128),
        page_size=wholes(fill, 0, INT32[1]),
        page_token=texts(fill, 128),
    )
