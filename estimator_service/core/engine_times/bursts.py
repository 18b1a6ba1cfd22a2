"""What the bursts on a link say of its rate at a size: from the first size on, and nothing below it."""

from __future__ import annotations

from bisect import bisect_right

from attrs import frozen

from estimator_service.core.elementwise import larger, smaller
from estimator_service.core.links import send_seconds
from estimator_service.core.packets import link_counter_bytes
from linkbound.domain.engine import BurstTable
from linkbound.domain.link import RateSource, ResolvedLink


@frozen(kw_only=True)
class BurstRates:
    """A link at its full payload rate, and how long payloads of some sizes took at the rates that bursts showed.

    `message_bytes` rise, `message_seconds` do not fall, and none is shorter than at the full rate. Both are empty for a
    link whose bursts nobody knows. `header_ratio` is counter bytes over payload bytes where counters were read.
    """

    full_bits_per_second: float
    header_ratio: float = 1.0
    message_bytes: tuple[int, ...] = ()
    message_seconds: tuple[float, ...] = ()

    @property
    def are_known(self) -> bool:
        """Whether any burst was seen on the link."""
        return bool(self.message_bytes)

    def covers(self, message_bytes: float) -> bool:
        """Whether bursts of this size or of a smaller one were seen: larger payloads are no slower."""
        return self.are_known and message_bytes >= self.message_bytes[0]

    def seconds(self, message_bytes: float) -> float:
        """Time of a payload at the rate of bursts: straight between two sizes, the rate of an end beyond it."""
        sizes, times = self.message_bytes, self.message_seconds
        if not sizes:
            return send_seconds(message_bytes, self.full_bits_per_second)
        above = bisect_right(sizes, message_bytes)
        if above == 0:
            return times[0] * message_bytes / sizes[0]
        if above == len(sizes):
            return times[-1] * message_bytes / sizes[-1]
        share = (message_bytes - sizes[above - 1]) / (sizes[above] - sizes[above - 1])
        return times[above - 1] + share * (times[above] - times[above - 1])


def header_ratio(bursts: BurstTable, link: ResolvedLink) -> float:
    """Counter bytes over payload bytes: the mean of what was seen, else by the headers of the link.

    (`docs/formulas.md`, Engine times)
    """
    least = bursts.least_header_ratio
    if least is None:
        return link_counter_bytes(1.0, link)
    return (least + (bursts.largest_header_ratio or least)) / 2


def burst_rates(link: ResolvedLink, bursts: BurstTable | None) -> BurstRates:
    """The payload rates of a link, in bit/s, with its bursts (`docs/formulas.md`, Engine times).

    The full rate is the effective one, and no more than counters leave of the line rate. At a size, the largest counter
    rate counts: a window that straddles the edge of a burst only reads lower.
    """
    effective = float(link.effective_bits_per_second)
    if bursts is None:
        return BurstRates(full_bits_per_second=effective)
    ratio = header_ratio(bursts, link)
    line_rate = link.link.line_rate_bits_per_second
    is_measured = link.rate_source is RateSource.MEASURED
    full = effective if is_measured or line_rate is None else smaller(effective, line_rate / ratio)
    times: list[float] = []
    for point in bursts.points:
        seconds = send_seconds(point.message_bytes, smaller(point.largest_bits_per_second / ratio, full))
        times.append(larger(seconds, times[-1]) if times else seconds)
    return BurstRates(
        full_bits_per_second=full,
        header_ratio=ratio,
        message_bytes=tuple(point.message_bytes for point in bursts.points),
        message_seconds=tuple(times),
    )
