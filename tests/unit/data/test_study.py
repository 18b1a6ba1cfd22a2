"""The shipped records: complete, with their sources, and nothing that no study prints."""

import pytest

from linkbound.data.study import StudyLink, load_study, setup_name
from linkbound.domain.metric import Metric

STUDY = load_study()
TTFTS = {"P1", "P2", "P3", "P5"}
BATCHES = {"P4", "P6"}


@pytest.mark.parametrize("link", STUDY.inference.links, ids=lambda link: link.key)
def test_every_test_has_what_is_printed_over_each_link(link: StudyLink) -> None:
    of_link = [m for m in STUDY.inference.measurements if m.link_key == link.key]
    tests_of = {metric: {m.test_id for m in of_link if m.metric is metric} for metric in Metric}
    assert tests_of[Metric.TTFT_SECONDS] == TTFTS
    assert tests_of[Metric.LAST_TTFT_SECONDS] == BATCHES
    assert tests_of[Metric.MEAN_TTFT_SECONDS] == BATCHES
    assert tests_of[Metric.DECODE_TOKENS_PER_SECOND] == TTFTS | BATCHES
    assert len(of_link) == 14


def test_only_the_table_of_ttfts_prints_ranges() -> None:
    for measurement in STUDY.inference.measurements:
        has_range = measurement.metric in (Metric.TTFT_SECONDS, Metric.LAST_TTFT_SECONDS)
        assert (measurement.value.minimum is not None) is has_range
        assert (measurement.value.maximum is not None) is has_range
        assert measurement.value.round_count == 3
        assert measurement.section in ("8.4", "8.5")


def test_a_measured_value_is_found_by_link_test_and_metric() -> None:
    value = STUDY.inference.measured("109g", "P6", Metric.LAST_TTFT_SECONDS)
    assert value is not None
    assert (value.mean, value.minimum, value.maximum) == (54.26, 54.08, 54.6)
    assert STUDY.inference.measured("109g", "P6", Metric.TTFT_SECONDS) is None


def test_the_emulated_link_is_one_function_that_was_measured() -> None:
    link = STUDY.inference.link("109g").link
    assert link.pcie_function_count == 1
    assert link.measured_bits_per_second == 109 * 10**9
    assert STUDY.inference.link("200g").link.measured_bits_per_second is None


def test_gradients_follow_from_the_parameters() -> None:
    sizes = {kind.id: kind.gradient_bytes for kind in STUDY.multi_node.fine_tunings}
    assert sizes == {"LoRA": 5_046_272, "full": 15_231_233_024}
    assert {kind.id: kind.compute_step_seconds for kind in STUDY.multi_node.fine_tunings} == {
        "LoRA": 0.45,
        "full": 2.289,
    }


def test_every_prediction_takes_its_rate_from_a_row_of_the_same_link() -> None:
    for kind in STUDY.multi_node.fine_tunings:
        assert [row.node_count for row in kind.rows] == [1, 2, 2, 4, 4]
        for row in kind.rows[1:]:
            source = STUDY.multi_node.bandwidth(row.bandwidth_of)
            assert source.link == row.link
            # RJ45 was measured with four nodes only.
            assert source.node_count == (4 if row.link == "RJ45" else row.node_count)


def test_runs_and_sources() -> None:
    assert STUDY.run_ids == ("study-200g", "study-109g", "study-nccl", "study-training")
    assert "October 2026" in STUDY.inference.source
    assert "part 2" in STUDY.multi_node.source


@pytest.mark.parametrize(
    ("arguments", "name"),
    [(("full", 4, "QSFP"), "full, 4 nodes, QSFP"), (("nanochat", 1, ""), "nanochat, 1 node")],
)
def test_setup_name(arguments: tuple[str, int, str], name: str) -> None:
    assert setup_name(*arguments) == name
