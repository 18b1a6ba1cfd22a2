"""Predicted beside measured, as the studies print it. Every figure comes from comparisons that the service made."""

from __future__ import annotations

from attrs import frozen

from linkbound.cli import text
from linkbound.cli.comparison_text import (
    NOTHING,
    findings_text,
    headline,
    implied_text,
    inside_text,
    measured_text,
    predicted_text,
    ratio_text,
)
from linkbound.cli.table import Column, right, table
from linkbound.data.study import Study, setup_name
from linkbound.demo import cells
from linkbound.domain.estimate import Estimate
from linkbound.domain.metric import Metric
from linkbound.domain.run_comparison import ComparisonRow, RunComparison

_TTFTS = (
    (Metric.TTFT_SECONDS, Metric.EXTRA_TTFT_SECONDS),
    (Metric.LAST_TTFT_SECONDS, Metric.EXTRA_LAST_TTFT_SECONDS),
)
"""TTFT and its difference: of lone requests, and of the last of several."""


@frozen
class Comparisons:
    """The four runs, compared."""

    faster: RunComparison
    slower: RunComparison
    nccl: RunComparison
    training: RunComparison

    @property
    def all(self) -> tuple[RunComparison, ...]:
        """In the order in which the studies tell them."""
        return (self.faster, self.slower, self.nccl, self.training)


def report(study: Study, comparisons: Comparisons) -> str:
    """All tables and findings."""
    faster, slower = study.inference.links
    multi_node = study.multi_node
    blocks = [
        "\n".join(headline(comparison) for comparison in comparisons.all),
        f"1. {study.inference.source}",
        _titled(
            f"Time to the first token, seconds, mean of 3 rounds (range): {faster.title} to {slower.title}",
            "P4 and P6: until the last of four requests that arrive together has its first token.",
            ttft_table(study, comparisons),
        ),
        _titled(
            "Mean over the four requests, seconds: another metric, never mixed with the last first token",
            "Predicted: the bound of the whole batch, if the engine serves the requests in the same order.",
            mean_ttft_table(study, comparisons),
        ),
        _titled(
            "Decode speed of one request, tokens per second",
            "Predicted: not below the speed over the faster link, less what the bytes of a pass can cost.",
            decode_table(study, comparisons),
        ),
        f"2. {multi_node.source}",
        _titled("Bus bandwidth of nccl-tests", "", nccl_table(comparisons.nccl)),
        _titled(
            "Step time of data-parallel training, seconds",
            "Implied: the bandwidth at which the gradient bytes explain the step. Share: of the nccl-tests value.\n"
            + _gradient_note(study),
            training_table(study, comparisons.training),
        ),
        _titled("nanochat, tokens per second: measured, with no prediction", "", nanochat_table(comparisons.training)),
        _titled("Findings", "", "\n".join(filter(None, map(findings_text, comparisons.all))) or "none"),
    ]
    return "\n\n".join(blocks)


def ttft_table(study: Study, comparisons: Comparisons) -> str:
    """The first study's table 8.4 with its predictions, and the bandwidth that each increase implies."""
    faster, slower = _link_titles(study)
    columns = (
        Column("test"),
        Column(f"{faster} (range)"),
        Column(f"{slower} (range)"),
        right("increase"),
        right(""),
        right("predicted"),
        Column("inside"),
        right("implied"),
        right(f"floor at {faster}"),
    )
    rows = []
    for test in study.inference.tests:
        for metric, difference in _TTFTS:
            extra = _row(comparisons.slower, difference, test.id)
            if extra is None:
                continue
            rows.append(
                [
                    cells.test_name(test),
                    cells.with_range(_row(comparisons.faster, metric, test.id)),
                    cells.with_range(_row(comparisons.slower, metric, test.id)),
                    cells.signed(extra.measured),
                    cells.percent(extra.measured_fraction),
                    cells.at_most(extra.predicted),
                    inside_text(extra),
                    cells.implied_bits(extra),
                    cells.at_least(_predicted(comparisons.faster, metric, test.id)),
                ]
            )
    return table(columns, rows)


def mean_ttft_table(study: Study, comparisons: Comparisons) -> str:
    """The mean TTFT of requests that arrive together: measured, never mixed with the last one."""
    faster, slower = _link_titles(study)
    columns = (
        Column("test"),
        right(faster),
        right(slower),
        right("increase"),
        right(""),
        right("predicted"),
        Column("inside"),
    )
    rows = []
    for test in study.inference.tests:
        extra = _row(comparisons.slower, Metric.EXTRA_MEAN_TTFT_SECONDS, test.id)
        if extra is not None:
            rows.append(
                [
                    cells.test_name(test),
                    cells.number(_measured(comparisons.faster, Metric.MEAN_TTFT_SECONDS, test.id)),
                    cells.number(_measured(comparisons.slower, Metric.MEAN_TTFT_SECONDS, test.id)),
                    cells.signed(extra.measured),
                    cells.percent(extra.measured_fraction),
                    cells.at_most(extra.predicted),
                    inside_text(extra),
                ]
            )
    return table(columns, rows)


def decode_table(study: Study, comparisons: Comparisons) -> str:
    """Decode speed over both links."""
    faster, slower = _link_titles(study)
    columns = (
        Column("test"),
        right(faster),
        right(slower),
        right("change"),
        right(f"predicted at {slower}"),
        Column("inside"),
    )
    rows = []
    for test in study.inference.tests:
        before = _measured(comparisons.faster, Metric.DECODE_TOKENS_PER_SECOND, test.id)
        row = _row(comparisons.slower, Metric.DECODE_TOKENS_PER_SECOND, test.id)
        after = None if row is None else row.measured
        if row is None or before is None or after is None:
            continue
        rows.append(
            [
                cells.test_name(test),
                f"{before:.1f}",
                f"{after:.1f}",
                cells.percent(after / before - 1),
                NOTHING if row.predicted is None else f">= {row.predicted.lower:.1f}",
                inside_text(row),
            ]
        )
    return table(columns, rows)


def nccl_table(comparison: RunComparison) -> str:
    """Bus bandwidth against what the line can carry."""
    columns = (Column("setup"), right("measured"), right("predicted"), right("share"), Column("inside"))
    rows = [
        [row.subject, measured_text(row), predicted_text(row), ratio_text(row), inside_text(row)]
        for row in comparison.rows
        if row.metric is Metric.BUS_BANDWIDTH_BYTES_PER_SECOND
    ]
    return table(columns, rows)


def training_table(study: Study, comparison: RunComparison) -> str:
    """Step times against the gradient exchange, with the bandwidth that they imply."""
    columns = (
        Column("setup"),
        right("measured"),
        right("predicted"),
        Column("inside"),
        right("implied"),
        right("nccl-tests"),
        right("share"),
    )
    rows = []
    for kind in study.multi_node.fine_tunings:
        for setup in kind.rows:
            row = _row(comparison, Metric.TRAINING_STEP_SECONDS, setup_name(kind.id, setup.node_count, setup.link))
            if row is None:
                continue
            rows.append(
                [
                    row.subject,
                    NOTHING if row.measured is None else f"{row.measured:.3f}",
                    cells.interval(row.predicted),
                    inside_text(row),
                    implied_text(row),
                    cells.assumed(row),
                    ratio_text(row),
                ]
            )
    return table(columns, rows)


def nanochat_table(comparison: RunComparison) -> str:
    """Throughput with the inputs that a prediction would need."""
    columns = (Column("setup"), right("measured"), Column("missing inputs"))
    rows = [
        [row.subject, NOTHING if row.measured is None else f"{row.measured:,.1f}", ", ".join(row.missing_inputs)]
        for row in comparison.rows
        if row.metric is Metric.TRAINING_TOKENS_PER_SECOND
    ]
    return table(columns, rows)


def _gradient_note(study: Study) -> str:
    """How many bytes each kind of training exchanges: of a few, the implied bandwidth says nothing."""
    sizes = ", ".join(f"{kind.id} {text.size_bytes(kind.gradient_bytes)}" for kind in study.multi_node.fine_tunings)
    return f"Gradients of one step: {sizes}; of a few megabytes, any other millisecond hides the bandwidth."


def _titled(title: str, note: str, body: str) -> str:
    return "\n".join(part for part in (title, note, body) if part)


def _row(comparison: RunComparison, metric: Metric, subject: str) -> ComparisonRow | None:
    return next((row for row in comparison.rows if (row.metric, row.subject) == (metric, subject)), None)


def _measured(comparison: RunComparison, metric: Metric, subject: str) -> float | None:
    row = _row(comparison, metric, subject)
    return None if row is None else row.measured


def _predicted(comparison: RunComparison, metric: Metric, subject: str) -> Estimate | None:
    row = _row(comparison, metric, subject)
    return None if row is None else row.predicted


def _link_titles(study: Study) -> list[str]:
    """What each link carries: `109 Gb/s`."""
    links = [named.link for named in study.inference.links]
    return [
        text.bits_per_second(link.measured_bits_per_second or link.line_rate_bits_per_second or 0) for link in links
    ]
