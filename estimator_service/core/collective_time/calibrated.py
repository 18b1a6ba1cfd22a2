"""Times of collectives from a calibration, as intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate

from attrs import evolve, frozen

from estimator_service.core.collective_time.algorithms import Group
from estimator_service.core.collective_time.curve import TimeCurve, curve_through
from estimator_service.core.collective_time.flags import wire_ratio
from estimator_service.core.collective_time.scatter import disorder_ratios
from estimator_service.core.collective_time.steps import SizeSteps, size_steps
from estimator_service.core.collectives import sent_bytes
from estimator_service.core.elementwise import larger, smaller
from estimator_service.core.intervals import link_basis, upper_end
from estimator_service.core.links import send_seconds
from linkbound.domain.calibration import Calibration
from linkbound.domain.collective import CollectiveAlgorithm, CollectiveKind
from linkbound.domain.estimate import Basis, Constraint, Effect, Estimate
from linkbound.domain.link import BITS_PER_BYTE, ResolvedLink

OPEN_SHARE = 0.8
"""How much, in the logarithm, of what the points leave open belongs to an interval. EMPIRICAL: `docs/accuracy.md`."""
LARGEST_OPEN_RATIO = 1.35
"""At most this factor of what the points leave open. EMPIRICAL, as above."""
LARGEST_HALF_WIDTH_RATIO = 1000.0
"""No half width is wider, so that points without any order still give finite ends."""
WIDENING_PER_OCTAVE = 0.5
"""How much wider, as a share, an interval gets with each halving or doubling beyond the points. EMPIRICAL, as above."""


@frozen(kw_only=True)
class WireTime:
    """Time for which links are busy with one collective, and the basis of their rates.

    `longest_seconds` is that of the algorithm with most bytes, where several may run; `seconds` of the least.
    """

    seconds: float
    basis: Basis
    longest_seconds: float = 0.0


def covers(
    calibration: Calibration,
    kind: CollectiveKind,
    rank_count: int,
    ranks_per_node: int = 1,
    algorithm: CollectiveAlgorithm = CollectiveAlgorithm.UNSPECIFIED,
) -> bool:
    """Whether `calibration` was measured on such a group and algorithm (`docs/formulas.md`, Collective time).

    It stands for no other kind, number of ranks or ranks per node: there is no rule that carries it over.
    """
    table = calibration.table
    is_alike = (table.kind, table.rank_count, table.ranks_per_node) == (kind, rank_count, ranks_per_node)
    return is_alike and is_library_choice(kind, algorithm)


def is_library_choice(kind: CollectiveKind, algorithm: CollectiveAlgorithm) -> bool:
    """Whether times that the library's own choice took stand for `algorithm` (`docs/formulas.md`, Collective time).

    A ring is what bounds are of unless another one is asked for, so it leaves the choice to the library as AUTO does.
    Trees and a custom one-shot collective asked for may be slower or faster than what was chosen. An all-to-all and a
    send have one way alone.
    """
    if kind in {CollectiveKind.ALL_TO_ALL, CollectiveKind.SEND_RECEIVE}:
        return True
    return algorithm not in {CollectiveAlgorithm.DOUBLE_BINARY_TREE, CollectiveAlgorithm.ONE_SHOT}


def calibrated_seconds(calibration: Calibration, message_bytes: float, link: ResolvedLink | None = None) -> Estimate:
    """Time of one collective with a payload of `message_bytes` bytes above 0, from measured times.

    Over a `link`, as a ring. For many sizes of one calibration, or other bytes on the links, ask `CalibratedTime`. The
    caller holds that the calibration covers the group (`docs/formulas.md`, Collective time).
    """
    wire = None
    if link is not None:
        sent = sent_bytes(calibration.table.kind, calibration.table.rank_count, message_bytes)
        wire = WireTime(seconds=send_seconds(sent, link.effective_bits_per_second), basis=link_basis(link))
    return calibrated_time(calibration).seconds(message_bytes, wire)


@frozen
class CalibratedTime:
    """A calibration made ready to be asked for many sizes."""

    calibration: Calibration
    curve: TimeCurve
    steps: SizeSteps
    opened_ratios: tuple[float, ...]
    """Half width of the interval of each gap between two sizes, as a factor above 1."""
    lower_knots: tuple[float, ...]
    """At each size, the least lower end of that size and all larger ones, in seconds."""
    upper_knots: tuple[float, ...]
    """At each size, the largest upper end of that size and all smaller ones, in seconds."""

    def seconds(self, message_bytes: float, wire: WireTime | None = None) -> Estimate:
        """The interval at `message_bytes`, on links that are busy for `wire` where that is given.

        Links slower than the measured one add what `wire` is longer than the bytes took there to the expected time, and
        to the upper end that of the flags too which the library may have sent with them. Of faster ones nobody knows
        what they would do to a time that was measured: at best they save as much, so that the lower end falls by it,
        though not below that of any smaller message, and the others stay. No end is before the links have carried the
        bytes.
        """
        at_measured_rate = self._at_measured_rate(message_bytes)
        expected = self.curve.seconds_at(message_bytes)
        lower, upper = self._lower(message_bytes), self._upper(message_bytes, expected)
        answer = Estimate(
            lower=lower,
            expected=expected,
            upper=upper,
            lower_basis=Basis.CALIBRATED,
            expected_basis=Basis.CALIBRATED,
            upper_basis=Basis.CALIBRATED,
            binding_constraint=_constraint(at_measured_rate, expected),
            effects_left_out=(Effect.COMPUTE_OVERLAP, Effect.STRAGGLERS),
        )
        if wire is None:
            return answer
        in_expected = smaller(at_measured_rate, expected - self._fixed_beyond(message_bytes))
        at_best = lower if wire.seconds >= at_measured_rate else self._at_best(message_bytes, lower, wire.seconds)
        over = _over(answer, at_best, in_expected, wire)
        added = larger(wire.seconds, wire.longest_seconds) - in_expected
        if added <= 0:
            return over
        at_most = upper + self._wire_ratio(message_bytes) * added
        return evolve(over, upper=larger(upper_end(over), at_most), upper_basis=Basis.MIXED)

    def _wire_ratio(self, message_bytes: float) -> float:
        """Bytes on the wire for each byte of payload, at most, of the protocol that may have been measured."""
        table = self.calibration.table
        group = Group(rank_count=table.rank_count, ranks_per_node=table.ranks_per_node)
        bits_per_second = self.calibration.bus_bandwidth_bytes_per_second * BITS_PER_BYTE
        return wire_ratio(table.kind, group, message_bytes, bits_per_second)

    def _at_measured_rate(self, message_bytes: float) -> float:
        """Time of the bytes at the largest bus bandwidth that was measured: f P / b."""
        table = self.calibration.table
        sent = sent_bytes(table.kind, table.rank_count, message_bytes)
        return sent / self.calibration.bus_bandwidth_bytes_per_second

    def _fixed_beyond(self, message_bytes: float) -> float:
        """What a time beyond the last size has beside its bytes at the least, whatever carries them; 0 up to there.

        It is what the smallest size took beside its own bytes, and as large a share of it as of the bytes lies beyond
        the points: how much of the last time is fixed was not measured. Without it, a curve that goes on faster than b
        would leave a slower link nothing but the wire.
        """
        smallest_bytes, largest_bytes = self.curve.message_bytes[0], self.curve.message_bytes[-1]
        if message_bytes <= largest_bytes:
            return 0.0
        fixed_seconds = larger(self.curve.seconds[0] - self._at_measured_rate(smallest_bytes), 0.0)
        return fixed_seconds * (1 - largest_bytes / message_bytes)

    def _at_best(self, message_bytes: float, lower_seconds: float, wire_seconds: float) -> float:
        """A lower end less what its bytes save on faster links, or the most of that of smaller messages.

        What a size saves grows with its bytes, which may be faster than its lower end does, but a larger message takes
        no less time than a smaller one. The lower end is straight between two steps, so that the most is at a step or
        at the size itself. It is not below `wire_seconds` of the size either.
        """
        saved_seconds = self._at_measured_rate(message_bytes) - wire_seconds
        most_seconds = larger(lower_seconds - saved_seconds, wire_seconds)
        number = self.steps.number_below(message_bytes)
        while (lower_seconds := self._lower_at_step(number)) > most_seconds:
            saved_at_step = saved_seconds * (self.steps.size(number) / message_bytes)
            most_seconds = larger(most_seconds, lower_seconds - saved_at_step)
            number -= 1
        return most_seconds

    def _lower(self, message_bytes: float) -> float:
        """Lower end of the interval, straight between two steps; it does not fall with the size."""
        number = self.steps.number_below(message_bytes)
        first_bytes, last_bytes = self.steps.size(number), self.steps.size(number + 1)
        first, last = self._lower_at_step(number), self._lower_at_step(number + 1)
        return first + (last - first) * ((message_bytes - first_bytes) / (last_bytes - first_bytes))

    def _lower_at_step(self, number: int) -> float:
        knot = self.steps.knot_of(number)
        if knot >= 0 and self.steps.numbers_of_knots[knot] == number:
            return self.lower_knots[knot]
        message_bytes = self.steps.size(number)
        expected = self.curve.seconds_at(message_bytes)
        open_ratio = _open_ratio(expected, self.curve.bounds_at(message_bytes).lower)
        lower = expected / self._opened_ratio(message_bytes) / open_ratio
        if knot == len(self.lower_knots) - 1:
            return smaller(larger(lower, self.lower_knots[-1]), expected)
        return smaller(lower, self.lower_knots[knot + 1])

    def _upper(self, message_bytes: float, expected: float) -> float:
        """Upper end of the interval; it does not fall with the size."""
        open_ratio = _open_ratio(self.curve.bounds_at(message_bytes).upper, expected)
        upper = expected * self._opened_ratio(message_bytes) * open_ratio
        if message_bytes < self.curve.message_bytes[0]:
            return larger(expected, self.upper_knots[0])
        if message_bytes > self.curve.message_bytes[-1]:
            return larger(upper, self.upper_knots[-1])
        return larger(upper, self.upper_knots[self.curve.segment_of(message_bytes)])

    def _opened_ratio(self, message_bytes: float) -> float:
        """Half width of the interval, wider with each octave beyond the points, as a factor above 1."""
        widening = 1 + WIDENING_PER_OCTAVE * self.curve.octaves_outside(message_bytes)
        exponent = math.log(self.opened_ratios[self.curve.segment_of(message_bytes)]) * widening
        return math.exp(smaller(exponent, math.log(LARGEST_HALF_WIDTH_RATIO)))


def calibrated_time(calibration: Calibration) -> CalibratedTime:
    """`calibration` made ready for many sizes (`docs/formulas.md`, Collective time)."""
    points = calibration.table.points
    curve = curve_through([point.message_bytes for point in points], [point.seconds for point in points])
    opened = tuple(
        smaller(1 + larger(calibration.interval_fraction, disorder), LARGEST_HALF_WIDTH_RATIO)
        for disorder in disorder_ratios(points)
    )
    at_knots = tuple(map(larger, (opened[0], *opened), (*opened, opened[-1])))
    lower = [seconds / ratio for seconds, ratio in zip(curve.seconds, at_knots, strict=True)]
    upper = [seconds * ratio for seconds, ratio in zip(curve.seconds, at_knots, strict=True)]
    return CalibratedTime(
        calibration=calibration,
        curve=curve,
        steps=size_steps(curve.message_bytes),
        opened_ratios=opened,
        lower_knots=_falling_minima(lower),
        upper_knots=tuple(accumulate(upper, max)),
    )


def _falling_minima(values: Sequence[float]) -> tuple[float, ...]:
    """At each place the least value from there on."""
    return tuple(accumulate(reversed(values), min))[::-1]


def _open_ratio(larger_seconds: float, smaller_seconds: float) -> float:
    """What belongs to the interval of what lies open between two times, as a factor of at least 1."""
    return smaller(math.pow(larger(larger_seconds / smaller_seconds, 1.0), OPEN_SHARE), LARGEST_OPEN_RATIO)


def _constraint(bandwidth_seconds: float, seconds: float) -> Constraint:
    """Bandwidth where it takes at least half of the time."""
    return Constraint.NETWORK_BANDWIDTH if 2 * bandwidth_seconds >= seconds else Constraint.NETWORK_LATENCY


def _over(measured: Estimate, at_best_seconds: float, in_expected: float, wire: WireTime) -> Estimate:
    """`measured` on links that are busy for `wire`, longer or shorter than at the measured rate.

    `at_best_seconds` is the lower end with what shorter ones may save. `in_expected` is how much of the expected time
    the bytes take: beyond the points less than at the measured rate, where the curve goes on faster.
    """
    added = larger(wire.seconds - in_expected, 0.0)
    expected = larger((measured.expected or 0.0) + added, wire.seconds)
    lower_basis = Basis.MIXED if at_best_seconds < measured.lower else Basis.CALIBRATED
    return evolve(
        measured,
        lower=larger(at_best_seconds, wire.seconds),
        expected=expected,
        upper=larger((measured.upper or 0.0) + added, expected),
        lower_basis=wire.basis if wire.seconds >= at_best_seconds else lower_basis,
        expected_basis=Basis.MIXED if added else Basis.CALIBRATED,
        upper_basis=Basis.MIXED if added else Basis.CALIBRATED,
        binding_constraint=_constraint(wire.seconds, expected) if added else measured.binding_constraint,
    )
