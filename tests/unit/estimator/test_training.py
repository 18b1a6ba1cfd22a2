"""What a step of data-parallel training exchanges: sharding, models, adapters, calibrations."""

import json
from typing import Any

import pytest
from attrs import evolve

from estimator_service.core import assumptions
from estimator_service.core.collective_time import fit
from estimator_service.core.training import BUCKET_BYTES, estimate_training_step
from estimator_service.service import default_estimator
from linkbound.domain.calibration import Calibration, CollectivePoint, CollectiveTable
from linkbound.domain.catalog import ImportModelRequest, Model
from linkbound.domain.collective import CollectiveKind
from linkbound.domain.errors import InvalidArgumentError
from linkbound.domain.estimate import Basis
from linkbound.domain.link import Link
from linkbound.domain.training import TrainingSharding, TrainingStepEstimate, TrainingStepRequest
from tests.unit.architecture.configs import SMALL
from tests.unit.estimator.models import small_model

LINK = Link(line_rate_bits_per_second=80)
FAST = Link(line_rate_bits_per_second=80_000_000)
MODEL = evolve(small_model(), total_parameters=1000, mtp_parameters=500)


def step(model: Model | None = None, calibration: Calibration | None = None, **changes: Any) -> TrainingStepEstimate:
    asked = {"gradient_bytes": 1200} if model is None else {"model": model.model_id}
    request = TrainingStepRequest(**{**asked, "rank_count": 4, "link": LINK, "compute_step_seconds": 50, **changes})
    return estimate_training_step(request, model, calibration)


@pytest.mark.parametrize(
    ("sharding", "sent"),
    # Of 1,200 bytes on four ranks: three quarters per round, in two rounds or in three.
    [(TrainingSharding.UNSPECIFIED, 1800), (TrainingSharding.OPTIMIZER, 1800), (TrainingSharding.FULL, 2700)],
)
def test_sharding_parameters_adds_a_round(sharding: TrainingSharding, sent: int) -> None:
    answer = step(sharding=sharding)
    assert answer.sent_bytes_per_rank == sent
    assert answer.sync_seconds.lower == answer.sync_seconds.upper == sent / 10
    assert (answer.step_seconds.lower, answer.step_seconds.upper) == (sent / 10, sent / 10 + 50)
    assert answer.gradient_bytes == 1200


def test_a_model_trains_all_its_parameters_but_mtp_layers() -> None:
    answer = step(MODEL)
    assert answer.gradient_bytes == 2000
    assert answer.sent_bytes_per_rank == 3000
    assert assumptions.TRAINED_MODEL in answer.assumptions
    assert step(MODEL, value_bytes=4).gradient_bytes == 4000


def test_a_config_stands_in_place_of_a_model_and_is_said_once() -> None:
    request: dict[str, Any] = {
        "rank_count": 4,
        "link": LINK,
        "compute_step_seconds": 50,
        "model_config_json": json.dumps(SMALL),
    }
    estimator = default_estimator()
    answer = estimator.estimate_training_step(TrainingStepRequest(**request))
    total = estimator.import_model(ImportModelRequest(config_json=json.dumps(SMALL), validate_only=True))
    assert total.total_parameters is not None
    assert answer.gradient_bytes == 2 * total.total_parameters
    besides: list[tuple[dict[str, Any], str]] = [
        ({"model": "glm-5.3"}, "model_config_json"),
        ({"gradient_bytes": 1}, "gradient_bytes"),
    ]
    for beside, field in besides:
        with pytest.raises(InvalidArgumentError) as caught:
            TrainingStepRequest(**request, **beside)
        assert [violation.field for violation in caught.value.field_violations] == [field]
    assert estimator.estimate_training_step(TrainingStepRequest(**request, lora_parameters=5)).gradient_bytes == 10


def test_adapters_exchange_their_own_gradients_alone() -> None:
    answer = step(MODEL, lora_parameters=20)
    assert answer.gradient_bytes == 40
    assert answer.sent_bytes_per_rank == 60
    assert assumptions.TRAINED_ADAPTERS in answer.assumptions
    assert assumptions.TRAINED_MODEL not in answer.assumptions


def test_sharded_frozen_parameters_are_gathered_whole() -> None:
    answer = step(MODEL, lora_parameters=20, sharding=TrainingSharding.FULL)
    assert answer.gradient_bytes == 40
    # Three quarters of twice the 2,040 bytes of all parameters, and of the 40 bytes of gradients.
    assert answer.sent_bytes_per_rank == 3060 + 30
    assert assumptions.FROZEN_GATHERS in answer.assumptions


def test_a_model_of_unknown_size_is_refused() -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        step(small_model())
    assert [violation.field for violation in raised.value.field_violations] == ["model"]


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({"gradient_bytes": None}, ["gradient_bytes"]),
        ({"lora_parameters": 5}, ["lora_parameters"]),
        ({"gradient_bytes": 0, "value_bytes": 3}, ["gradient_bytes", "value_bytes"]),
        ({"lora_parameters": 0, "sharding": TrainingSharding.UNKNOWN}, ["lora_parameters", "sharding"]),
        ({"collective_table": "t", "gradient_bytes": 10**16}, ["gradient_bytes", "collective_table"]),
    ],
)
def test_a_question_says_once_what_is_trained(changes: dict[str, Any], fields: list[str]) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        step(**changes)
    assert [violation.field for violation in raised.value.field_violations] == fields


def test_bytes_beside_a_model_are_refused() -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        step(MODEL, gradient_bytes=5)
    assert [violation.field for violation in raised.value.field_violations] == ["gradient_bytes"]


def measured(rank_count: int, kind: CollectiveKind = CollectiveKind.ALL_REDUCE) -> Calibration:
    """Twice as long as the 10 MB/s of `FAST` take, and a millisecond for nothing."""
    points = tuple(
        CollectivePoint(message_bytes=size, seconds=1e-3 + size * 2 * 1.5 / 1e7)
        for size in (2**10, 2**14, 2**18, 2**22, 2**26)
    )
    return fit(CollectiveTable(kind=kind, rank_count=rank_count, points=points))


def test_a_table_beside_a_calibration_is_refused() -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        TrainingStepRequest(
            gradient_bytes=1,
            rank_count=2,
            link=LINK,
            compute_step_seconds=1,
            calibration="spark",
            collective_table=measured(2).table,
        )
    assert [violation.field for violation in raised.value.field_violations] == ["collective_table"]


def test_measured_collectives_give_what_to_expect() -> None:
    answer = step(calibration=measured(4), gradient_bytes=2**22, link=FAST)
    sync = answer.sync_seconds
    assert sync.expected is not None
    assert sync.expected == pytest.approx(1e-3 + 2**22 * 0.3e-6)
    assert sync.expected_basis is Basis.CALIBRATED
    assert sync.upper is not None
    assert 2**22 * 0.15e-6 <= sync.lower <= sync.expected <= sync.upper
    assert answer.step_seconds.lower == 50
    assert answer.step_seconds.upper == sync.upper + 50
    assert answer.step_seconds.expected is None
    assert assumptions.GRADIENT_BUCKETS in answer.assumptions


def test_gradients_go_in_buckets_one_after_another() -> None:
    one, ten = (
        step(calibration=measured(4), gradient_bytes=count * BUCKET_BYTES, link=FAST).sync_seconds for count in (1, 10)
    )
    assert one.expected is not None
    assert ten.expected == pytest.approx(10 * one.expected)
    assert ten.lower == pytest.approx(10 * one.lower)


@pytest.mark.parametrize(
    ("calibration", "sharding"),
    [
        (measured(8), TrainingSharding.UNSPECIFIED),
        (measured(4), TrainingSharding.FULL),
        (measured(4, CollectiveKind.ALL_GATHER), TrainingSharding.UNSPECIFIED),
        (measured(4, CollectiveKind.ALL_GATHER), TrainingSharding.OPTIMIZER),
    ],
)
def test_a_calibration_stands_for_no_other_collective_or_group(
    calibration: Calibration, sharding: TrainingSharding
) -> None:
    answer = step(calibration=calibration, sharding=sharding)
    without = step(sharding=sharding)
    assert answer.sync_seconds == without.sync_seconds
    kind = calibration.table.kind.name.lower().replace("_", "-")
    described = f"{kind} among {calibration.table.rank_count} ranks, 1 per node"
    assert assumptions.NOT_COVERED.format(described) in answer.assumptions
    assert assumptions.GRADIENT_BUCKETS not in answer.assumptions


def test_measured_collectives_never_beat_the_wire() -> None:
    slow = Link(line_rate_bits_per_second=8_000_000)
    answer = step(calibration=measured(4), gradient_bytes=2**22, link=slow)
    assert answer.sync_seconds.lower == 2**22 * 1.5e-6
    assert answer.sync_seconds.expected is not None
    assert answer.sync_seconds.expected >= answer.sync_seconds.lower
