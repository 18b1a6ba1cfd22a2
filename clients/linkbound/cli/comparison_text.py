"""A comparison as text: one line per metric and subject, then the findings."""

from __future__ import annotations

import textwrap

from linkbound.cli import text
from linkbound.cli.table import Column, right, table
from linkbound.domain.metric import MEASURED_METRIC_OF_DIFFERENCE, Metric
from linkbound.domain.run_comparison import ComparisonRow, Finding, RunComparison, Severity

NOTHING = "-"
_LINE_WIDTH = 110

_COLUMNS = (
    Column("subject"),
    Column("metric"),
    right("predicted"),
    right("measured"),
    Column("range"),
    right("change"),
    Column("inside"),
    right("implied"),
    right("of assumed"),
)
_UNIT_SUFFIXES = ("_BYTES_PER_SECOND", "_TOKENS_PER_SECOND", "_SAMPLES_PER_SECOND", "_SECONDS")


def headline(comparison: RunComparison) -> str:
    """How many rows lie inside their predicted interval."""
    judged = [row.inside_interval for row in comparison.rows if row.inside_interval is not None]
    if not judged:
        return f"{comparison.run_id}: nothing is both predicted and measured"
    return f"{comparison.run_id}: {sum(judged)} of {len(judged)} measured values lie inside their predicted interval"


def comparison_table(comparison: RunComparison) -> str:
    """All rows."""
    if not comparison.rows:
        return ""
    return table(_COLUMNS, [_cells(row) for row in comparison.rows])


def findings_text(comparison: RunComparison) -> str:
    """The findings, worst first: how bad, what, about what, the figures, and what to do where something is wrong."""
    return "\n".join(line for finding in comparison.findings for line in _finding_lines(comparison.run_id, finding))


def _finding_lines(run_id: str, finding: Finding) -> list[str]:
    about = f"{run_id}: {finding.subject}" if finding.subject else run_id
    lines = [f"{finding.severity.name}  {finding.code}  {about}", *_wrapped(finding.evidence)]
    return lines if finding.severity is Severity.INFO else lines + _wrapped(finding.advice)


def _wrapped(paragraph: str) -> list[str]:
    return textwrap.wrap(paragraph, _LINE_WIDTH, initial_indent="  ", subsequent_indent="  ")


def metric_name(metric: Metric) -> str:
    """A metric without its unit: `last ttft`."""
    name = metric.name
    for suffix in _UNIT_SUFFIXES:
        if name.endswith(suffix):
            name = name.removesuffix(suffix)
            break
    return name.lower().replace("_", " ").replace("ttft", "TTFT")


def metric_form(metric: Metric) -> text.Format:
    """How values of a metric are written."""
    if metric in MEASURED_METRIC_OF_DIFFERENCE:
        return text.signed_seconds
    if metric is Metric.BUS_BANDWIDTH_BYTES_PER_SECOND:
        return text.bytes_per_second
    if metric.name.endswith("TOKENS_PER_SECOND"):
        return text.tokens_per_second
    if metric.name.endswith("SAMPLES_PER_SECOND"):
        return text.samples_per_second
    return text.seconds


def predicted_text(row: ComparisonRow) -> str:
    """The predicted interval, or which inputs it would need."""
    if row.predicted is not None:
        return text.interval(row.predicted, metric_form(row.metric))
    return "needs more inputs" if row.missing_inputs else NOTHING


def measured_text(row: ComparisonRow) -> str:
    """The measured mean."""
    return NOTHING if row.measured is None else metric_form(row.metric)(row.measured)


def range_text(row: ComparisonRow) -> str:
    """The range over rounds, where it is stated."""
    if row.measured_min is None or row.measured_max is None:
        return NOTHING
    form = metric_form(row.metric)
    return f"{form(row.measured_min)} to {form(row.measured_max)}"


def inside_text(row: ComparisonRow) -> str:
    """Whether the measured mean lies in the predicted interval."""
    return {None: NOTHING, True: "yes", False: "NO"}[row.inside_interval]


def implied_text(row: ComparisonRow) -> str:
    """The bandwidth at which the bytes would explain the measurement."""
    return NOTHING if row.implied_bytes_per_second is None else text.bytes_per_second(row.implied_bytes_per_second)


def ratio_text(row: ComparisonRow) -> str:
    """The implied bandwidth over the assumed one."""
    return NOTHING if row.implied_bandwidth_ratio is None else text.percent(row.implied_bandwidth_ratio)


def _cells(row: ComparisonRow) -> list[str]:
    return [
        row.subject,
        metric_name(row.metric),
        predicted_text(row),
        measured_text(row),
        range_text(row),
        NOTHING if row.measured_fraction is None else text.signed_percent(row.measured_fraction),
        inside_text(row),
        implied_text(row),
        ratio_text(row),
    ]
