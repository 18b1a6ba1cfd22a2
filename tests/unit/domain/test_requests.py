"""Rules of requests between fields and of the types that they hold."""

from typing import Any

import attrs
import pytest

from linkbound.domain.calibration import CollectivePoint, CollectiveTable
from linkbound.domain.cluster_workload import ClusterWorkload
from linkbound.domain.collective import CollectiveKind
from linkbound.domain.decode import DecodeRequest
from linkbound.domain.errors import InvalidArgumentError
from linkbound.domain.estimate import Basis, Constraint, Effect, Estimate
from linkbound.domain.layout import ParallelLayout
from linkbound.domain.layout_comparison import LayoutComparisonRequest
from linkbound.domain.layout_recommendation import LayoutRecommendationRequest
from linkbound.domain.link import Link, LinkTransport, RateSource, ResolvedLink, rate_in_words
from linkbound.domain.link_comparison import EmulatedLink, LinkComparisonRequest
from linkbound.domain.memory import MemoryFitRequest
from linkbound.domain.metric import Metric
from linkbound.domain.prediction import PredictedValue, Prediction, TransferModel
from linkbound.domain.prefill import PrefillRequest
from linkbound.domain.records import RequestRecord
from linkbound.domain.rules import violations_of
from linkbound.domain.run import CreateRunRequest
from linkbound.domain.samples import SeriesDescriptor
from linkbound.domain.sizing import SizeClusterRequest
from linkbound.domain.tp_projection import TpProjectionRequest
from linkbound.domain.workload import DecodeWorkload, PrefillWorkload

LINK = Link(line_rate_bits_per_second=10**9)
PREFILL = PrefillWorkload(model="m", tensor_parallel_size=2, prompt_tokens=1)
DECODE = DecodeWorkload(model="m", tensor_parallel_size=2)
TABLE = CollectiveTable(
    kind=CollectiveKind.ALL_REDUCE,
    rank_count=2,
    points=(CollectivePoint(message_bytes=1, seconds=1.0), CollectivePoint(message_bytes=2, seconds=1.0)),
)


def broken(value: attrs.AttrsInstance) -> list[str]:
    return [violation.field for violation in violations_of(value)]


def test_some_rate_of_a_link_is_known() -> None:
    assert broken(LINK) == []
    assert broken(Link(measured_bits_per_second=1)) == []
    assert broken(Link(line_rate_bits_per_second=2, measured_bits_per_second=2)) == []
    assert broken(Link(roce_mtu_bytes=1024)) == ["line_rate_bits_per_second"]
    assert broken(Link(line_rate_bits_per_second=0, measured_bits_per_second=5)) == ["line_rate_bits_per_second"]


@pytest.mark.parametrize("transport", [LinkTransport.UNSPECIFIED, *LinkTransport])
def test_nothing_is_measured_above_the_line_rate(transport: LinkTransport) -> None:
    if transport is LinkTransport.UNKNOWN:
        return
    link = Link(line_rate_bits_per_second=10**11, measured_bits_per_second=109 * 10**9, transport=transport)
    (violation,) = violations_of(link)
    assert violation.field == "measured_bits_per_second"
    assert violation.description.startswith("109 Gb/s is above the line rate, 100 Gb/s: ")
    assert broken(Link(measured_bits_per_second=109 * 10**9, transport=transport)) == []


@pytest.mark.parametrize(("function_count", "raw_bits_per_second"), [(1, 126_030_769_230), (2, 252_061_538_461)])
@pytest.mark.parametrize("line_rate_bits_per_second", [None, 400 * 10**9])
def test_nothing_is_measured_above_what_its_pcie_functions_carry(
    function_count: int, raw_bits_per_second: int, line_rate_bits_per_second: int | None
) -> None:
    link = Link(
        line_rate_bits_per_second=line_rate_bits_per_second,
        pcie_function_count=function_count,
        measured_bits_per_second=raw_bits_per_second,
    )
    assert broken(link) == []
    (violation,) = violations_of(attrs.evolve(link, measured_bits_per_second=raw_bits_per_second + 1))
    assert violation.field == "measured_bits_per_second"
    assert f"above the raw rate of {function_count} PCIe function" in violation.description
    assert f", {raw_bits_per_second / 1e9:.2f} Gb/s: " in violation.description
    assert broken(attrs.evolve(link, measured_bits_per_second=300 * 10**9, pcie_function_count=None)) == []


@pytest.mark.parametrize(
    ("bits_per_second", "words"),
    [
        (1, "1 b/s"),
        (999, "999 b/s"),
        (9_440_000_000, "9.44 Gb/s"),
        (3_600_000_000_000, "3.6 Tb/s"),
        (200_000_000_001, "200.000000001 Gb/s"),
        (10**15 - 1, "999.999999999999 Tb/s"),
        (10**15, "1000 Tb/s"),
        (10**15 + 1, "1000.000000000001 Tb/s"),
        (10**18, "1000000000000000000 b/s"),
        (0, "0 b/s"),
        (-(10**9), "-1 Gb/s"),
    ],
)
def test_a_rate_in_words_is_exact(bits_per_second: int, words: str) -> None:
    assert rate_in_words(bits_per_second) == words


def test_a_rate_out_of_range_is_told_with_its_unit() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        SizeClusterRequest(node_count=8, rate_bits_per_second=3_600_000_000_000)
    assert caught.value.field_violations[0].description == "3.6 Tb/s is not a rate from 1 Gb/s to 1 Tb/s"
    (violation,) = violations_of(Link(line_rate_bits_per_second=2 * 10**15))
    assert violation.description == "2000 Tb/s is not a rate from 1 b/s to 1000 Tb/s"
    (violation,) = violations_of(Link(line_rate_bits_per_second=1.5))  # type: ignore[arg-type]  # what rules are for
    assert violation.description == "1.5 is not a whole number from 1 to 1000000000000000"


def test_a_byte_has_eight_bits() -> None:
    link = ResolvedLink(
        link=LINK, effective_bits_per_second=109_000_000_000, rate_source=RateSource.GIVEN, roce_mtu_bytes=1024
    )
    assert link.effective_bytes_per_second == 13_625_000_000


def test_a_model_is_named_or_its_config_brought() -> None:
    assert broken(PREFILL) == broken(attrs.evolve(PREFILL, model="", model_config_json="{}")) == []
    # Told beside whatever else is wrong.
    assert broken(attrs.evolve(PREFILL, model="", prompt_tokens=0)) == ["model", "prompt_tokens"]
    assert broken(attrs.evolve(DECODE, model_config_json="{}")) == ["model_config_json"]


@pytest.mark.parametrize(
    ("ranks_per_node", "allowed", "nodes"), [(1, 4, "4 nodes"), (2, 2, "2 nodes"), (4, 1, "1 node")]
)
def test_no_more_links_of_single_nodes_than_nodes(ranks_per_node: int, allowed: int, nodes: str) -> None:
    cut: dict[str, Any] = {"pipeline_parallel_size": 2, "ranks_per_node": ranks_per_node}
    questions: list[PrefillRequest | DecodeRequest] = [
        PrefillRequest(workload=attrs.evolve(PREFILL, **cut), link=LINK, inner_link=LINK),
        DecodeRequest(workload=attrs.evolve(DECODE, **cut), link=LINK, inner_link=LINK),
    ]
    for question in questions:
        assert broken(attrs.evolve(question, rank_links=(LINK,) * allowed)) == []
        with pytest.raises(InvalidArgumentError) as caught:
            attrs.evolve(question, rank_links=(LINK,) * (allowed + 1))
        (violation,) = caught.value.field_violations
        assert violation.field == "rank_links"
        assert f"{allowed + 1} links" in violation.description
        assert nodes in violation.description


QUESTIONS_OF_NODES: list[tuple[type[Any], dict[str, Any]]] = [
    (LayoutComparisonRequest, {}),
    (LayoutRecommendationRequest, {"reference_link": LINK}),
]


@pytest.mark.parametrize(("kind", "rest"), QUESTIONS_OF_NODES)
@pytest.mark.parametrize(
    ("workload", "asked", "fields"),
    [
        ({"model": ""}, {}, ["workload.model"]),
        ({"node_count": 0, "prompt_tokens": 0}, {}, ["workload.node_count", "workload.prompt_tokens"]),
        ({"node_count": 4096, "ranks_per_node": 17}, {"inner_link": LINK}, ["workload.node_count"]),
        ({"prompt_tokens": 10**9, "request_count": 101}, {}, ["workload.prompt_tokens"]),
        ({"ranks_per_node": 2}, {"inner_link": LINK, "calibration": "c"}, []),
        ({"ranks_per_node": 2}, {"calibration": "c", "collective_table": TABLE}, ["inner_link", "collective_table"]),
    ],
)
def test_a_question_about_nodes_names_what_is_broken(
    kind: type[Any], rest: dict[str, Any], workload: dict[str, Any], asked: dict[str, Any], fields: list[str]
) -> None:
    given = ClusterWorkload(**{"model": "m", "node_count": 2, "prompt_tokens": 1, **workload})
    if not fields:
        assert broken(kind(workload=given, link=LINK, **rest, **asked)) == []
        return
    with pytest.raises(InvalidArgumentError) as caught:
        kind(workload=given, link=LINK, **rest, **asked)
    assert [violation.field for violation in caught.value.field_violations] == fields


def test_tokens_of_all_requests_are_bounded() -> None:
    assert broken(attrs.evolve(PREFILL, prompt_tokens=10**9, request_count=101)) == ["prompt_tokens"]
    assert broken(attrs.evolve(DECODE, context_tokens=10**9, request_count=100)) == []
    assert broken(attrs.evolve(DECODE, context_tokens=10**9, request_count=101)) == ["context_tokens"]
    with pytest.raises(InvalidArgumentError, match=r"context_tokens: 1000000000 times 101 requests"):
        MemoryFitRequest(
            model="m",
            layout=ParallelLayout(tensor_parallel_size=1),
            hardware="h",
            context_tokens=10**9,
            request_count=101,
        )


@pytest.mark.parametrize(
    ("prefill", "decode", "fields"),
    [(None, None, ["prefill"]), (PREFILL, DECODE, ["decode"]), (PREFILL, None, []), (None, DECODE, [])],
)
def test_links_are_compared_for_one_workload(
    prefill: PrefillWorkload | None, decode: DecodeWorkload | None, fields: list[str]
) -> None:
    found: list[str] = []
    try:
        request = LinkComparisonRequest(prefill=prefill, decode=decode, old_link=LINK, new_link=LINK)
    except InvalidArgumentError as error:
        found = [violation.field for violation in error.field_violations]
    else:
        assert request.workload is (prefill or decode)
    assert found == fields


def test_an_emulation_goes_with_a_prefill_and_a_baseline() -> None:
    emulation = EmulatedLink(link=LINK, ttft_seconds=1.0)
    with pytest.raises(InvalidArgumentError) as caught:
        LinkComparisonRequest(decode=DECODE, old_link=LINK, new_link=LINK, emulation=emulation)
    assert [violation.field for violation in caught.value.field_violations] == ["emulation", "baseline_seconds"]


def test_each_size_has_a_violation_of_its_own() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        TpProjectionRequest(
            workload=PREFILL, baseline_ttft_seconds=1.0, link=LINK, to_link=LINK, tensor_parallel_sizes=(0, 2, 4097)
        )
    fields = [violation.field for violation in caught.value.field_violations]
    assert fields == ["tensor_parallel_sizes[0]", "tensor_parallel_sizes[2]"]


ESTIMATE = Estimate(lower=0.0, expected=1.0, upper=2.0)


@pytest.mark.parametrize(
    ("damaged", "field"),
    [
        (attrs.evolve(ESTIMATE, lower_basis=Basis.UNKNOWN), "lower_basis"),
        (attrs.evolve(ESTIMATE, expected_basis=Basis.UNKNOWN), "expected_basis"),
        (attrs.evolve(ESTIMATE, upper_basis=Basis.UNKNOWN), "upper_basis"),
        (attrs.evolve(ESTIMATE, binding_constraint=Constraint.UNKNOWN), "binding_constraint"),
        (attrs.evolve(ESTIMATE, effects_left_out=(Effect.RATE_RAMP, Effect.UNKNOWN)), "effects_left_out[1]"),
        (attrs.evolve(ESTIMATE, effects_left_out=(Effect.UNSPECIFIED,)), "effects_left_out[0]"),
    ],
)
def test_a_prediction_that_an_older_client_did_not_understand_is_not_frozen(damaged: Estimate, field: str) -> None:
    values = (PredictedValue(metric=Metric.TTFT_SECONDS, subject="P1", estimate=damaged),)
    with pytest.raises(InvalidArgumentError) as caught:
        CreateRunRequest(run_id="r", prediction=Prediction(estimator_version="1", values=values))
    assert [violation.field for violation in caught.value.field_violations] == [
        f"prediction.values[0].estimate.{field}"
    ]


@pytest.mark.parametrize("sent_bytes", [0, 2**63 - 1])
def test_sent_bytes_are_whole_numbers_of_64_bits(sent_bytes: int) -> None:
    model = TransferModel(fixed_seconds=0.0, sent_bytes_per_rank=sent_bytes, assumed_bytes_per_second=1.0)
    assert broken(model) == []
    assert broken(attrs.evolve(model, sent_bytes_per_rank=2**63)) == ["sent_bytes_per_rank"]
    half: Any = 1.5
    assert broken(attrs.evolve(model, sent_bytes_per_rank=half)) == ["sent_bytes_per_rank"]


def test_a_request_record_may_lack_its_clocks() -> None:
    record = RequestRecord(subject="P1", round_index=0, request_index=0, prompt_tokens=1, output_tokens=1)
    assert (record.send_ns, record.send_time_unix_ns, record.node, record.boot_id) == (None, None, "", "")
    assert broken(record) == []
    assert broken(attrs.evolve(record, send_ns=0, send_time_unix_ns=0, node="n" * 256, boot_id="b" * 64)) == []
    wrong = attrs.evolve(record, send_ns=-1, send_time_unix_ns=-1, node="n" * 257, boot_id="b" * 65)
    assert broken(wrong) == ["send_ns", "send_time_unix_ns", "node", "boot_id"]


def test_a_series_may_name_the_boot_of_its_clock() -> None:
    series = SeriesDescriptor(metric="port_xmit_data", node="n")
    assert broken(attrs.evolve(series, boot_id="b" * 64)) == []
    assert broken(attrs.evolve(series, boot_id="b" * 65)) == ["boot_id"]
