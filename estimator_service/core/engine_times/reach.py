"""One collective over one link, and over two: what bursts bound, and what stays open."""

from __future__ import annotations

from attrs import frozen

from estimator_service.core.elementwise import larger, smaller


@frozen(kw_only=True)
class Reach:
    """Time of one collective between `wire_seconds`, at the full rate, and `burst_seconds`, at the rate of bursts.

    `effective_seconds` is its time at the rate that holds where bytes alone count. `is_seen`: bursts of that size were.
    `has_bursts`: some were, of whatever size.
    """

    effective_seconds: float
    wire_seconds: float
    burst_seconds: float
    is_seen: bool
    has_bursts: bool

    @property
    def middle_seconds(self) -> float:
        """Halfway: a rate that bursts show is at most too low, the full one at most too high."""
        return (self.wire_seconds + self.burst_seconds) / 2


@frozen(kw_only=True)
class Change:
    """Seconds at least, expected and at most; of a change of link below 0 where the new one is faster."""

    lower: float
    expected: float
    upper: float

    @classmethod
    def exactly(cls, seconds: float) -> Change:
        """Of which nothing is open."""
        return cls(lower=seconds, expected=seconds, upper=seconds)

    def times(self, count: float) -> Change:
        """As many of them after each other."""
        return Change(lower=self.lower * count, expected=self.expected * count, upper=self.upper * count)

    def plus(self, other: Change) -> Change:
        """One after the other."""
        return Change(
            lower=self.lower + other.lower, expected=self.expected + other.expected, upper=self.upper + other.upper
        )

    def minus(self, other: Change) -> Change:
        """What is left of a sum without one of its parts."""
        return Change(
            lower=self.lower - other.lower, expected=self.expected - other.expected, upper=self.upper - other.upper
        )


NO_CHANGE = Change(lower=0.0, expected=0.0, upper=0.0)


def reach_change(old: Reach, new: Reach) -> Change:
    """What one collective takes longer over the new link (`docs/formulas.md`, Engine times).

    The two ways are mirror images: a faster link gives back what the slower one would add. A link of which no burst of
    that size was seen may add all that bytes alone allow.
    """
    if old == new:
        return NO_CHANGE
    if old.wire_seconds <= new.wire_seconds:
        found = _slower(old, new)
    else:
        back = _slower(new, old)
        found = Change(lower=-back.upper, expected=-back.expected, upper=-back.lower)
    of_bytes = new.effective_seconds - old.effective_seconds
    return Change(
        lower=found.lower if old.is_seen else smaller(found.lower, of_bytes),
        expected=found.expected,
        upper=found.upper if new.is_seen else larger(found.upper, of_bytes),
    )


def either_change(first: Change, second: Change) -> Change:
    """One of both, nobody knows which: their hull, expected halfway (`docs/formulas.md`, Engine times)."""
    return Change(
        lower=smaller(first.lower, second.lower),
        expected=(first.expected + second.expected) / 2,
        upper=larger(first.upper, second.upper),
    )


def _slower(fast: Reach, slow: Reach) -> Change:
    """Of times w at the full rate and s at the rate of bursts.

    Both seen: from w_slow - s_fast to s_slow - w_fast, one link in full bursts and the other not; expected halfway on
    both. Seen on the fast one alone: its bursts were short of the full rate by a fixed time, which the slow link adds
    again, so that w_slow - w_fast remains; or something else than the link held them there, and what remains is
    w_slow - s_fast. Halfway is expected. Else every size reaches the full rate, and less may be felt.
    """
    wire = slow.wire_seconds - fast.wire_seconds
    upper = slow.burst_seconds - fast.wire_seconds if slow.is_seen else wire
    lower = larger(0.0, slow.wire_seconds - fast.burst_seconds) if fast.is_seen else 0.0
    if fast.is_seen and slow.is_seen:
        expected = slow.middle_seconds - fast.middle_seconds
    elif fast.has_bursts and not slow.is_seen:
        expected = (lower + wire) / 2
    else:
        expected = wire
    return Change(lower=lower, expected=smaller(larger(expected, lower), upper), upper=upper)
