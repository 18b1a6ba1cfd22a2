"""Converters of `linkbound/ingest/v1/records.proto`."""

from __future__ import annotations

from linkbound.convert.collective import collective_kind_from_proto, collective_kind_to_proto
from linkbound.convert.metric import metric_from_proto, metric_to_proto, spread_from_proto, spread_to_proto
from linkbound.convert.values import EnumConverter, each_up_to
from linkbound.domain.records import (
    LARGEST_CHUNK_COUNT,
    CollectiveResult,
    Event,
    LinkTest,
    LinkTestDirection,
    MetricAggregate,
    RequestRecord,
    TrainingStep,
)
from linkbound.ingest.v1 import records_pb2

_LINK_TEST_DIRECTION = EnumConverter(LinkTestDirection, records_pb2.LinkTestDirection)

link_test_direction_to_proto = _LINK_TEST_DIRECTION.to_proto
link_test_direction_from_proto = _LINK_TEST_DIRECTION.from_proto


def request_record_to_proto(value: RequestRecord) -> records_pb2.RequestRecord:
    """One request as a message."""
    return records_pb2.RequestRecord(
        subject=value.subject,
        round_index=value.round_index,
        request_index=value.request_index,
        prompt_tokens=value.prompt_tokens,
        output_tokens=value.output_tokens,
        send_ns=value.send_ns,
        ttft_ns=value.ttft_ns,
        last_token_ns=value.last_token_ns,
        first_chunk_tokens=value.first_chunk_tokens,
        send_time_unix_ns=value.send_time_unix_ns,
        node=value.node,
        boot_id=value.boot_id,
        chunk_offset_ns=value.chunk_offset_ns,
        chunk_tokens=value.chunk_tokens,
        writer_id=value.writer_id,
    )


def request_record_from_proto(message: records_pb2.RequestRecord) -> RequestRecord:
    """One request from its message."""
    return RequestRecord(
        subject=message.subject,
        round_index=message.round_index,
        request_index=message.request_index,
        prompt_tokens=message.prompt_tokens,
        output_tokens=message.output_tokens,
        send_ns=message.send_ns if message.HasField("send_ns") else None,
        ttft_ns=message.ttft_ns if message.HasField("ttft_ns") else None,
        last_token_ns=message.last_token_ns if message.HasField("last_token_ns") else None,
        first_chunk_tokens=message.first_chunk_tokens if message.HasField("first_chunk_tokens") else None,
        send_time_unix_ns=message.send_time_unix_ns if message.HasField("send_time_unix_ns") else None,
        node=message.node,
        boot_id=message.boot_id,
        chunk_offset_ns=each_up_to(LARGEST_CHUNK_COUNT, int, message.chunk_offset_ns),
        chunk_tokens=each_up_to(LARGEST_CHUNK_COUNT, int, message.chunk_tokens),
        writer_id=message.writer_id,
    )


def metric_aggregate_to_proto(value: MetricAggregate) -> records_pb2.MetricAggregate:
    """A metric over rounds as a message."""
    return records_pb2.MetricAggregate(
        metric=metric_to_proto(value.metric),
        subject=value.subject,
        value=spread_to_proto(value.value),
        source=value.source,
    )


def metric_aggregate_from_proto(message: records_pb2.MetricAggregate) -> MetricAggregate:
    """A metric over rounds from its message."""
    return MetricAggregate(
        metric=metric_from_proto(message.metric),
        subject=message.subject,
        value=spread_from_proto(message.value),
        source=message.source,
    )


def collective_result_to_proto(value: CollectiveResult) -> records_pb2.CollectiveResult:
    """One line of a collective benchmark as a message."""
    return records_pb2.CollectiveResult(
        subject=value.subject,
        kind=collective_kind_to_proto(value.kind),
        rank_count=value.rank_count,
        message_bytes=value.message_bytes,
        seconds=value.seconds,
        bus_bandwidth_bytes_per_second=value.bus_bandwidth_bytes_per_second,
        error_count=value.error_count,
        source=value.source,
    )


def collective_result_from_proto(message: records_pb2.CollectiveResult) -> CollectiveResult:
    """One line of a collective benchmark from its message."""
    return CollectiveResult(
        subject=message.subject,
        kind=collective_kind_from_proto(message.kind),
        rank_count=message.rank_count,
        message_bytes=message.message_bytes if message.HasField("message_bytes") else None,
        seconds=message.seconds if message.HasField("seconds") else None,
        bus_bandwidth_bytes_per_second=message.bus_bandwidth_bytes_per_second,
        error_count=message.error_count if message.HasField("error_count") else None,
        source=message.source,
    )


def training_step_to_proto(value: TrainingStep) -> records_pb2.TrainingStep:
    """A training step as a message."""
    return records_pb2.TrainingStep(
        subject=value.subject,
        node_count=value.node_count,
        step_index=value.step_index,
        step_seconds=value.step_seconds,
        samples_per_second=value.samples_per_second,
        tokens_per_second=value.tokens_per_second,
        elapsed_seconds=value.elapsed_seconds,
        source=value.source,
    )


def training_step_from_proto(message: records_pb2.TrainingStep) -> TrainingStep:
    """A training step from its message."""
    return TrainingStep(
        subject=message.subject,
        node_count=message.node_count,
        step_index=message.step_index if message.HasField("step_index") else None,
        step_seconds=message.step_seconds if message.HasField("step_seconds") else None,
        samples_per_second=message.samples_per_second if message.HasField("samples_per_second") else None,
        tokens_per_second=message.tokens_per_second if message.HasField("tokens_per_second") else None,
        elapsed_seconds=message.elapsed_seconds if message.HasField("elapsed_seconds") else None,
        source=message.source,
    )


def link_test_to_proto(value: LinkTest) -> records_pb2.LinkTest:
    """A test of a link as a message."""
    return records_pb2.LinkTest(
        subject=value.subject,
        tool=value.tool,
        source_node=value.source_node,
        destination_node=value.destination_node,
        device=value.device,
        direction=link_test_direction_to_proto(value.direction),
        message_bytes=value.message_bytes,
        bits_per_second=value.bits_per_second,
        latency_seconds=value.latency_seconds,
        mtu_bytes=value.mtu_bytes,
        source=value.source,
    )


def link_test_from_proto(message: records_pb2.LinkTest) -> LinkTest:
    """A test of a link from its message."""
    return LinkTest(
        subject=message.subject,
        tool=message.tool,
        source_node=message.source_node,
        destination_node=message.destination_node,
        device=message.device,
        direction=link_test_direction_from_proto(message.direction),
        message_bytes=message.message_bytes if message.HasField("message_bytes") else None,
        bits_per_second=message.bits_per_second if message.HasField("bits_per_second") else None,
        latency_seconds=message.latency_seconds if message.HasField("latency_seconds") else None,
        mtu_bytes=message.mtu_bytes if message.HasField("mtu_bytes") else None,
        source=message.source,
    )


def event_to_proto(value: Event) -> records_pb2.Event:
    """An event as a message."""
    return records_pb2.Event(
        kind=value.kind,
        subject=value.subject,
        node=value.node,
        boot_id=value.boot_id,
        time_ns=value.time_ns,
        time_unix_ns=value.time_unix_ns,
        event_count=value.event_count,
        text=value.text,
    )


def event_from_proto(message: records_pb2.Event) -> Event:
    """An event from its message."""
    return Event(
        kind=message.kind,
        subject=message.subject,
        node=message.node,
        boot_id=message.boot_id,
        time_ns=message.time_ns if message.HasField("time_ns") else None,
        time_unix_ns=message.time_unix_ns if message.HasField("time_unix_ns") else None,
        event_count=message.event_count if message.HasField("event_count") else None,
        text=message.text,
    )
