"""Lint of the contract: units, enums, comments, limits, errors."""

import re

import grpc
import pytest
from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor, MethodDescriptor

from serving.errors import ERROR_TABLE
from tests.contract.protos import comments, enums, fields, messages, methods, request_fields

COMMENTS = comments()

NUMERIC = {
    FieldDescriptor.CPPTYPE_INT32,
    FieldDescriptor.CPPTYPE_INT64,
    FieldDescriptor.CPPTYPE_DOUBLE,
    FieldDescriptor.CPPTYPE_UINT32,
    FieldDescriptor.CPPTYPE_UINT64,
    FieldDescriptor.CPPTYPE_FLOAT,
}
UNITS = "seconds|ns|bytes|bits|tokens|samples|parameters|count|fraction|ratio|index|indices|links|usd"
WITH_UNIT = re.compile(rf"(?:\w+_)?(?:{UNITS})(?:_per_[a-z_]+)?(?:_deltas)?")

THE_HOLDER = "the unit is the suffix of the field that holds the message"
THE_METRIC = "the unit is that of the metric in the same message"
THE_VARIABLE = "the unit is that of the variable in the same axis"
THE_FIELD = "the field's own word, as engines and model cards spell it"
AN_ORDINAL = "a position in a sequence, without a unit"
WITHOUT_UNIT: dict[str, str] = {
    "linkbound.types.v1.Estimate.lower": THE_HOLDER,
    "linkbound.types.v1.Estimate.expected": THE_HOLDER,
    "linkbound.types.v1.Estimate.upper": THE_HOLDER,
    "linkbound.types.v1.Spread.mean": THE_METRIC,
    "linkbound.types.v1.Spread.minimum": THE_METRIC,
    "linkbound.types.v1.Spread.maximum": THE_METRIC,
    "linkbound.ingest.v1.ComparisonRow.measured": THE_METRIC,
    "linkbound.ingest.v1.ComparisonRow.measured_min": THE_METRIC,
    "linkbound.ingest.v1.ComparisonRow.measured_max": THE_METRIC,
    "linkbound.ingest.v1.SampleColumns.value_deltas": "the unit is that of the series, `unit_bytes`",
    "linkbound.estimator.v1.SizeOption.node_ports_used": "a count of links, by the word of the command's JSON",
    "linkbound.estimator.v1.SizeOption.node_ports_free": "a count of links, by the word of the command's JSON",
    "linkbound.ingest.v1.SeriesDescriptor.port": "a port is known by its number",
    "linkbound.estimator.v1.CheckMemoryFitResponse.smallest_tp_that_fits": "a tensor-parallel size, as people say it",
    "linkbound.estimator.v1.SweepAxis.values": THE_VARIABLE,
    "linkbound.estimator.v1.SweepRange.first": THE_VARIABLE,
    "linkbound.estimator.v1.SweepRange.step": THE_VARIABLE,
    "linkbound.estimator.v1.StreamSweepRequest.points_per_response": "a count of points, named by its denominator",
    "linkbound.estimator.v1.CacheGroup.values_per_token": "a count of values, named by its denominator",
    "linkbound.estimator.v1.Collective.width": "values of one row; the comment says so",
    "linkbound.estimator.v1.EstimateDecodeResponse.rows_per_pass": "a count of rows, named by its denominator",
    "linkbound.estimator.v1.EngineResidual.request": AN_ORDINAL,
    "linkbound.estimator.v1.MeasuredRange.least": THE_HOLDER,
    "linkbound.estimator.v1.MeasuredRange.largest": THE_HOLDER,
    "linkbound.estimator.v1.PassShare.request": AN_ORDINAL,
    "linkbound.estimator.v1.RequestTimes.request": AN_ORDINAL,
    "linkbound.estimator.v1.SchedulePass.repeat": "a count of passes, by the word of the command's JSON",
    "linkbound.ingest.v1.StreamOpened.max_in_flight_batches": "a count of batches, named as such limits are",
}
WORDS_WITHOUT_UNIT = {
    "tensor_parallel_size": THE_FIELD,
    "tensor_parallel_sizes": THE_FIELD,
    "hidden_size": THE_FIELD,
    "ranks_per_node": "a count of ranks, named by its denominator",
    "pipeline_parallel_size": THE_FIELD,
    "data_parallel_size": THE_FIELD,
    "baseline_tensor_parallel_size": THE_FIELD,
    "passes_in_flight": "a count of passes",
    "cache_bytes_read_per_rank": "bytes; what is read of them stands behind the unit",
    "vocabulary_size": THE_FIELD,
    "long_prefill_token_threshold": THE_FIELD,
    "max_num_seqs": THE_FIELD,
    "max_model_len": THE_FIELD,
    "arrival_pass": AN_ORDINAL,
    "first_token_pass": AN_ORDINAL,
    "last_token_pass": AN_ORDINAL,
    "page_size": "the word of paging; the comment says what is counted",
    "sequence_number": AN_ORDINAL,
    "committed_sequence_number": AN_ORDINAL,
    "last_acked_sequence_number": AN_ORDINAL,
    "first_kept_sequence_number": AN_ORDINAL,
    "checkpointed_sequence_number": AN_ORDINAL,
    "revision": AN_ORDINAL,
    "start_revision": AN_ORDINAL,
    "row_limit": "a count of rows, named as such limits are",
}

# How a comment states what a field of a request may hold.
NUMBER_LIMITS = re.compile(
    r"-?\d[\d^]* to (1 \+ )?[\da-z]|\babove 0 and at most|[Aa]bove 0\b|one of \d|\b0 or more|\b1 or more|\b\d+ or \d+|"
    r"not below `|negative is refused|At most \d"
)
TEXT_LIMITS = re.compile(
    r"\d+ (to \d+ )?characters|\d to \d+ of a-z|the bare id is accepted|empty for the first page|empty where it came|"
    r"at most \d+ MiB|At most \d+ bytes"
)
MESSAGE_LIMITS = re.compile(r"Required|Absent:|absent for|limits stand at|[Aa]t most \d")
LIMITED_ELSEWHERE = {
    "linkbound.ingest.v1.SampleColumns.value_deltas": "any reading is stored",
    "linkbound.ingest.v1.SampleColumns.read_duration_ns": "as long as the readings; a bad one is counted, not refused",
    "linkbound.ingest.v1.SampleColumns.series_index": "a position in `OpenStream.series`",
    "linkbound.types.v1.Estimate.lower": "an interval's limits stand at its message",
    "linkbound.types.v1.Estimate.expected": "an interval's limits stand at its message",
    "linkbound.types.v1.Estimate.upper": "an interval's limits stand at its message",
}
SCOPE = re.compile(r"one direction|each direction|one rank|each rank|whole cluster|one accelerator|one request")
CODES = {code.name for code in grpc.StatusCode}
REASONS = {situation.reason for row in ERROR_TABLE for situation in row.situations}


def named(element: FieldDescriptor | EnumDescriptor | MethodDescriptor) -> str:
    return str(element.full_name)


def is_numeric(field: FieldDescriptor) -> bool:
    return field.cpp_type in NUMERIC


def is_arm(field: FieldDescriptor) -> bool:
    """Whether a field is one of a choice; `optional` is a choice of its own, named after the field."""
    oneof = field.containing_oneof
    return oneof is not None and oneof.name != f"_{field.name}"


def test_every_element_has_a_comment() -> None:
    elements = [message.full_name for message in messages()]
    elements += [field.full_name for field in fields()]
    elements += [enum.full_name for enum in enums()]
    elements += [f"{enum.full_name.rpartition('.')[0]}.{value.name}" for enum in enums() for value in enum.values]
    elements += [method.full_name for method in methods()]
    elements += [method.containing_service.full_name for method in methods()]
    assert len(elements) > 300
    assert [name for name in elements if not COMMENTS.get(name)] == []


@pytest.mark.parametrize("field", [f for f in fields() if is_numeric(f)], ids=named)
def test_a_number_has_its_unit_in_its_name(field: FieldDescriptor) -> None:
    excused = field.full_name in WITHOUT_UNIT or field.name in WORDS_WITHOUT_UNIT
    assert excused or WITH_UNIT.fullmatch(field.name)


def test_no_excuse_is_out_of_date() -> None:
    numeric = [field for field in fields() if is_numeric(field)]
    assert set(WITHOUT_UNIT) <= {field.full_name for field in numeric}
    assert set(WORDS_WITHOUT_UNIT) <= {field.name for field in numeric}
    assert not any(WITH_UNIT.fullmatch(name) for name in WORDS_WITHOUT_UNIT)


@pytest.mark.parametrize("field", fields(), ids=named)
def test_numbers_are_signed_and_of_full_precision(field: FieldDescriptor) -> None:
    allowed = {
        FieldDescriptor.TYPE_BOOL,
        FieldDescriptor.TYPE_BYTES,
        FieldDescriptor.TYPE_DOUBLE,
        FieldDescriptor.TYPE_ENUM,
        FieldDescriptor.TYPE_INT32,
        FieldDescriptor.TYPE_INT64,
        FieldDescriptor.TYPE_MESSAGE,
        FieldDescriptor.TYPE_SFIXED64,
        FieldDescriptor.TYPE_SINT64,
        FieldDescriptor.TYPE_STRING,
    }
    assert field.type in allowed


@pytest.mark.parametrize("field", fields(), ids=named)
def test_no_name_scales_a_unit(field: FieldDescriptor) -> None:
    assert not re.search(r"(^|_)(ms|us|kb|mb|gb|kib|mib|gib|gbps|mbps|percent|pct)(_|$)", field.name)


@pytest.mark.parametrize("field", [f for f in fields() if f.name.endswith("_fraction")], ids=named)
def test_a_share_is_a_double(field: FieldDescriptor) -> None:
    kind = field.message_type
    assert field.type == FieldDescriptor.TYPE_DOUBLE or (kind is not None and kind.name == "Estimate")


@pytest.mark.parametrize(
    "field", [f for f in fields() if re.search(r"(bits|bytes|tokens|samples)_per_second$", f.name)], ids=named
)
def test_a_rate_says_whose_it_is(field: FieldDescriptor) -> None:
    around = COMMENTS[field.full_name.rpartition(".")[0]]
    text = f"{COMMENTS[field.full_name]} {around}"
    # A bandwidth as nccl-tests defines it, or one that another field defines, has its scope from there.
    assert SCOPE.search(text) or re.search(r"nccl-tests|`\w+`|explain the measurement", text)


@pytest.mark.parametrize("enum", enums(), ids=named)
def test_an_enum_starts_unspecified_and_its_values_carry_its_name(enum: EnumDescriptor) -> None:
    prefix = re.sub(r"(?<!^)(?=[A-Z])", "_", enum.name).upper() + "_"
    assert enum.values[0].name == f"{prefix}UNSPECIFIED"
    assert enum.values[0].number == 0
    assert all(value.name.startswith(prefix) for value in enum.values)
    assert "UNKNOWN" not in {value.name.removeprefix(prefix) for value in enum.values}


@pytest.mark.parametrize("enum", enums(), ids=named)
def test_an_enum_says_whether_values_may_be_added(enum: EnumDescriptor) -> None:
    assert "Values may be added" in COMMENTS[enum.full_name]


@pytest.mark.parametrize("method", methods(), ids=named)
def test_a_method_names_its_errors(method: MethodDescriptor) -> None:
    text = COMMENTS[method.full_name]
    stated = text.partition("Errors:")[2]
    if "those of the service" in stated:
        stated = COMMENTS[method.containing_service.full_name]
    codes = {word for word in re.findall(r"[A-Z_]{5,}", stated) if word in CODES}
    reasons = {word for word in re.findall(r"[A-Z]+_[A-Z_]+", stated) if word not in CODES}
    assert "INVALID_ARGUMENT" in codes
    assert reasons <= REASONS


@pytest.mark.parametrize("method", methods(), ids=named)
def test_requests_and_responses_are_a_method_s_own(method: MethodDescriptor) -> None:
    assert method.input_type.name == f"{method.name}Request"
    assert method.output_type.name == f"{method.name}Response"


LIMITED_FIELDS = [
    field
    for field in request_fields()
    # An enum holds its values. One arm of a oneof needs no more than what is said of the whole.
    if field.cpp_type != FieldDescriptor.CPPTYPE_ENUM
    and not is_arm(field)
    # The entries of a list say what they may hold, those of a map what is said of the map.
    and not (field.message_type is not None and field.is_repeated)
    and not field.full_name.split(".")[-2].endswith("Entry")
]


@pytest.mark.parametrize("field", [f for f in LIMITED_FIELDS if is_numeric(f)], ids=named)
def test_a_number_of_a_request_has_limits(field: FieldDescriptor) -> None:
    assert field.full_name in LIMITED_ELSEWHERE or NUMBER_LIMITS.search(COMMENTS[field.full_name])


@pytest.mark.parametrize("field", [f for f in LIMITED_FIELDS if f.type == FieldDescriptor.TYPE_STRING], ids=named)
def test_a_text_of_a_request_has_limits(field: FieldDescriptor) -> None:
    assert TEXT_LIMITS.search(COMMENTS[field.full_name])


@pytest.mark.parametrize("field", [f for f in LIMITED_FIELDS if f.message_type is not None], ids=named)
def test_a_message_in_a_request_is_required_or_says_what_its_absence_means(field: FieldDescriptor) -> None:
    assert MESSAGE_LIMITS.search(COMMENTS[field.full_name]) or "ignored in requests" in COMMENTS[field.full_name]


def test_no_limit_is_excused_without_need() -> None:
    numeric = {field.full_name for field in LIMITED_FIELDS if is_numeric(field)}
    assert set(LIMITED_ELSEWHERE) <= numeric
    assert [name for name in LIMITED_ELSEWHERE if NUMBER_LIMITS.search(COMMENTS[name])] == []


def test_types_do_not_depend_on_services() -> None:
    for message in messages():
        package = message.file.package
        for dependency in message.file.dependencies:
            if dependency.package.startswith("linkbound."):
                assert dependency.package in {package, "linkbound.types.v1"}
