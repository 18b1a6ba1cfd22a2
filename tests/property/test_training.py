"""Laws of a training step: for any sharding, model, adapters and link."""

from __future__ import annotations

from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from estimator_service.core.collective_time import fit
from estimator_service.core.training import estimate_training_step
from linkbound.domain.calibration import CollectivePoint, CollectiveTable
from linkbound.domain.catalog import Model
from linkbound.domain.collective import CollectiveKind
from linkbound.domain.link import Link
from linkbound.domain.training import TrainingSharding, TrainingStepEstimate, TrainingStepRequest
from tests.unit.estimator.models import small_model

PARAMETERS = st.integers(1, 10**12)
RANKS = st.integers(1, 1000)
LINKS = st.builds(Link, line_rate_bits_per_second=st.integers(10**6, 10**13))
SECONDS = st.floats(1e-3, 1e6)
VALUE_BYTES = st.sampled_from([1, 2, 4])
SHARDINGS = st.sampled_from([kind for kind in TrainingSharding if kind is not TrainingSharding.UNKNOWN])


def model_of(parameters: int) -> Model:
    return evolve(small_model(), total_parameters=parameters)


@st.composite
def requests(draw: st.DrawFn) -> TrainingStepRequest:
    return TrainingStepRequest(
        model="small",
        rank_count=draw(RANKS),
        link=draw(LINKS),
        compute_step_seconds=draw(SECONDS),
        lora_parameters=draw(st.none() | st.integers(1, 10**9)),
        sharding=draw(SHARDINGS),
        value_bytes=draw(VALUE_BYTES),
    )


def sent(request: TrainingStepRequest, parameters: int) -> int:
    return estimate_training_step(request, model_of(parameters)).sent_bytes_per_rank


@given(request=requests(), parameters=PARAMETERS)
def test_an_answer_is_ordered_and_bounded(request: TrainingStepRequest, parameters: int) -> None:
    answer = estimate_training_step(request, model_of(parameters))
    assert_ordered(answer)
    if request.rank_count == 1:
        assert answer.sent_bytes_per_rank == 0
        assert answer.step_seconds.upper == request.compute_step_seconds
    # No rank sends more than three rounds of everything.
    assert answer.sent_bytes_per_rank <= 3 * (parameters + (request.lora_parameters or 0)) * request.value_bytes


def assert_ordered(answer: TrainingStepEstimate) -> None:
    for interval in (answer.sync_seconds, answer.step_seconds, answer.scaling_efficiency_fraction):
        assert interval.upper is not None
        assert 0 <= interval.lower <= interval.upper
        assert interval.expected is None or interval.lower <= interval.expected <= interval.upper
    assert answer.scaling_efficiency_fraction.upper is not None
    assert answer.scaling_efficiency_fraction.upper <= 1


@given(request=requests(), parameters=PARAMETERS)
def test_sharding_all_is_three_rounds_where_ddp_has_two(request: TrainingStepRequest, parameters: int) -> None:
    whole = evolve(request, lora_parameters=None)
    ddp, optimizer, full = (
        sent(evolve(whole, sharding=kind), parameters)
        for kind in (TrainingSharding.UNSPECIFIED, TrainingSharding.OPTIMIZER, TrainingSharding.FULL)
    )
    assert abs(optimizer - ddp) <= 1
    assert abs(2 * full - 3 * ddp) <= 4


@given(request=requests(), parameters=PARAMETERS)
def test_adapters_send_what_their_parameters_alone_would(request: TrainingStepRequest, parameters: int) -> None:
    ddp = evolve(request, sharding=TrainingSharding.UNSPECIFIED)
    if ddp.lora_parameters is not None:
        assert sent(ddp, parameters) == sent(evolve(ddp, lora_parameters=None), ddp.lora_parameters)


@given(request=requests(), parameters=PARAMETERS)
def test_more_ranks_and_more_parameters_send_more(request: TrainingStepRequest, parameters: int) -> None:
    now = sent(request, parameters)
    assert sent(evolve(request, rank_count=request.rank_count + 1), parameters) >= now
    assert sent(request, parameters + 1) >= now


@given(
    request=requests(),
    parameters=st.integers(1, 10**10),
    ranks=st.integers(2, 64),
    times=st.lists(st.floats(1e-6, 10), min_size=2, max_size=8),
)
def test_measured_collectives_stay_within_the_laws(
    request: TrainingStepRequest, parameters: int, ranks: int, times: list[float]
) -> None:
    points = tuple(
        CollectivePoint(message_bytes=2 ** (10 + 3 * index), seconds=seconds) for index, seconds in enumerate(times)
    )
    calibration = fit(CollectiveTable(kind=CollectiveKind.ALL_REDUCE, rank_count=ranks, points=points))
    asked = evolve(request, rank_count=ranks, sharding=TrainingSharding.UNSPECIFIED)
    calibrated = estimate_training_step(asked, model_of(parameters), calibration)
    assert_ordered(calibrated)
    assert calibrated.sync_seconds.expected is not None
    plain = estimate_training_step(asked, model_of(parameters))
    assert calibrated.sent_bytes_per_rank == plain.sent_bytes_per_rank
    assert calibrated.sync_seconds.lower >= plain.sync_seconds.lower
