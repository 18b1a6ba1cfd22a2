"""Converters of `linkbound/ingest/v1/run.proto`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from linkbound.convert.prediction import prediction_from_proto, prediction_to_proto
from linkbound.convert.values import EnumConverter, each_up_to, maybe, timestamp_from_proto, timestamp_to_proto
from linkbound.domain.names import RUNS, resource_id, resource_name
from linkbound.domain.run import LARGEST_SETTING_COUNT, Run, RunState, Setting
from linkbound.ingest.v1 import run_pb2

_RUN_STATE = EnumConverter(RunState, run_pb2.RunState)

run_state_to_proto = _RUN_STATE.to_proto
run_state_from_proto = _RUN_STATE.from_proto


def settings_to_proto(values: Iterable[Setting]) -> dict[str, str]:
    """Settings as the entries of a map field."""
    return {setting.key: setting.value for setting in values}


def settings_from_proto(entries: Mapping[str, str]) -> tuple[Setting, ...]:
    """Settings from the entries of a map field, sorted by key."""
    return each_up_to(LARGEST_SETTING_COUNT, lambda key: Setting(key=key, value=entries[key]), sorted(entries))


def run_to_proto(value: Run) -> run_pb2.Run:
    """A run as a message."""
    return run_pb2.Run(
        name=resource_name(RUNS, value.run_id),
        display_name=value.display_name,
        state=run_state_to_proto(value.state),
        create_time=timestamp_to_proto(value.create_time),
        seal_time=maybe(timestamp_to_proto, value.seal_time),
        source=value.source,
        settings=settings_to_proto(value.settings),
        prediction=maybe(prediction_to_proto, value.prediction),
        sealed_path=value.sealed_path,
        sealed_size_bytes=value.sealed_size_bytes,
        sealed_fault=value.sealed_fault,
    )


def run_from_proto(message: run_pb2.Run) -> Run:
    """A run from its message."""
    return Run(
        run_id=resource_id(RUNS, message.name),
        display_name=message.display_name,
        state=run_state_from_proto(message.state),
        create_time=timestamp_from_proto(message.create_time),
        seal_time=timestamp_from_proto(message.seal_time) if message.HasField("seal_time") else None,
        source=message.source,
        settings=settings_from_proto(message.settings),
        prediction=prediction_from_proto(message.prediction) if message.HasField("prediction") else None,
        sealed_path=message.sealed_path,
        sealed_size_bytes=message.sealed_size_bytes,
        sealed_fault=message.sealed_fault,
    )
