"""`message_to_json` against its own rules, and against protobuf's mapping where the two agree."""

import json
import math
from datetime import UTC, datetime
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from linkbound.convert.json import message_to_json
from linkbound.convert.values import timestamp_to_proto
from linkbound.domain.errors import InternalError
from linkbound.estimator.v1.estimator_service_pb2 import (
    EstimateDecodeResponse,
    EstimatePrefillResponse,
    TpProjection,
)
from linkbound.ingest.v1.ingest_service_pb2 import SampleBatch
from linkbound.ingest.v1.run_pb2 import Run
from linkbound.types.v1.estimate_pb2 import BASIS_FORMULA, EFFECT_RATE_RAMP, Estimate
from tests.strategies.by_type import of_type
from tests.strategies.values import Fill
from tests.unit.convert.converters import Pair, message_pairs

# Two take what no strategy draws, and a Timestamp or a Duration alone is a text, not an object.
LEFT_OUT = {"get_model_request", "get_hardware_request", "timestamp", "duration"}
PAIRS = [pair for pair in message_pairs() if pair.name not in LEFT_OUT]
WELL_KNOWN_TEXTS = {"google.protobuf.Timestamp", "google.protobuf.Duration"}


def test_fields_without_presence_are_printed_and_absent_ones_are_not() -> None:
    assert message_to_json(Estimate(lower=0.0)) == {
        "lower": 0.0,
        "lower_basis": "BASIS_UNSPECIFIED",
        "expected_basis": "BASIS_UNSPECIFIED",
        "upper_basis": "BASIS_UNSPECIFIED",
        "binding_constraint": "CONSTRAINT_UNSPECIFIED",
        "effects_left_out": [],
    }


def test_a_present_zero_is_printed() -> None:
    document = message_to_json(Estimate(lower=0.0, expected=0.0))
    assert document["expected"] == 0.0
    assert "upper" not in document


def test_enums_are_their_names_in_the_proto() -> None:
    document = message_to_json(Estimate(lower_basis=BASIS_FORMULA, effects_left_out=[EFFECT_RATE_RAMP]))
    assert document["lower_basis"] == "BASIS_FORMULA"
    assert document["effects_left_out"] == ["EFFECT_RATE_RAMP"]


def test_an_enum_number_without_a_name_is_a_number() -> None:
    message = Estimate.FromString(b"\x20\xe7\x07")
    assert message_to_json(message)["lower_basis"] == 999


def test_64_bit_integers_are_numbers() -> None:
    document = message_to_json(EstimatePrefillResponse(sent_bytes_per_rank=2**63 - 1))
    assert document["sent_bytes_per_rank"] == 2**63 - 1
    assert json.loads(json.dumps(document))["sent_bytes_per_rank"] == 2**63 - 1


def test_names_are_those_of_the_proto_in_its_order() -> None:
    names = list(message_to_json(TpProjection()))
    assert names == [field.name for field in TpProjection.DESCRIPTOR.fields if not field.has_presence]
    assert names[0] == "tensor_parallel_size"


def test_instants_of_a_list_are_texts_too() -> None:
    file = descriptor_pb2.FileDescriptorProto(name="instants.proto", dependency=["google/protobuf/timestamp.proto"])
    field = file.message_type.add(name="Instants").field.add(name="instants", number=1)
    field.type, field.type_name, field.label = field.TYPE_MESSAGE, "google.protobuf.Timestamp", field.LABEL_REPEATED
    pool = descriptor_pool.Default()
    pool.AddSerializedFile(file.SerializeToString())
    kind: Any = message_factory.GetMessageClass(pool.FindMessageTypeByName("Instants"))
    assert message_to_json(kind(instants=[Timestamp(seconds=1), Timestamp()])) == {
        "instants": ["1970-01-01T00:00:01Z", "1970-01-01T00:00:00Z"]
    }


def test_instants_are_rfc_3339() -> None:
    message = Run(create_time=timestamp_to_proto(datetime(2026, 2, 3, 4, 5, 6, 700_000, tzinfo=UTC)))
    document = message_to_json(message)
    assert document["create_time"] == "2026-02-03T04:05:06.700Z"
    assert "seal_time" not in document


def test_maps_are_objects_in_the_order_of_their_keys() -> None:
    document = message_to_json(Run(settings={"b": "2", "a": "1", "ä": "3"}))
    assert list(document["settings"].items()) == [("a", "1"), ("b", "2"), ("ä", "3")]


def test_bytes_are_base64() -> None:
    assert message_to_json(AnyMessage(type_url="t", value=b"\xff\x00"))["value"] == "/wA="


def test_maps_of_messages_are_objects_of_objects() -> None:
    message = Struct()
    message.update({"x": 1.5})
    assert message_to_json(message) == {"fields": {"x": {"number_value": 1.5}}}


def test_lists_of_messages_are_lists_of_objects() -> None:
    batch = SampleBatch()
    batch.column_set.columns.add(series_index=1)
    assert message_to_json(batch)["column_set"]["columns"] == [
        {"series_index": 1, "time_ns_deltas": [], "value_deltas": [], "read_duration_ns": []}
    ]


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_what_json_cannot_hold_is_an_error(number: float) -> None:
    message = EstimateDecodeResponse()
    message.pass_seconds.upper = number
    with pytest.raises(InternalError) as caught:
        message_to_json(message)
    assert caught.value.reason == "NOT_A_JSON_NUMBER"
    assert caught.value.metadata == {"field": "linkbound.types.v1.Estimate.upper"}


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
@settings(max_examples=5, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(data=st.data())
def test_agrees_with_the_mapping_of_protobuf(pair: Pair, data: st.DataObject) -> None:
    message = pair.to_proto(data.draw(of_type(Fill.ANY, pair.domain, pair.message.DESCRIPTOR)))
    theirs = json_format.MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    assert message_to_json(message) == _with_numbers(theirs, message.DESCRIPTOR)


def _with_numbers(document: dict[str, Any], descriptor: Descriptor) -> dict[str, Any]:
    """Protobuf's object with 64-bit integers as numbers: the one difference for a message without NaN."""
    return {name: _number(value, descriptor.fields_by_name[name]) for name, value in document.items()}


def _number(value: Any, field: FieldDescriptor) -> Any:
    kind = field.message_type
    if field.cpp_type == FieldDescriptor.CPPTYPE_INT64:
        return [int(v) for v in value] if isinstance(value, list) else int(value)
    if kind is None or kind.GetOptions().map_entry or kind.full_name in WELL_KNOWN_TEXTS:
        return value
    return [_with_numbers(v, kind) for v in value] if isinstance(value, list) else _with_numbers(value, kind)
