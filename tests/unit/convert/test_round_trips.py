"""Every converter there and back, over random values that reach the limits of each field."""

from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from linkbound.convert.ingest_service import (
    append_request_from_proto,
    append_request_to_proto,
    append_response_from_proto,
    append_response_to_proto,
)
from linkbound.convert.run import settings_from_proto, settings_to_proto
from linkbound.domain.link import Link
from linkbound.domain.records import AppendOutcome, AppendRequest, RequestRecord
from linkbound.ingest.v1 import ingest_service_pb2
from tests.strategies.by_type import of_type
from tests.strategies.ingest import RECORDS, append_requests, settings_of_runs
from tests.strategies.messages import unset_fields
from tests.strategies.values import IDS, INT64, Fill
from tests.unit.convert.converters import Pair, message_pairs

# Shrinking values of this size takes minutes and explains little.
UNSHRUNK = settings(max_examples=15, phases=[Phase.explicit, Phase.reuse, Phase.generate])
# A full value has everything in it, so the first one already shows what is forgotten.
FULL = settings(UNSHRUNK, max_examples=4)

ARRIVALS = {"arrival_pass", "arrival_seconds"}
TTFTS = {"ttft_seconds", "last_ttft_seconds", "mean_ttft_seconds"}
TTFTS |= {"ttft_range_seconds", "last_ttft_range_seconds", "mean_ttft_range_seconds"}
MEASURED = {*ARRIVALS, *TTFTS, "model", "model_config_json"}
"""Of a request to an engine, and of what was measured of one."""
ALTERNATIVES = {
    "cluster_workload": {"model", "model_config_json"},
    "collective_request": {"calibration", "collective_table"},
    "decode_request": {"model", "model_config_json", "calibration", "collective_table"},
    "decode_workload": {"model", "model_config_json"},
    "duration": {"seconds", "nanos"},
    "engine_calibration": MEASURED,
    "engine_point": {*TTFTS, *ARRIVALS},
    "engine_request": ARRIVALS,
    "engine_table": MEASURED,
    "fit_engine_calibration_request": MEASURED,
    "fit_engine_calibration_response": MEASURED,
    "get_engine_calibration_response": MEASURED,
    "layout_comparison_request": {"model", "model_config_json", "calibration", "collective_table"},
    "layout_recommendation_request": {"model", "model_config_json", "calibration", "collective_table"},
    "link_comparison_request": {"model", "model_config_json"},
    "list_engine_calibrations_response": MEASURED,
    "memory_fit_request": {"model", "model_config_json"},
    "prefill_request": {"model", "model_config_json", "calibration", "collective_table"},
    "prefill_workload": {"model", "model_config_json"},
    "sample_batch": {"arrow_ipc"},
    "schedule_part": MEASURED,
    "schedule_request": {*MEASURED, "calibration", "collective_table", "engine_calibration", "engine_table"},
    "schedule_summary": MEASURED,
    "slowest_link_request": {"model", "model_config_json"},
    "sweep_axis": {"values", "range"},
    "sweep_request": {"values", "range", "model_config_json", "expert_parallelism", "sequence_parallel"},
    "tp_projection_request": {"model", "model_config_json"},
    "training_step_request": {
        *("gradient_bytes", "model", "model_config_json", "lora_parameters", "calibration", "collective_table"),
    },
}
"""Fields of a message that stand in the place of others, so that no value has all of them; each is drawn."""
ENVELOPES = {"batch_question", "batch_answer"}
"""One question or answer of any kind: what they hold has a pair of its own."""
PAIRS = message_pairs()


def values_of(pair: Pair, fill: Fill) -> st.SearchStrategy[Any]:
    # A bare text is the id of the resource that a request names.
    return IDS if pair.domain is str else of_type(fill, pair.domain, pair.message.DESCRIPTOR)


def over_the_wire(message: Any) -> Any:
    return type(message).FromString(message.SerializeToString())


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
@UNSHRUNK
@given(data=st.data())
def test_a_value_comes_back(pair: Pair, data: st.DataObject) -> None:
    value = data.draw(values_of(pair, Fill.ANY))
    assert pair.from_proto(over_the_wire(pair.to_proto(value))) == value


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
@FULL
@given(data=st.data())
def test_no_field_is_forgotten(pair: Pair, data: st.DataObject) -> None:
    value = data.draw(values_of(pair, Fill.FULL))
    message = pair.to_proto(value)
    forgotten = [path for path in unset_fields(message) if not _is_left_out(pair, path)]
    assert forgotten == []
    assert pair.from_proto(message) == value
    assert pair.to_proto(pair.from_proto(message)) == message


def _is_left_out(pair: Pair, path: str) -> bool:
    """What no value has: fields in the place of others, and the time at which a prediction is stored.

    A link has the MTU of its transport alone.
    """
    holder, _, name = path.rpartition(".")
    is_of_a_link = holder.endswith(("link", "links")) or (holder == "" and pair.domain is Link)
    is_other_mtu = name in {"roce_mtu_bytes", "ethernet_mtu_bytes"} and is_of_a_link
    if pair.name in ENVELOPES or name in ALTERNATIVES.get(pair.name, ()):
        return True
    return is_other_mtu or (pair.name == "create_run_request" and path == "prediction.store_time")


@pytest.mark.parametrize("kind", RECORDS)
@UNSHRUNK
@given(data=st.data())
def test_an_append_of_each_kind_comes_back(kind: type, data: st.DataObject) -> None:
    request: AppendRequest = data.draw(append_requests(Fill.FULL, kind))
    message = append_request_to_proto(request)
    # Who wrote a record is said of the append alone.
    assert set(unset_fields(message)) == ({"records.writer_id"} if kind is RequestRecord else set())
    assert append_request_from_proto(over_the_wire(message)) == request


@UNSHRUNK
@given(request=append_requests(Fill.ANY), numbers=st.tuples(st.integers(*INT64), st.integers(*INT64)))
def test_the_answer_to_an_append_is_of_its_kind(request: AppendRequest, numbers: tuple[int, int]) -> None:
    message = append_request_to_proto(request)
    kind = getattr(ingest_service_pb2, f"{type(message).__name__.removesuffix('Request')}Response")
    outcome = AppendOutcome(committed_sequence_number=numbers[0], checkpointed_sequence_number=numbers[1])
    answer = append_response_to_proto(outcome, kind)
    assert type(answer).__name__ == type(message).__name__.replace("Request", "Response").replace(
        "AppendResponseRecords", "AppendRequestRecords"
    )
    assert append_response_from_proto(over_the_wire(answer)) == outcome


@given(chosen=settings_of_runs(Fill.ANY))
def test_settings_come_back(chosen: Any) -> None:
    assert settings_from_proto(settings_to_proto(chosen)) == chosen
