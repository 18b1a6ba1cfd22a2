"""Decode answers: the floor of a pass, what sets it, and what follows from it."""

import attrs
import pytest

from estimator_service.core import assumptions
from estimator_service.core.decode import estimate_decode
from linkbound.domain.calibration import Calibration, CollectivePoint, CollectiveTable
from linkbound.domain.catalog import Hardware, Model
from linkbound.domain.collective import CollectiveKind
from linkbound.domain.decode import DecodeEstimate, DecodeRequest
from linkbound.domain.errors import InvalidArgumentError
from linkbound.domain.estimate import Basis, Constraint, Effect
from linkbound.domain.link import Link
from linkbound.domain.workload import DecodeWorkload
from tests.unit.estimator.models import small_model

# 1,000 active parameters of one byte over two ranks: 500 bytes.
HARDWARE = Hardware(
    hardware_id="board", display_name="Board", memory_bytes=10**9, memory_bandwidth_bytes_per_second=1000
)
FAST = Link(line_rate_bits_per_second=8 * 10**6)
SLOW = Link(line_rate_bits_per_second=8000)


def decode(
    link: Link = FAST,
    to_link: Link | None = None,
    hardware: Hardware | None = HARDWARE,
    size: int = 2,
    requests: int = 1,
    drafts: int = 0,
    accepted: float | None = None,
) -> DecodeEstimate:
    workload = DecodeWorkload(
        model="small",
        tensor_parallel_size=size,
        request_count=requests,
        draft_token_count=drafts,
        acceptance_length_tokens=accepted,
    )
    return estimate_decode(DecodeRequest(workload=workload, link=link, to_link=to_link), small_model(), hardware)


def test_rows_and_bytes_of_a_pass() -> None:
    answer = decode(requests=2, drafts=3)
    assert answer.rows_per_pass == 8
    assert answer.message_bytes_per_all_reduce == answer.sent_bytes_per_all_reduce == 8 * 20
    assert answer.logits_gather_bytes_per_rank == 8 * 1024
    assert answer.sent_bytes_per_pass == 8 * (60 + 1024)
    assert answer.send_seconds_per_all_reduce == pytest.approx(160 / 10**6)


def test_memory_sets_the_floor() -> None:
    answer = decode()
    assert answer.active_weight_bytes_per_rank == 500
    assert answer.pass_seconds.lower == 0.5
    assert answer.pass_seconds.upper is None
    assert answer.pass_seconds.lower_basis is Basis.FORMULA
    assert answer.pass_seconds.binding_constraint is Constraint.MEMORY_BANDWIDTH
    assert Effect.WEIGHT_READ not in answer.pass_seconds.effects_left_out
    assert Effect.KV_CACHE_READ in answer.pass_seconds.effects_left_out
    assert answer.traffic_bits_per_second.lower == 0
    assert answer.traffic_bits_per_second.upper == pytest.approx((60 + 1024) * 8 / 0.5)


def test_a_slow_network_sets_the_floor() -> None:
    answer = decode(link=SLOW)
    assert answer.pass_seconds.lower == pytest.approx(1.084)
    assert answer.pass_seconds.binding_constraint is Constraint.NETWORK_BANDWIDTH
    assert answer.traffic_bits_per_second.upper == pytest.approx(8000)


def test_without_hardware_the_network_is_the_floor() -> None:
    answer = decode(hardware=None)
    assert answer.active_weight_bytes_per_rank is None
    assert answer.pass_seconds.lower == pytest.approx(1084 / 10**6)
    assert Effect.WEIGHT_READ in answer.pass_seconds.effects_left_out


@pytest.mark.parametrize(
    "model",
    [
        attrs.evolve(small_model(), active_parameters=None),
        attrs.evolve(small_model(), weight_bits_per_parameter=None),
    ],
    ids=["no active parameters", "no bits per weight"],
)
def test_a_model_that_does_not_state_its_weights_has_no_memory_floor(model: Model) -> None:
    request = DecodeRequest(workload=DecodeWorkload(model="small", tensor_parallel_size=2), link=FAST)
    answer = estimate_decode(request, model, HARDWARE)
    assert answer.active_weight_bytes_per_rank is None
    assert answer.pass_seconds.binding_constraint is Constraint.NETWORK_BANDWIDTH
    assert Effect.WEIGHT_READ in answer.pass_seconds.effects_left_out


def test_a_measured_rate_shows_where_it_sets_the_floor() -> None:
    measured = Link(line_rate_bits_per_second=10**9, measured_bits_per_second=8000)
    assert decode(link=measured).pass_seconds.lower_basis is Basis.MEASURED
    assert decode(link=attrs.evolve(measured, measured_bits_per_second=10**9)).pass_seconds.lower_basis is Basis.FORMULA


def test_a_slower_link_adds_at_most_its_bytes() -> None:
    extra = decode(to_link=SLOW).extra_pass_seconds
    assert extra is not None
    assert extra.lower == 0
    assert extra.upper == pytest.approx(1.084 - 0.001084)
    assert decode().extra_pass_seconds is None


def test_output_speed_without_drafts_is_one_token_a_pass() -> None:
    speed = decode().output_tokens_per_second
    assert speed is not None
    assert (speed.lower, speed.upper) == (0, 2)


def test_output_speed_with_drafts_needs_the_acceptance_length() -> None:
    assert decode(drafts=3).output_tokens_per_second is None
    speed = decode(drafts=3, accepted=2.5).output_tokens_per_second
    assert speed is not None
    assert speed.upper == pytest.approx(5)


def test_nothing_bounds_the_output_of_one_rank_without_a_memory_rate() -> None:
    answer = decode(size=1, hardware=None)
    assert answer.pass_seconds.lower == 0
    assert answer.pass_seconds.binding_constraint is Constraint.UNSPECIFIED
    assert answer.output_tokens_per_second is not None
    assert answer.output_tokens_per_second.upper is None
    assert answer.traffic_bits_per_second.upper == 0


def test_drafts_are_assumed_to_stay_whole() -> None:
    assert any("Draft layers" in sentence for sentence in decode(drafts=1).assumptions)
    assert not any("Draft layers" in sentence for sentence in decode().assumptions)


def test_a_size_that_does_not_fit_is_refused() -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        decode(size=3)
    assert [violation.field for violation in raised.value.field_violations] == ["workload.tensor_parallel_size"]


def test_the_time_to_read_stands_beside_that_of_transfers() -> None:
    answer = decode()
    assert answer.memory_seconds is not None
    assert (answer.memory_seconds.lower, answer.memory_seconds.upper) == (0.5, None)
    assert answer.memory_seconds.binding_constraint is Constraint.MEMORY_BANDWIDTH
    assert Effect.KV_CACHE_READ in answer.memory_seconds.effects_left_out
    assert decode(hardware=None).memory_seconds is None
    assert decode(hardware=None).extra_pass_fraction is None


def test_a_slower_link_costs_a_pass_at_most_its_bytes_over_the_floor() -> None:
    answer = decode(to_link=SLOW)
    extra, fraction = answer.extra_pass_seconds, answer.extra_pass_fraction
    assert extra is not None
    assert extra.upper is not None
    assert fraction is not None
    assert (fraction.lower, fraction.expected) == (0, None)
    # Half a second of reading is the floor over the fast link.
    assert fraction.upper == pytest.approx(extra.upper / 0.5)
    assert Effect.COMPUTE_TIME in fraction.effects_left_out
    assert Effect.COMPUTE_OVERLAP in fraction.effects_left_out


def test_no_faster_link_takes_more_than_the_whole_pass() -> None:
    fraction = decode(link=SLOW, to_link=FAST).extra_pass_fraction
    assert fraction is not None
    assert fraction.upper == 0
    assert -1 < fraction.lower < -0.99
    assert decode(link=FAST, to_link=FAST).extra_pass_fraction == attrs.evolve(
        fraction, lower=0, upper=0, lower_basis=Basis.FORMULA, upper_basis=Basis.FORMULA
    )
    alone = decode(to_link=SLOW, size=1, hardware=None).extra_pass_fraction
    assert alone is not None
    assert (alone.lower, alone.upper) == (0, 0)


def test_a_calibration_expects_the_fraction_of_reads_and_transfers_in_turn() -> None:
    table = CollectiveTable(
        kind=CollectiveKind.ALL_REDUCE,
        rank_count=2,
        points=(CollectivePoint(message_bytes=1, seconds=0.01), CollectivePoint(message_bytes=10**6, seconds=2)),
    )
    calibration = Calibration(
        table=table, fixed_seconds=0.01, bus_bandwidth_bytes_per_second=5e5, interval_fraction=0.1
    )
    request = DecodeRequest(
        workload=DecodeWorkload(model="small", tensor_parallel_size=2),
        link=FAST,
        to_link=Link(line_rate_bits_per_second=10**6),
    )
    answer = estimate_decode(request, small_model(), HARDWARE, calibration)
    extra, fraction = answer.extra_pass_seconds, answer.extra_pass_fraction
    assert extra is not None
    assert fraction is not None
    assert extra.expected is not None
    assert answer.network_seconds.expected is not None
    assert fraction.expected == pytest.approx(extra.expected / (0.5 + answer.network_seconds.expected))
    assert fraction.expected_basis is Basis.MIXED
    assert fraction.upper is not None
    assert extra.upper is not None
    # The floor of a calibrated pass has what its collectives take at least.
    assert fraction.upper == pytest.approx(extra.upper / answer.pass_seconds.lower)
    assert assumptions.READS_AND_TRANSFERS in answer.assumptions
    assert assumptions.READS_AND_TRANSFERS not in decode().assumptions
