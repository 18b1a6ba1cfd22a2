"""Quantities as people read them. Prefixes are decimal: 1 GB is 1e9 bytes, 1 Gb/s is 1e9 bit/s."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from linkbound.domain.catalog import WeightFormatSource
from linkbound.domain.estimate import Estimate
from linkbound.domain.link import RATE_SOURCE_WORDS, LinkTransport, ResolvedLink
from linkbound.domain.memory import MemoryNeed
from linkbound.domain.words import IF_OF_THE_DATA_TYPE, duration

Format = Callable[[float], str]

_PREFIXES = ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k"))


def seconds(value: float) -> str:
    """A duration: `6.36 s`, `3.50 ms`, `4.30 us`."""
    return duration(value)


def signed_seconds(value: float) -> str:
    """A difference of durations: `+0.92 s`."""
    if 0.01 <= abs(value) < 1000:
        return f"{value:+.2f} s"
    if 1e-6 <= abs(value) < 0.01:
        return f"{value * 1e3:+.3f} ms"
    return f"+{duration(value)}" if value > 0 else duration(value)


def percent(fraction: float) -> str:
    """A share: `17.4 %`."""
    return _percent(fraction, "")


def signed_percent(fraction: float) -> str:
    """A relative difference: `+13.9 %`."""
    return _percent(fraction, "+")


def size_bytes(value: float) -> str:
    """A byte count: `27.66 GB`."""
    return _prefixed(value, "B")


def bits_per_second(value: float) -> str:
    """A rate in bits: `200 Gb/s`."""
    return _prefixed(value, "b/s")


def bytes_per_second(value: float) -> str:
    """A rate in bytes: `22.14 GB/s`."""
    return _prefixed(value, "B/s")


def tokens_per_second(value: float) -> str:
    """A token rate: `22.4 tok/s`."""
    return f"{_decimals(value, 1)} tok/s"


def samples_per_second(value: float) -> str:
    """A sample rate: `4.17 samples/s`."""
    return f"{_decimals(value, 2)} samples/s"


def interval(estimate: Estimate, form: Format) -> str:
    """An interval in words: `1.11 s`, `6.36 s to 7.28 s`, `at most 0.92 s`, `at least 1.11 s`."""
    lower = form(estimate.lower)
    if estimate.upper is None:
        return f"at least {lower}"
    upper = form(estimate.upper)
    if lower == upper:
        return lower
    return f"at most {upper}" if estimate.lower == 0 else f"{lower} to {upper}"


def expectation(estimate: Estimate, form: Format) -> str:
    """What is expected with its interval, `about 66 us (63 us to 69 us)`, or the interval alone."""
    if estimate.expected is None:
        return interval(estimate, form)
    return f"about {form(estimate.expected)} ({interval(estimate, form)})"


def change(difference: Estimate, form: Format, share: Estimate | None = None) -> str:
    """What a difference can be, in the direction that it has: `at most +0.92 s`, `up to 1.11 s less`, `no change`.

    `form` writes signed values. `share` is the same difference as a fraction, added in brackets.
    """
    lower, upper = difference.lower, difference.upper
    if lower == upper == 0:
        return "no change"
    if upper is not None and lower >= 0:
        part = "" if share is None or share.upper is None else f" ({signed_percent(share.upper)})"
        return f"at most {form(upper)}{part}"
    if upper is not None and upper <= 0:
        part = "" if share is None else f" ({signed_percent(-share.lower).removeprefix('+')})"
        return f"up to {form(-lower).removeprefix('+')}{part} less"
    return interval(difference, form)


def rate_note(link: ResolvedLink) -> str:
    """What a link carries and why: `109 Gb/s, measured rate`."""
    source = RATE_SOURCE_WORDS.get(link.rate_source, "of unknown origin")
    rate = f"{bits_per_second(link.effective_bits_per_second)} ({bytes_per_second(link.effective_bytes_per_second)})"
    return f"{rate}, {source}"


def counted_at(link: ResolvedLink) -> str:
    """What counter bytes were computed with: `at RoCE MTU 1024`."""
    if link.ethernet_mtu_bytes:
        return f"at Ethernet MTU {link.ethernet_mtu_bytes}"
    if not link.roce_mtu_bytes:
        return "on a fabric without packet counters"
    carrier = "InfiniBand" if link.link.transport is LinkTransport.INFINIBAND else "RoCE"
    return f"at {carrier} MTU {link.roce_mtu_bytes}"


def left_out(*estimates: Estimate | None) -> str:
    """The effects that the estimates are silent about, each once: `compute overlap, rate ramp`."""
    names: dict[str, None] = {}
    for estimate in estimates:
        for effect in estimate.effects_left_out if estimate is not None else ():
            names[effect.name.lower().replace("_", " ")] = None
    return ", ".join(names)


def if_stored_so(*needs: MemoryNeed | None) -> str:
    """What it hangs on that something does not fit, where a config does not say how its weights are stored."""
    too_large = (need for need in needs if need is not None and need.total_bytes > need.usable_bytes)
    return if_open(is_open=any(is_format_open(need) for need in too_large))


def is_format_open(need: MemoryNeed) -> bool:
    """Whether the weights in it are counted in the number type of a config that does not say how they are stored."""
    return need.weight_format_source is WeightFormatSource.DATA_TYPE


def if_open(*, is_open: bool) -> str:
    """What a figure hangs on that rests on such weights; nothing where their format is not open."""
    return f", {IF_OF_THE_DATA_TYPE}" if is_open else ""


def feasibility(reasons: Sequence[str], *, feasible: bool | None) -> str:
    """Whether something can be run, and why not, or why nobody knows: `yes`, `no: ...`, `not known: ...`."""
    if feasible:
        return "yes"
    return f"{'not known' if feasible is None else 'no'}: {'; '.join(reasons)}"


def whether_it_fits(*, feasible: bool | None) -> str:
    """What a headline adds to a choice of which nobody knows whether memory holds it; nothing where that is known."""
    return ", whether it fits is not known" if feasible is None else ""


def assumed(assumptions: Sequence[str]) -> list[tuple[str, str]]:
    """Assumptions as lines of a table, named once."""
    return [("assumed" if index == 0 else "", assumption) for index, assumption in enumerate(assumptions)]


def _prefixed(value: float, unit: str) -> str:
    for scale, prefix in _PREFIXES:
        if abs(value) >= scale:
            return f"{_short(value / scale)} {prefix}{unit}"
    return f"{_short(value)} {unit}"


def _short(value: float) -> str:
    """Two decimals, without those that say nothing."""
    text = _decimals(value, 2)
    return text.rstrip("0").rstrip(".") if "e" not in text else text


def _decimals(value: float, count: int) -> str:
    """So many decimals, or two digits of what would read as nothing."""
    return f"{value:,.{count}f}" if value == 0 or abs(value) >= 10.0**-count / 2 else f"{value:.2g}"


_NOTHING = 1e-9
"""A share below which only rounding is left of it."""


def _percent(fraction: float, sign: str) -> str:
    if abs(fraction) < _NOTHING:
        return "0 %"
    percent = fraction * 100
    return f"{percent:{sign}.1f} %" if abs(percent) >= 0.05 else f"{percent:{sign}.1g} %"
