"""Nothing of the contract is without converters."""

from collections.abc import Iterator
from enum import Enum
from typing import Any

import pytest
from google.protobuf.descriptor import Descriptor

from linkbound.convert import (
    calibration,
    catalog_service,
    collective,
    collective_estimate,
    engine,
    estimate,
    layout,
    link,
    metric,
    planning,
    query_service,
    records,
    run,
    run_service,
    sweep,
    training,
)
from linkbound.domain.calibration import CollectiveTiming
from linkbound.domain.catalog import ModelPart, RowScope, WeightFormatSource, WeightSplit
from linkbound.domain.collective import CollectiveAlgorithm, CollectiveKind, CollectiveProtocol
from linkbound.domain.engine import EngineMetric, EngineTermKind
from linkbound.domain.estimate import Basis, Constraint, Effect
from linkbound.domain.layout import ExpertParallelism, RankGroup
from linkbound.domain.link import LinkTransport, RateSource
from linkbound.domain.metric import Metric
from linkbound.domain.planning import PlanStatus, Verdict
from linkbound.domain.records import LinkTestDirection
from linkbound.domain.run import RunState
from linkbound.domain.run_comparison import Severity
from linkbound.domain.run_watch import RunChange
from linkbound.domain.sweep import SweepVariable
from linkbound.domain.training import TrainingSharding
from linkbound.estimator.v1 import (
    calibration_pb2,
    catalog_service_pb2,
    engine_pb2,
    estimator_service_pb2,
    planning_pb2,
    sweep_pb2,
    workload_pb2,
)
from linkbound.ingest.v1 import (
    query_service_pb2,
    records_pb2,
    run_pb2,
    run_service_pb2,
)
from linkbound.types.v1 import collective_pb2, estimate_pb2, link_pb2, metric_pb2
from tests.contract.protos import FILES
from tests.unit.convert.converters import all_converter_names, message_pairs

# What the generic pairs cannot show, and where it is held instead.
ELSEWHERE = {
    "StreamSamplesRequest": "an envelope of other messages: tests/integration/sample_stream",
    "StreamSamplesResponse": "an envelope of other messages: tests/integration/sample_stream",
    "QuerySqlResponse": "an envelope of bytes of Arrow, and of the summary: tests/congruence",
    "SampleColumnSet": "the columns of a batch: the pair of SampleBatch",
    "BatchEstimateRequest": "an envelope of questions: tests/congruence",
    "BatchEstimateResponse": "an envelope of answers and statuses: tests/congruence",
    "BatchError": "carries a status, which the error table makes: tests/unit/serving/test_errors.py",
    "AppendRequestRecordsRequest": "one function for six kinds: test_an_append_of_each_kind_comes_back",
    "AppendMetricAggregatesRequest": "one function for six kinds: test_an_append_of_each_kind_comes_back",
    "AppendCollectiveResultsRequest": "one function for six kinds: test_an_append_of_each_kind_comes_back",
    "AppendTrainingStepsRequest": "one function for six kinds: test_an_append_of_each_kind_comes_back",
    "AppendRequestRecordsResponse": "one function for six kinds: test_the_answer_to_an_append_is_of_its_kind",
    "AppendMetricAggregatesResponse": "one function for six kinds: test_the_answer_to_an_append_is_of_its_kind",
    "AppendCollectiveResultsResponse": "one function for six kinds: test_the_answer_to_an_append_is_of_its_kind",
    "AppendTrainingStepsResponse": "one function for six kinds: test_the_answer_to_an_append_is_of_its_kind",
    "AppendLinkTestsRequest": "one function for six kinds: test_an_append_of_each_kind_comes_back",
    "AppendLinkTestsResponse": "one function for six kinds: test_the_answer_to_an_append_is_of_its_kind",
    "AppendEventsRequest": "one function for six kinds: test_an_append_of_each_kind_comes_back",
    "AppendEventsResponse": "one function for six kinds: test_the_answer_to_an_append_is_of_its_kind",
}

ENUMS: list[tuple[type[Enum], Any, Any, Any]] = [
    (Basis, estimate_pb2.Basis, estimate.basis_to_proto, estimate.basis_from_proto),
    (Constraint, estimate_pb2.Constraint, estimate.constraint_to_proto, estimate.constraint_from_proto),
    (Effect, estimate_pb2.Effect, estimate.effect_to_proto, estimate.effect_from_proto),
    (RateSource, link_pb2.RateSource, link.rate_source_to_proto, link.rate_source_from_proto),
    (LinkTransport, link_pb2.LinkTransport, link.link_transport_to_proto, link.link_transport_from_proto),
    (
        CollectiveAlgorithm,
        estimator_service_pb2.CollectiveAlgorithm,
        collective_estimate.collective_algorithm_to_proto,
        collective_estimate.collective_algorithm_from_proto,
    ),
    (
        CollectiveProtocol,
        estimator_service_pb2.CollectiveProtocol,
        collective_estimate.collective_protocol_to_proto,
        collective_estimate.collective_protocol_from_proto,
    ),
    (
        CollectiveTiming,
        calibration_pb2.CollectiveTiming,
        calibration.collective_timing_to_proto,
        calibration.collective_timing_from_proto,
    ),
    (
        CollectiveKind,
        collective_pb2.CollectiveKind,
        collective.collective_kind_to_proto,
        collective.collective_kind_from_proto,
    ),
    (
        LinkTestDirection,
        records_pb2.LinkTestDirection,
        records.link_test_direction_to_proto,
        records.link_test_direction_from_proto,
    ),
    (
        ExpertParallelism,
        workload_pb2.ExpertParallelism,
        layout.expert_parallelism_to_proto,
        layout.expert_parallelism_from_proto,
    ),
    (RankGroup, estimator_service_pb2.RankGroup, layout.rank_group_to_proto, layout.rank_group_from_proto),
    (EngineMetric, engine_pb2.EngineMetric, engine.engine_metric_to_proto, engine.engine_metric_from_proto),
    (EngineTermKind, engine_pb2.EngineTermKind, engine.engine_term_kind_to_proto, engine.engine_term_kind_from_proto),
    (Metric, metric_pb2.Metric, metric.metric_to_proto, metric.metric_from_proto),
    (
        TrainingSharding,
        estimator_service_pb2.TrainingSharding,
        training.training_sharding_to_proto,
        training.training_sharding_from_proto,
    ),
    (
        ModelPart,
        catalog_service_pb2.ModelPart,
        catalog_service.model_part_to_proto,
        catalog_service.model_part_from_proto,
    ),
    (
        WeightSplit,
        catalog_service_pb2.WeightSplit,
        catalog_service.weight_split_to_proto,
        catalog_service.weight_split_from_proto,
    ),
    (
        WeightFormatSource,
        catalog_service_pb2.WeightFormatSource,
        catalog_service.weight_format_source_to_proto,
        catalog_service.weight_format_source_from_proto,
    ),
    (RowScope, catalog_service_pb2.RowScope, catalog_service.row_scope_to_proto, catalog_service.row_scope_from_proto),
    (RunChange, run_service_pb2.RunChange, run_service.run_change_to_proto, run_service.run_change_from_proto),
    (RunState, run_pb2.RunState, run.run_state_to_proto, run.run_state_from_proto),
    (SweepVariable, sweep_pb2.SweepVariable, sweep.sweep_variable_to_proto, sweep.sweep_variable_from_proto),
    (Verdict, planning_pb2.Verdict, planning.verdict_to_proto, planning.verdict_from_proto),
    (PlanStatus, planning_pb2.PlanStatus, planning.plan_status_to_proto, planning.plan_status_from_proto),
    (Severity, query_service_pb2.Severity, query_service.severity_to_proto, query_service.severity_from_proto),
]
BY_NAME = pytest.mark.parametrize(
    ("kind", "proto", "to_proto", "from_proto"), ENUMS, ids=[entry[0].__name__ for entry in ENUMS]
)


def messages() -> Iterator[Descriptor]:
    for file in FILES:
        yield from file.message_types_by_name.values()


def test_every_message_has_converters() -> None:
    converted = {pair.message.DESCRIPTOR.name for pair in message_pairs()}
    missing = {message.name for message in messages()} - converted - set(ELSEWHERE)
    assert missing == set()


def test_no_excuse_is_out_of_date() -> None:
    converted = {pair.message.DESCRIPTOR.name for pair in message_pairs()}
    assert set(ELSEWHERE) <= {message.name for message in messages()} - converted


def test_every_converter_has_its_opposite() -> None:
    names = all_converter_names()
    assert len(names) > 100
    one_way = {name for name in names if _opposite(name) not in names}
    # `CreateRun` reads a prediction without the time at which it is stored.
    assert one_way == {"new_prediction_from_proto"}


def _opposite(name: str) -> str:
    stem, _, direction = name.rpartition("_to_proto")
    if direction == "" and stem:
        return f"{stem}_from_proto"
    return f"{name.removesuffix('_from_proto')}_to_proto"


def test_every_enum_is_listed() -> None:
    in_protos = {enum.full_name for file in FILES for enum in file.enum_types_by_name.values()}
    assert {proto.DESCRIPTOR.full_name for _, proto, _, _ in ENUMS} == in_protos


@BY_NAME
def test_enums_have_the_same_names(kind: type[Enum], proto: Any, to_proto: Any, from_proto: Any) -> None:
    unknown = kind["UNKNOWN"]
    assert {member.value for member in kind if member is not unknown} == set(proto.keys())


@BY_NAME
def test_enums_convert_by_name(kind: type[Enum], proto: Any, to_proto: Any, from_proto: Any) -> None:
    for name, number in proto.items():
        assert from_proto(number) == kind(name)
        assert to_proto(kind(name)) == number


@BY_NAME
@pytest.mark.parametrize("number", [-(2**31), -1, 999, 2**31 - 1])
def test_a_number_of_a_later_version_is_unknown(
    kind: type[Enum], proto: Any, to_proto: Any, from_proto: Any, number: int
) -> None:
    assert from_proto(number) is kind["UNKNOWN"]


@BY_NAME
def test_unknown_is_written_as_unspecified(kind: type[Enum], proto: Any, to_proto: Any, from_proto: Any) -> None:
    assert to_proto(kind["UNKNOWN"]) == 0
