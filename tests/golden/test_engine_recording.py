"""A recorded engine, calibrated at 400 Mb/s and predicted at 200; nothing of 200 Mb/s is seen but the rate."""

import pytest

from estimator_service.core.engine_times.comparison import change_rows, speed_rows
from estimator_service.core.engine_times.estimate import estimate_schedule
from estimator_service.core.engine_times.fit import fit_engine
from linkbound.domain.schedule import ScheduleRequest
from tests.golden.engine_tables import measured_engine

RECORDING = measured_engine("engine_recording.toml")
ENGINE = fit_engine(RECORDING.seen, RECORDING.model)
ROWS = tuple(change_rows(ENGINE, RECORDING.unseen, RECORDING.model))
BITS_PER_ROW = 17 * 1024 * 2 * 8
"""17 all-reduces of 1,024 values of 2 bytes; of two ranks each sends as much as the payload."""


def errors(label: str) -> list[float]:
    return [abs(row.seconds_error_ratio) for row in ROWS if row.label == label]


@pytest.mark.parametrize(("label", "largest"), [("L2", 0.04), ("L3", 0.04), ("L1", 0.06)])
def test_aim_prompts_alone(label: str, largest: float) -> None:
    (error,) = errors(label)
    assert error < largest


def test_aim_four_first_tokens() -> None:
    assert len(errors("L4")) == 4
    assert max(errors("L4")) < 0.06


def test_each_expectation_is_what_was_measured_and_the_bytes_at_both_rates() -> None:
    """Prompt tokens up to each first token, and the rows that generate beside them: 1 + 4095, then 1 + 1 + 1 + 2048."""
    rows = {"L1": [1024], "L2": [4096], "L3": [8192], "L4": [2048, 2048 + 4096, 8195, 8195]}
    for row in ROWS:
        bits = rows[row.label][row.request] * BITS_PER_ROW
        expected = row.old_seconds + bits * (1 / 191e6 - 1 / 383e6)
        assert row.seconds.expected == pytest.approx(expected, rel=1e-3)


def test_the_four_at_400_are_explained_by_their_passes() -> None:
    """A arrived a moment earlier and had a pass to itself; its row then leaves the third one token short."""
    four = RECORDING.seen.points[3]
    found = estimate_schedule(
        ScheduleRequest(requests=four.requests, engine_table=RECORDING.seen), RECORDING.model, ENGINE
    )
    first_passes = [[(share.request, share.tokens) for share in one.scheduled] for one in found.passes[:3]]
    assert first_passes == [
        [(0, 2048)],
        [(0, 1), (1, 2048), (2, 2047)],
        [(0, 1), (1, 1), (2, 1), (3, 2048)],
    ]
    assert [one.first_token_pass for one in found.summary.requests] == [0, 1, 2, 2]
    # The fit alone, which the points of single prompts share, is within 2.5 % of each.
    ratios = [one.error_ratio for one in ENGINE.residuals if one.label == "L4" and one.metric.name == "TTFT"]
    assert len(ratios) == 4
    assert max(map(abs, ratios)) < 0.025


def test_output_speeds_hardly_depend_on_the_link() -> None:
    """Decode of one request scatters by a fifth between the two links, either way; that of four does not."""
    speeds = {row.label: row for row in speed_rows(ENGINE, RECORDING.unseen, RECORDING.model)}
    assert abs(speeds["L4"].error_ratio) < 0.03
    for row in speeds.values():
        assert 0.9 * row.old_tokens_per_second < row.expected_tokens_per_second < row.old_tokens_per_second
