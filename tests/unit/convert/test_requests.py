"""What requests of any client become: missing parts, defaults, resource names, violations with their paths."""

from datetime import UTC, datetime

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from linkbound.convert.catalog_service import (
    get_hardware_request_to_proto,
    get_model_request_from_proto,
    get_model_request_to_proto,
)
from linkbound.convert.cluster_workload import cluster_workload_from_proto
from linkbound.convert.estimate import estimate_from_proto, estimate_to_proto
from linkbound.convert.ingest_service import append_request_from_proto, sample_batch_from_proto
from linkbound.convert.layout_comparison import layout_comparison_request_from_proto
from linkbound.convert.layout_recommendation import layout_recommendation_request_from_proto
from linkbound.convert.link import link_from_proto, link_to_proto
from linkbound.convert.link_comparison import link_comparison_request_from_proto, link_comparison_request_to_proto
from linkbound.convert.prediction import baseline_from_proto, baseline_to_proto
from linkbound.convert.prefill import prefill_request_from_proto
from linkbound.convert.records import request_record_from_proto
from linkbound.convert.run_service import create_run_request_from_proto, get_run_request_from_proto
from linkbound.convert.values import timestamp_from_proto, timestamp_to_proto
from linkbound.convert.workload import decode_workload_from_proto, decode_workload_to_proto, prefill_workload_from_proto
from linkbound.domain.errors import InternalError, InvalidArgumentError
from linkbound.domain.estimate import Basis
from linkbound.domain.link import Link
from linkbound.domain.link_comparison import LinkComparisonRequest
from linkbound.domain.metric import Spread
from linkbound.domain.prediction import Baseline
from linkbound.domain.rules import violations_of
from linkbound.domain.workload import DecodeWorkload
from linkbound.estimator.v1.catalog_service_pb2 import GetModelRequest
from linkbound.estimator.v1.estimator_service_pb2 import CompareLinksRequest, EstimatePrefillRequest
from linkbound.estimator.v1.layout_pb2 import ClusterWorkload, CompareLayoutsRequest, RecommendLayoutRequest
from linkbound.estimator.v1.workload_pb2 import DecodeWorkload as DecodeWorkloadMessage
from linkbound.estimator.v1.workload_pb2 import PrefillWorkload as PrefillWorkloadMessage
from linkbound.ingest.v1.ingest_service_pb2 import AppendRequestRecordsRequest
from linkbound.ingest.v1.ingest_service_pb2 import SampleBatch as SampleBatchMessage
from linkbound.ingest.v1.records_pb2 import RequestRecord
from linkbound.ingest.v1.run_service_pb2 import CreateRunRequest, GetRunRequest
from linkbound.types.v1.estimate_pb2 import Estimate
from linkbound.types.v1.link_pb2 import Link as LinkMessage
from linkbound.types.v1.metric_pb2 import METRIC_TTFT_SECONDS
from linkbound.types.v1.prediction_pb2 import PredictedValue, Prediction

LINK = Link(line_rate_bits_per_second=200_000_000_000)


def fields_of(error: InvalidArgumentError) -> list[str]:
    return [violation.field for violation in error.field_violations]


def test_an_empty_request_breaks_every_rule_of_what_it_lacks() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        prefill_request_from_proto(EstimatePrefillRequest())
    assert fields_of(caught.value) == [
        "workload.model",
        "workload.tensor_parallel_size",
        "workload.prompt_tokens",
        "link.line_rate_bits_per_second",
    ]


def test_empty_questions_about_nodes_break_the_rules_of_one_workload() -> None:
    lacking = ["workload.model", "workload.node_count", "workload.prompt_tokens", "link.line_rate_bits_per_second"]
    with pytest.raises(InvalidArgumentError) as caught:
        layout_comparison_request_from_proto(CompareLayoutsRequest())
    assert fields_of(caught.value) == lacking
    with pytest.raises(InvalidArgumentError) as caught:
        layout_recommendation_request_from_proto(RecommendLayoutRequest())
    assert fields_of(caught.value) == [*lacking, "reference_link.line_rate_bits_per_second"]


def test_an_absent_field_of_a_cluster_has_its_default() -> None:
    workload = cluster_workload_from_proto(ClusterWorkload(model="models/m", node_count=2, prompt_tokens=1))
    assert (workload.ranks_per_node, workload.request_count, workload.max_num_batched_tokens) == (1, 1, 8192)
    assert workload.rank_count == 2
    assert cluster_workload_from_proto(ClusterWorkload(ranks_per_node=0)).ranks_per_node == 0


def test_an_empty_optional_link_is_a_link_without_a_rate() -> None:
    message = EstimatePrefillRequest()
    message.to_link.SetInParent()
    with pytest.raises(InvalidArgumentError) as caught:
        prefill_request_from_proto(message)
    assert "to_link.line_rate_bits_per_second" in fields_of(caught.value)


def test_a_comparison_without_a_workload_lacks_one() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        link_comparison_request_from_proto(CompareLinksRequest())
    links = ["old_link.line_rate_bits_per_second", "new_link.line_rate_bits_per_second"]
    assert fields_of(caught.value) == links
    message = CompareLinksRequest(old_link=link_to_proto(LINK), new_link=link_to_proto(LINK))
    with pytest.raises(InvalidArgumentError) as caught:
        link_comparison_request_from_proto(message)
    assert fields_of(caught.value) == ["prefill"]
    message.decode.SetInParent()
    with pytest.raises(InvalidArgumentError) as caught:
        link_comparison_request_from_proto(message)
    assert fields_of(caught.value) == ["decode.model", "decode.tensor_parallel_size"]


def test_the_workload_of_a_comparison_goes_into_its_own_field() -> None:
    decode = DecodeWorkload(model="m", tensor_parallel_size=2)
    message = link_comparison_request_to_proto(LinkComparisonRequest(decode=decode, old_link=LINK, new_link=LINK))
    assert message.WhichOneof("workload") == "decode"
    assert link_comparison_request_from_proto(message).workload == decode


def test_request_count_is_one_where_it_is_absent_and_zero_where_it_is_zero() -> None:
    assert prefill_workload_from_proto(PrefillWorkloadMessage()).request_count == 1
    assert prefill_workload_from_proto(PrefillWorkloadMessage(request_count=0)).request_count == 0
    assert decode_workload_from_proto(DecodeWorkloadMessage()).request_count == 1
    assert decode_workload_from_proto(DecodeWorkloadMessage(request_count=0)).request_count == 0


@pytest.mark.parametrize("name", ["models/glm-5.3", "glm-5.3"])
def test_resource_names_and_bare_ids_are_read(name: str) -> None:
    assert get_model_request_from_proto(GetModelRequest(model=name)) == "glm-5.3"


def test_resource_names_are_written() -> None:
    assert get_model_request_to_proto("glm-5.3").model == "models/glm-5.3"
    assert get_hardware_request_to_proto("dgx-spark").hardware == "hardware/dgx-spark"
    workload = DecodeWorkload(model="m", tensor_parallel_size=2, hardware="h")
    assert decode_workload_to_proto(workload).hardware == "hardware/h"


def test_what_names_nothing_stays_empty() -> None:
    assert decode_workload_to_proto(DecodeWorkload(model="m", tensor_parallel_size=2)).hardware == ""
    baseline = Baseline(value=Spread(mean=1.0))
    assert baseline_to_proto(baseline).run == ""
    assert baseline_from_proto(baseline_to_proto(baseline)) == baseline


@pytest.mark.parametrize("name", ["models/a", "runs/", "runs/runs/a", "runs/Ä", "runs/" + "a" * 65])
def test_a_name_of_something_else_is_refused(name: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        get_run_request_from_proto(GetRunRequest(run=name))
    assert fields_of(caught.value) == ["run"]


def test_violations_of_records_name_the_record() -> None:
    message = AppendRequestRecordsRequest(
        run="runs/r", writer_id="w", sequence_number=1, records=[RequestRecord(), RequestRecord(prompt_tokens=10**18)]
    )
    with pytest.raises(InvalidArgumentError) as caught:
        append_request_from_proto(message)
    assert fields_of(caught.value) == [
        "records[0].subject",
        "records[0].prompt_tokens",
        "records[1].subject",
        "records[1].prompt_tokens",
    ]


def test_the_store_time_in_a_request_is_ignored() -> None:
    message = CreateRunRequest(
        run_id="r",
        prediction=Prediction(
            estimator_version="1",
            values=[PredictedValue(metric=METRIC_TTFT_SECONDS, subject="P1", missing_inputs=["everything"])],
            store_time=Timestamp(seconds=10**18),
        ),
    )
    request = create_run_request_from_proto(message)
    assert request.prediction is not None
    assert request.prediction.store_time is None


def test_an_absent_line_rate_is_one_that_nobody_knows() -> None:
    assert link_from_proto(LinkMessage(measured_bits_per_second=9)).line_rate_bits_per_second is None
    assert link_from_proto(LinkMessage(line_rate_bits_per_second=0)).line_rate_bits_per_second == 0
    assert not link_to_proto(Link(measured_bits_per_second=9)).HasField("line_rate_bits_per_second")


def test_an_absent_time_of_a_request_is_one_that_nobody_knows() -> None:
    absent, zero = RequestRecord(), RequestRecord(send_ns=0, send_time_unix_ns=0)
    assert (request_record_from_proto(absent).send_ns, request_record_from_proto(absent).send_time_unix_ns) == (
        None,
        None,
    )
    assert (request_record_from_proto(zero).send_ns, request_record_from_proto(zero).send_time_unix_ns) == (0, 0)


def test_a_batch_without_content_holds_nothing() -> None:
    assert sample_batch_from_proto(SampleBatchMessage(sequence_number=1)).columns == ()


# Field 4 is lower_basis, 7 binding_constraint, 8 effects_left_out: each with a number of a later version, 999.
LATER_VERSIONS = {
    "lower_basis": b"\x20\xe7\x07",
    "binding_constraint": b"\x38\xe7\x07",
    "effects_left_out[0]": b"\x42\x02\xe7\x07",
}


@pytest.mark.parametrize("path", LATER_VERSIONS)
def test_an_estimate_of_a_later_version_is_read_and_not_taken_into_a_run(path: str) -> None:
    estimate = Estimate.FromString(LATER_VERSIONS[path])
    value = estimate_from_proto(estimate)
    assert [violation.field for violation in violations_of(value)] == [path]
    predicted = PredictedValue(metric=METRIC_TTFT_SECONDS, subject="P1", estimate=estimate)
    message = CreateRunRequest(run_id="r", prediction=Prediction(estimator_version="1", values=[predicted]))
    with pytest.raises(InvalidArgumentError) as caught:
        create_run_request_from_proto(message)
    assert fields_of(caught.value) == [f"prediction.values[0].estimate.{path}"]


def test_what_an_older_client_wrote_back_is_refused() -> None:
    """An effect that a client did not know comes back as unspecified: the list is no longer what was answered."""
    damaged = estimate_to_proto(estimate_from_proto(Estimate.FromString(LATER_VERSIONS["effects_left_out[0]"])))
    assert list(damaged.effects_left_out) == [0]
    assert [violation.field for violation in violations_of(estimate_from_proto(damaged))] == ["effects_left_out[0]"]


def test_an_absent_number_differs_from_zero() -> None:
    absent = estimate_from_proto(Estimate(lower=0.0))
    assert (absent.lower, absent.expected, absent.upper) == (0.0, None, None)
    zero = estimate_from_proto(Estimate(lower=0.0, expected=0.0, upper=0.0))
    assert (zero.expected, zero.upper) == (0.0, 0.0)
    assert zero.lower_basis is Basis.UNSPECIFIED


@pytest.mark.parametrize(
    ("instant", "seconds", "nanos"),
    [
        (datetime(1970, 1, 1, tzinfo=UTC), 0, 0),
        (datetime(1970, 1, 1, microsecond=1, tzinfo=UTC), 0, 1_000),
        (datetime(1970, 1, 1, microsecond=999_999, tzinfo=UTC), 0, 999_999_000),
        (datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), -1, 999_999_000),
        (datetime(1, 1, 1, tzinfo=UTC), -62_135_596_800, 0),
        (datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), 253_402_300_799, 999_999_000),
    ],
)
def test_instants(instant: datetime, seconds: int, nanos: int) -> None:
    message = timestamp_to_proto(instant)
    assert (message.seconds, message.nanos) == (seconds, nanos)
    assert timestamp_from_proto(message) == instant
    assert timestamp_from_proto(message).tzinfo is UTC


@pytest.mark.parametrize("seconds", [253_402_300_800, -62_135_596_801, 2**63 - 1, -(2**63)])
def test_an_instant_beyond_the_calendar_is_an_error(seconds: int) -> None:
    with pytest.raises(InternalError) as caught:
        timestamp_from_proto(Timestamp(seconds=seconds))
    assert caught.value.metadata == {"seconds": str(seconds)}
