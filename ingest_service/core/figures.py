"""Figures as a finding shows them: three or four digits and a unit."""

from __future__ import annotations

from linkbound.domain.metric import Metric

BYTES_PER_GIGABYTE = 1e9
BYTES_PER_MEGABYTE = 1e6

_UNITS = {
    Metric.DECODE_TOKENS_PER_SECOND: "token/s",
    Metric.TRAINING_TOKENS_PER_SECOND: "token/s",
    Metric.TRAINING_SAMPLES_PER_SECOND: "sample/s",
}


def metric_figure(metric: Metric, value: float) -> str:
    """A value of `metric`: `8.44 s`, `1.18 GB/s`, `22.4 token/s`."""
    if metric is Metric.BUS_BANDWIDTH_BYTES_PER_SECOND:
        return rate_figure(value)
    return f"{value:.4g} {_UNITS.get(metric, 's')}"


def rate_figure(value_bytes_per_second: float) -> str:
    """A bandwidth in GB/s, 1e9 bytes per second."""
    return f"{value_bytes_per_second / BYTES_PER_GIGABYTE:.4g} GB/s"


def bytes_figure(value_bytes: float) -> str:
    """An amount of data in GB or MB, 1e9 or 1e6 bytes."""
    if value_bytes >= BYTES_PER_GIGABYTE:
        return f"{value_bytes / BYTES_PER_GIGABYTE:.4g} GB"
    return f"{value_bytes / BYTES_PER_MEGABYTE:.4g} MB"


def percent_figure(fraction: float) -> str:
    """A fraction in percent: whole above 2 %, one digit below."""
    percent = fraction * 100
    return f"{percent:.0f} %" if abs(percent) >= 2 else f"{percent:.1f} %"


def metric_words(metric: Metric) -> str:
    """The name of a metric in words, without its unit: `extra last ttft`."""
    words = metric.name.removesuffix("_PER_SECOND").removesuffix("_SECONDS").removesuffix("_BYTES")
    return words.lower().replace("_", " ").replace("ttft", "TTFT")
