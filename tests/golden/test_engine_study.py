"""The first study, predicted from its 200 Gb/s TTFTs, ib_write_bw at 109 and the bursts of its section 8 alone.

The expected figures below are worked out by hand from the study's numbers: bytes of its section 3.3, passes of vLLM's
own scheduler, and rates. They share no function with the estimator.
"""

from fractions import Fraction

import pytest
from attrs import evolve

from estimator_service.core.engine_times.comparison import ChangeRow, change_rows
from estimator_service.core.engine_times.fit import fit_engine
from linkbound.domain.engine import EngineCalibration, EngineMetric, EngineTermKind
from tests.golden.engine_accuracy import STUDY_BOUNDS_SECONDS
from tests.golden.engine_tables import MeasuredEngine, measured_engine

STUDY = measured_engine("engine_study.toml")
ENGINE = fit_engine(STUDY.seen, STUDY.model)
ROWS = tuple(change_rows(ENGINE, STUDY.unseen, STUDY.model))

TTFT, LAST, MEAN = EngineMetric.TTFT, EngineMetric.LAST_TTFT, EngineMetric.MEAN_TTFT

# Section 3.3: 157 all-reduces of 6,144 values of 2 bytes, of which a ring of 8 sends 1.75 times as much.
BITS_PER_ROW = Fraction(157 * 6144 * 2 * 8 * 7, 4)
HEADERS = Fraction(106, 100)
LINE_200 = Fraction(200 * 10**9)
FULL_200, FULL_109 = LINE_200 / HEADERS, Fraction(109 * 10**9)
BURSTS_200, BURSTS_109 = Fraction(180 * 10**9) / HEADERS, Fraction(109 * 10**9) / HEADERS
BURSTS_200_OF_1K = Fraction(100 * 10**9) / HEADERS


def row(label: str, metric: EngineMetric) -> ChangeRow:
    (found,) = [one for one in ROWS if (one.label, one.metric) == (label, metric)]
    return found


def seconds(rows: int, bits_per_second: Fraction) -> Fraction:
    return rows * BITS_PER_ROW / bits_per_second


@pytest.mark.parametrize(("label", "tokens"), [("P2", 8192), ("P3", 32768), ("P5", 65536)])
def test_a_long_prompt_alone_runs_in_full_passes_whose_bursts_were_seen_on_both_links(label: str, tokens: int) -> None:
    found = row(label, TTFT)
    assert found.extra.lower == pytest.approx(float(seconds(tokens, FULL_109) - seconds(tokens, BURSTS_200)), rel=2e-3)
    assert found.extra.upper == pytest.approx(float(seconds(tokens, BURSTS_109) - seconds(tokens, FULL_200)), rel=2e-3)
    two_routes = (
        seconds(tokens, FULL_109) - seconds(tokens, FULL_200),
        seconds(tokens, BURSTS_109) - seconds(tokens, BURSTS_200),
    )
    assert found.extra.expected == pytest.approx(float(sum(two_routes) / 2), rel=2e-3)
    # Full rates and bursts say the same, though neither is made of the other.
    assert float(two_routes[0]) == pytest.approx(float(two_routes[1]), rel=0.011)


@pytest.mark.parametrize(("label", "tokens"), [("P2", 8192), ("P3", 32768), ("P5", 65536)])
def test_aim_long_prompts_alone(label: str, tokens: int) -> None:
    found = row(label, TTFT)
    assert abs(found.extra_error_ratio) < 0.05
    assert found.half_width_ratio < 0.15
    assert found.is_inside


def test_a_short_prompt_lies_between_a_cap_below_both_links_and_a_fixed_time() -> None:
    found = row("P1", TTFT)
    # 1K bursts stay below what the emulated link carries: nothing is felt. Or what they lack is a fixed time.
    assert BURSTS_200_OF_1K < FULL_109
    fixed = seconds(1024, FULL_109) - seconds(1024, FULL_200)
    assert found.extra.lower == 0
    assert found.extra.expected == pytest.approx(float(fixed / 2), rel=2e-3)
    # Nobody saw bursts of 1K over the emulated link: at most all that bytes over both rates allow.
    most = seconds(1024, FULL_109) - seconds(1024, LINE_200)
    assert found.extra.upper == pytest.approx(float(most), rel=2e-3)
    assert float(most) < 0.12
    assert found.is_inside
    assert found.extra.contains(0.01)


@pytest.mark.parametrize(("label", "tokens"), [("P2", 8192), ("P3", 32768), ("P5", 65536)])
def test_a_link_that_nobody_watched_may_have_a_rate_of_payloads_or_of_counters(label: str, tokens: int) -> None:
    """109 Gb/s as they are, or over the header ratio of the link that was watched."""
    unwatched = evolve(STUDY.unseen, bursts=None)
    (found,) = [one for one in change_rows(ENGINE, unwatched, STUDY.model) if one.label == label]
    least = seconds(tokens, FULL_109) - seconds(tokens, BURSTS_200)
    most = seconds(tokens, FULL_109 / HEADERS) - seconds(tokens, FULL_200)
    assert found.extra.lower == pytest.approx(float(least), rel=2e-3)
    assert found.extra.upper == pytest.approx(float(most), rel=2e-3)
    assert found.extra.expected == pytest.approx(float(least + most) / 2, rel=2e-3)
    assert (found.extra.upper or 0) > found.bound_seconds
    assert found.is_inside


def test_four_prompts_of_8k_add_up_from_the_passes_of_the_scheduler() -> None:
    """4 x [2048, 2048], 4 x [5, 5, 2048, 2038], [5, 5, 5, 40]: the last one is too small for any burst."""
    full, rest = 8 * 4096, 55
    found = row("P4", LAST)
    wire = seconds(rest, FULL_109) - seconds(rest, FULL_200)
    assert found.extra.lower == pytest.approx(float(seconds(full, FULL_109) - seconds(full, BURSTS_200)), rel=2e-3)
    assert found.extra.upper == pytest.approx(
        float(seconds(full, BURSTS_109) - seconds(full, FULL_200) + wire), rel=2e-3
    )


def test_aim_last_of_four_prompts_of_8k() -> None:
    found = row("P4", LAST)
    assert abs(found.extra_error_ratio) < 0.08
    assert found.half_width_ratio < 0.15
    assert found.is_inside


def test_the_mean_of_four_averages_their_passes() -> None:
    """First tokens come out of passes 4, 4, 8 and 9."""
    rows_until = (16384, 16384, 32768, 32768)
    low = sum(seconds(rows, FULL_109) - seconds(rows, BURSTS_200) for rows in rows_until) / 4
    high = sum(seconds(rows, BURSTS_109) - seconds(rows, FULL_200) for rows in rows_until) / 4
    found = row("P4", MEAN)
    assert found.extra.lower == pytest.approx(float(low), rel=2e-3)
    assert found.extra.upper == pytest.approx(float(high), rel=2e-3)


# Expected change, whether it is inside as sent and where the four may be parted, error in percent.
MISSES = [
    ("P6", LAST, "6.83", (False, True), "-19"),
    ("P4", MEAN, "2.56", (False, False), "-31"),
    ("P6", MEAN, "5.12", (False, True), "-16"),
]


@pytest.mark.parametrize(("label", "metric", "expected", "inside", "percent"), MISSES)
def test_what_the_schedule_and_the_sizes_do_not_explain_is_a_miss(
    label: str, metric: EngineMetric, expected: str, inside: tuple[bool, bool], percent: str
) -> None:
    found = row(label, metric)
    assert f"{found.extra.expected:.2f}" == expected
    assert (found.is_inside, found.is_inside_if_parted) == inside
    assert f"{100 * found.extra_error_ratio:.0f}" == percent


def test_the_bound_beside_each_row_is_the_studys_own() -> None:
    """Section 8.4; ours counts the rows that generate beside the prompts, and logits."""
    for found in ROWS:
        if found.metric is not MEAN:
            assert found.bound_seconds == pytest.approx(STUDY_BOUNDS_SECONDS[found.label], abs=0.012)


def test_ttfts_over_the_emulated_link() -> None:
    errors = {(found.label, found.metric): found.seconds_error_ratio for found in ROWS}
    assert max(map(abs, errors.values())) < 0.06
    assert all(abs(errors[label, TTFT]) < 0.005 for label in ("P2", "P3", "P5"))


def test_five_terms_leave_less_than_two_percent_at_every_ttft() -> None:
    assert [term.kind for term in ENGINE.terms] == [
        EngineTermKind.ROW,
        EngineTermKind.ATTENTION,
        EngineTermKind.PASS,
        EngineTermKind.CHUNK,
        EngineTermKind.BATCH,
    ]
    assert max(abs(one.error_ratio) for one in ENGINE.residuals) < 0.02
    assert all(one.left_out_error_ratio is not None for one in ENGINE.residuals)


def test_no_ttft_depends_on_how_many_drafts_were_accepted() -> None:
    def calibrated(study: MeasuredEngine, accepted: float) -> EngineCalibration:
        scheduler = evolve(study.seen.scheduler, accepted_draft_tokens_per_pass=accepted)
        return fit_engine(evolve(study.seen, scheduler=scheduler), study.model)

    none, all_of_them = calibrated(STUDY, 0.0), calibrated(STUDY, 4.0)
    assert [one.error_ratio for one in none.residuals] == pytest.approx(
        [one.error_ratio for one in all_of_them.residuals], abs=2e-3
    )
