"""Converters of `linkbound/ingest/v1/traffic.proto`."""

from __future__ import annotations

from google.protobuf.duration_pb2 import Duration

from linkbound.convert.values import each
from linkbound.domain.traffic import NS_PER_SECOND, PhaseTraffic, PortTraffic, TrafficPoint, TrafficWindow
from linkbound.ingest.v1 import traffic_pb2


def duration_to_proto(duration_ns: int) -> Duration:
    """A span of whole nanoseconds as a message."""
    seconds, nanos = divmod(abs(duration_ns), NS_PER_SECOND)
    # Both fields have the sign of the whole.
    return Duration(seconds=seconds, nanos=nanos) if duration_ns >= 0 else Duration(seconds=-seconds, nanos=-nanos)


def duration_from_proto(message: Duration) -> int:
    """Whole nanoseconds from a span, however its two fields share them."""
    return message.seconds * NS_PER_SECOND + message.nanos


def traffic_point_to_proto(value: TrafficPoint) -> traffic_pb2.TrafficPoint:
    """A point of the course as a message."""
    return traffic_pb2.TrafficPoint(
        start_ns=value.start_ns,
        mean_bits_per_second=value.mean_bits_per_second,
        least_bits_per_second=value.least_bits_per_second,
        peak_bits_per_second=value.peak_bits_per_second,
    )


def traffic_point_from_proto(message: traffic_pb2.TrafficPoint) -> TrafficPoint:
    """A point of the course from its message."""
    return TrafficPoint(
        start_ns=message.start_ns,
        mean_bits_per_second=message.mean_bits_per_second,
        least_bits_per_second=message.least_bits_per_second,
        peak_bits_per_second=message.peak_bits_per_second,
    )


def traffic_window_to_proto(value: TrafficWindow) -> traffic_pb2.TrafficWindow:
    """Rates over windows of one width as a message."""
    return traffic_pb2.TrafficWindow(
        window=duration_to_proto(value.window_ns),
        window_count=value.window_count,
        mean_bits_per_second=value.mean_bits_per_second,
        peak_bits_per_second=value.peak_bits_per_second,
        peak_start_ns=value.peak_start_ns,
        p99_bits_per_second=value.p99_bits_per_second,
        covered_fraction=value.covered_fraction,
        points=each(traffic_point_to_proto, value.points),
    )


def traffic_window_from_proto(message: traffic_pb2.TrafficWindow) -> TrafficWindow:
    """Rates over windows of one width from their message."""
    return TrafficWindow(
        window_ns=duration_from_proto(message.window),
        window_count=message.window_count,
        mean_bits_per_second=message.mean_bits_per_second,
        peak_bits_per_second=message.peak_bits_per_second,
        peak_start_ns=message.peak_start_ns,
        p99_bits_per_second=message.p99_bits_per_second,
        covered_fraction=message.covered_fraction,
        points=each(traffic_point_from_proto, message.points),
    )


def port_traffic_to_proto(value: PortTraffic) -> traffic_pb2.PortTraffic:
    """What one counter of one port counted, as a message."""
    return traffic_pb2.PortTraffic(
        node=value.node,
        boot_id=value.boot_id,
        physical_port=value.physical_port,
        devices=value.devices,
        metric=value.metric,
        start_ns=value.start_ns,
        end_ns=value.end_ns,
        total_bytes=value.total_bytes,
        sample_count=value.sample_count,
        wrap_count=value.wrap_count,
        reset_count=value.reset_count,
        gap_count=value.gap_count,
        duplicate_count=value.duplicate_count,
        late_count=value.late_count,
        interval_ns=value.interval_ns,
        windows=each(traffic_window_to_proto, value.windows),
    )


def port_traffic_from_proto(message: traffic_pb2.PortTraffic) -> PortTraffic:
    """What one counter of one port counted, from its message."""
    return PortTraffic(
        node=message.node,
        boot_id=message.boot_id,
        physical_port=message.physical_port,
        devices=tuple(message.devices),
        metric=message.metric,
        start_ns=message.start_ns,
        end_ns=message.end_ns,
        total_bytes=message.total_bytes,
        sample_count=message.sample_count,
        wrap_count=message.wrap_count,
        reset_count=message.reset_count,
        gap_count=message.gap_count,
        duplicate_count=message.duplicate_count,
        late_count=message.late_count,
        interval_ns=message.interval_ns,
        windows=each(traffic_window_from_proto, message.windows),
    )


def phase_traffic_to_proto(value: PhaseTraffic) -> traffic_pb2.PhaseTraffic:
    """Traffic in the phases of a request as a message."""
    return traffic_pb2.PhaseTraffic(
        subject=value.subject,
        round_index=value.round_index,
        request_index=value.request_index,
        prompt_tokens=value.prompt_tokens,
        output_tokens=value.output_tokens,
        node=value.node,
        physical_port=value.physical_port,
        metric=value.metric,
        prefill_bytes=value.prefill_bytes,
        prefill_bits_per_second=value.prefill_bits_per_second,
        prefill_bytes_per_prompt_token=value.prefill_bytes_per_prompt_token,
        decode_bytes=value.decode_bytes,
        decode_bits_per_second=value.decode_bits_per_second,
        overlapping_request_count=value.overlapping_request_count,
        round_prefill_bytes_per_prompt_token=value.round_prefill_bytes_per_prompt_token,
    )


def phase_traffic_from_proto(message: traffic_pb2.PhaseTraffic) -> PhaseTraffic:
    """Traffic in the phases of a request from its message."""
    return PhaseTraffic(
        subject=message.subject,
        round_index=message.round_index,
        request_index=message.request_index,
        prompt_tokens=message.prompt_tokens,
        output_tokens=message.output_tokens,
        node=message.node,
        physical_port=message.physical_port,
        metric=message.metric,
        prefill_bytes=message.prefill_bytes if message.HasField("prefill_bytes") else None,
        prefill_bits_per_second=(
            message.prefill_bits_per_second if message.HasField("prefill_bits_per_second") else None
        ),
        prefill_bytes_per_prompt_token=(
            message.prefill_bytes_per_prompt_token if message.HasField("prefill_bytes_per_prompt_token") else None
        ),
        decode_bytes=message.decode_bytes if message.HasField("decode_bytes") else None,
        decode_bits_per_second=message.decode_bits_per_second if message.HasField("decode_bits_per_second") else None,
        overlapping_request_count=message.overlapping_request_count,
        round_prefill_bytes_per_prompt_token=(
            message.round_prefill_bytes_per_prompt_token
            if message.HasField("round_prefill_bytes_per_prompt_token")
            else None
        ),
    )
