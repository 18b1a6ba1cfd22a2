"""Generation: what one pass puts on the network, and the floors under its time."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from estimator_service.core import assumptions
from estimator_service.core.collectives import sent_bytes
from estimator_service.core.elementwise import larger, quotient, smaller
from estimator_service.core.intervals import (
    at_least,
    between,
    combined_basis,
    link_basis,
    ordered_effects,
    upper_end,
)
from estimator_service.core.inventory import message_bytes_per_all_reduce
from estimator_service.core.layouts.calibrated import (
    CalibratedSeconds,
    Passes,
    calibrated_transfers,
    with_calibrated_change,
    with_calibration,
)
from estimator_service.core.layouts.cut import ModelCut, model_cut
from estimator_service.core.layouts.fabric import Fabric, fabric_seconds, resolve_fabric
from estimator_service.core.layouts.load import (
    FabricLoad,
    RowCounts,
    busiest_kind,
    decode_rows,
    fabric_load,
    load_violations,
    logits_bytes,
    traffic_rows,
)
from estimator_service.core.layouts.rows import StageKind
from estimator_service.core.links import send_seconds
from estimator_service.core.memory import memory_violations
from estimator_service.core.pass_reads import (
    NO_READS,
    MemoryReads,
    memory_reads,
    seconds_to_read,
    stated_mean_is_lower,
)
from estimator_service.core.transfers import extra_seconds
from estimator_service.core.version import ESTIMATOR_VERSION
from linkbound.domain.calibration import Calibration
from linkbound.domain.catalog import Hardware, Model
from linkbound.domain.collective import CollectiveKind
from linkbound.domain.decode import DecodeEstimate, DecodeRequest
from linkbound.domain.errors import InvalidArgumentError
from linkbound.domain.estimate import Basis, Constraint, Effect, Estimate
from linkbound.domain.link import BITS_PER_BYTE, ResolvedLink
from linkbound.domain.workload import DecodeWorkload


def rows_per_pass(workload: DecodeWorkload) -> int:
    """Token rows of one pass: n = R (1 + D) (`docs/formulas.md`, Decode)."""
    return workload.request_count * workload.rows_per_request


@frozen(kw_only=True)
class PassFloor:
    """The time that no pass goes below, what sets it, and where the number comes from."""

    seconds: float
    constraint: Constraint
    basis: Basis


def pass_floor(network: Estimate, memory_seconds: float, calibrated: CalibratedSeconds | None) -> PassFloor:
    """Floor of a pass: max(m, t), m the time to read memory, t that of the transfers (`docs/formulas.md`, Decode).

    With a calibration max(m + k, t), k the least time of the collectives: no pass reads its weights for what is to be
    summed next while it waits for a sum.
    """
    if calibrated is not None:
        in_turn = memory_seconds + calibrated.lower_seconds
        if in_turn > network.lower:
            waits = calibrated.lower_seconds > memory_seconds
            return PassFloor(
                seconds=in_turn,
                constraint=Constraint.NETWORK_LATENCY if waits else Constraint.MEMORY_BANDWIDTH,
                basis=Basis.CALIBRATED,
            )
    memory_bound = memory_seconds > network.lower
    return PassFloor(
        seconds=larger(memory_seconds, network.lower),
        constraint=Constraint.MEMORY_BANDWIDTH if memory_bound else network.binding_constraint,
        basis=Basis.FORMULA if memory_bound else network.lower_basis,
    )


@frozen(kw_only=True)
class DecodePass:
    """One pass through every stage: its rows, its bytes, what it reads, its transfers and its floor."""

    cut: ModelCut
    counts: RowCounts
    load: FabricLoad
    reads: MemoryReads
    read_seconds: float
    network: Estimate
    calibrated: CalibratedSeconds | None
    floor: PassFloor
    effects: tuple[Effect, ...]

    @property
    def seconds(self) -> Estimate:
        """Time of the pass: not below its floor."""
        return at_least(self.floor.seconds, self.floor.basis, constraint=self.floor.constraint, effects=self.effects)


def decode_pass(
    workload: DecodeWorkload,
    model: Model,
    hardware: Hardware | None,
    fabric: Fabric,
    calibration: Calibration | None = None,
) -> DecodePass:
    """One pass of `workload` over `fabric`; `hardware` None: no memory rate (`docs/formulas.md`, Decode)."""
    cut, counts = model_cut(model, workload.layout), decode_rows(workload)
    load = fabric_load(cut.kinds, counts)
    calibrated = _calibrated(cut.kinds, counts, calibration, fabric)
    network = with_calibration(fabric_seconds(load, fabric), calibrated)
    reads = NO_READS if hardware is None else memory_reads(workload, model)
    read_seconds = seconds_to_read(reads.path_bytes, hardware)
    return DecodePass(
        cut=cut,
        counts=counts,
        load=load,
        reads=reads,
        read_seconds=read_seconds,
        network=network,
        calibrated=calibrated,
        floor=pass_floor(network, read_seconds, calibrated),
        effects=_effects(network, reads),
    )


def estimate_decode(
    request: DecodeRequest, model: Model, hardware: Hardware | None, calibration: Calibration | None = None
) -> DecodeEstimate:
    """Bytes, floor and traffic of generation; `hardware` None: no memory rate (`docs/formulas.md`, Decode).

    Raises InvalidArgumentError where the model cannot be cut as the layout says, and where no answer could count what
    is sent or read.
    """
    workload, layout = request.workload, request.workload.layout
    fabric = resolve_fabric(request.link, request.rank_links, request.inner_link, layout)
    to_fabric = None
    if request.to_link is not None:
        to_fabric = resolve_fabric(request.to_link, request.rank_links, request.inner_link, layout)
    one = decode_pass(workload, model, hardware, fabric, calibration)
    violations = (
        *one.cut.violations_at("workload."),
        *load_violations(one.load, "workload.request_count"),
        *memory_violations(one.reads.rank_bytes, "workload.request_count"),
    )
    if violations:
        raise InvalidArgumentError(violations)

    extra = None
    if to_fabric is not None:
        extra = with_calibrated_change(
            extra_seconds(one.load.outer.sequential_bytes, fabric.kindest, to_fabric.kindest),
            one.calibrated,
            _calibrated(one.cut.kinds, one.counts, calibration, to_fabric),
        )
    message_bytes = message_bytes_per_all_reduce(model, one.counts.logits_rows)
    sent_per_all_reduce = sent_bytes(CollectiveKind.ALL_REDUCE, layout.tensor_parallel_size, message_bytes)
    sent = one.load.outer.busiest_bytes
    stage_floor_seconds = larger(
        seconds_to_read(one.reads.rank_bytes, hardware), send_seconds(sent, fabric.outer.effective_bits_per_second)
    )
    return DecodeEstimate(
        model=model.model_id,
        tensor_parallel_size=layout.tensor_parallel_size,
        request_count=workload.request_count,
        rows_per_pass=rows_per_pass(workload),
        all_reduce_count=one.cut.all_reduce_count,
        message_bytes_per_all_reduce=message_bytes,
        sent_bytes_per_all_reduce=round(sent_per_all_reduce),
        logits_gather_bytes_per_rank=round(logits_bytes(one.cut.kinds, one.counts.logits_rows)),
        sent_bytes_per_pass=round(sent),
        send_seconds_per_all_reduce=send_seconds(sent_per_all_reduce, fabric.outer.effective_bits_per_second),
        active_weight_bytes_per_rank=None if one.reads.weight_bytes is None else round(one.reads.weight_bytes),
        cache_bytes_read_per_rank=None if one.reads.cache_bytes is None else round(one.reads.cache_bytes),
        network_seconds=one.network,
        memory_seconds=_memory_seconds(one),
        pass_seconds=one.seconds,
        traffic_bits_per_second=_traffic(one, fabric.outer, stage_floor_seconds),
        extra_pass_seconds=extra,
        extra_pass_fraction=None if extra is None else pass_fraction(extra, one),
        output_tokens_per_second=_output(workload, one.floor, one.effects),
        link=fabric.outer,
        to_link=None if to_fabric is None else to_fabric.outer,
        layout=layout,
        inner_link=fabric.inner,
        traffic=traffic_rows(busiest_kind(one.cut.kinds, one.counts).rows, one.counts),
        assumptions=(
            *assumptions.of_fabric(
                layout, (*fabric.links, *(to_fabric.links if to_fabric else ())), fabric.slowest_index
            ),
            *assumptions.of_inner_link(request.inner_link, layout.ranks_per_node),
            *assumptions.of_decode(workload),
            *assumptions.of_weights(
                one.reads.weight_bytes, model, layout, is_mean=not model.parameter_groups or stated_mean_is_lower(model)
            ),
            *one.cut.assumptions,
            *assumptions.of_calibrated_layout(calibration, is_covering=one.calibrated is not None),
            *((assumptions.READS_AND_TRANSFERS,) if one.calibrated is not None and one.read_seconds else ()),
        ),
        estimator_version=ESTIMATOR_VERSION,
    )


def pass_fraction(extra: Estimate, one: DecodePass) -> Estimate:
    """A change of a pass over the pass: each end d / p, expected d / (m + t) (`docs/formulas.md`, Decode).

    No pass is shorter than its floor p, and none is shortened by more than all of it. With a calibration it waits for
    m, what it reads, and for what its transfers are expected to take, in turn; arithmetic makes the share less.
    """
    lower = larger(quotient(extra.lower, one.floor.seconds, if_zero=0.0), -1.0)
    upper = quotient(upper_end(extra), one.floor.seconds, if_zero=0.0)
    expected = None
    if extra.expected is not None and one.network.expected is not None:
        in_turn = quotient(extra.expected, one.read_seconds + one.network.expected, if_zero=0.0)
        expected = larger(lower, smaller(in_turn, upper))
    basis = combined_basis(extra.lower_basis, one.floor.basis)
    return Estimate(
        lower=lower,
        expected=expected,
        upper=upper,
        lower_basis=basis,
        expected_basis=Basis.UNSPECIFIED if expected is None else combined_basis(Basis.CALIBRATED, Basis.FORMULA),
        upper_basis=basis,
        binding_constraint=extra.binding_constraint,
        effects_left_out=ordered_effects(*extra.effects_left_out, *one.effects),
    )


def _memory_seconds(one: DecodePass) -> Estimate | None:
    """Time to read what is known to be read; None where nothing is."""
    if one.reads.weight_bytes is None and one.reads.cache_bytes is None:
        return None
    return at_least(one.read_seconds, Basis.FORMULA, constraint=Constraint.MEMORY_BANDWIDTH, effects=_unread(one.reads))


def _calibrated(
    kinds: Sequence[StageKind], counts: RowCounts, calibration: Calibration | None, fabric: Fabric
) -> CalibratedSeconds | None:
    return calibrated_transfers(kinds, (Passes(counts=counts, repeat_count=1),), calibration, fabric)


def _effects(network: Estimate, reads: MemoryReads) -> tuple[Effect, ...]:
    return (Effect.COMPUTE_TIME, Effect.FIXED_OVERHEAD, *_unread(reads), *network.effects_left_out)


def _unread(reads: MemoryReads) -> tuple[Effect, ...]:
    """What is not known to be read, or in which format."""
    weights = (Effect.WEIGHT_READ,) if reads.weight_bytes is None else ()
    if reads.is_format_open:
        weights = (Effect.WEIGHT_FORMAT,)
    return weights if reads.cache_bytes is not None else (*weights, Effect.KV_CACHE_READ)


def _traffic(one: DecodePass, link: ResolvedLink, stage_floor_seconds: float) -> Estimate:
    """From nothing to the bytes of a stage over its floor, which no link exceeds: min(B, 8 S / floor).

    A pipeline may have a pass in every stage, so what counts is the floor of a stage, not that of the whole pass.
    """
    at_floor = quotient(one.load.outer.busiest_bytes * BITS_PER_BYTE, stage_floor_seconds, if_zero=0.0)
    return between(
        0.0,
        smaller(link.effective_bits_per_second, at_floor),
        combined_basis(Basis.FORMULA, link_basis(link)) if one.floor.basis is Basis.CALIBRATED else one.floor.basis,
        constraint=one.floor.constraint,
        effects=one.effects,
    )


def _output(workload: DecodeWorkload, floor: PassFloor, effects: Sequence[Effect]) -> Estimate | None:
    """From nothing to the accepted tokens of one request over the floor; None where either is not known."""
    accepted = workload.acceptance_length_tokens
    if accepted is None:
        if workload.draft_token_count:
            return None
        accepted = 1.0
    if not floor.seconds:
        return at_least(0.0, floor.basis, effects=effects)
    return between(0.0, accepted / floor.seconds, floor.basis, constraint=floor.constraint, effects=effects)
