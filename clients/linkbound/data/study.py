"""The measured records of the two source studies, as typed values.

The figures stand in `study.toml` beside this module; nothing is computed here beyond the bytes of a gradient.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from attrs import field, frozen

from linkbound.domain.link import Link
from linkbound.domain.metric import Metric, Spread


@frozen(kw_only=True)
class StudyLink:
    """A link of the first study and the run that measured over it."""

    key: str
    run_id: str
    title: str
    link: Link
    section: str


@frozen(kw_only=True)
class StudyTest:
    """Prompts of one test; they arrive together."""

    id: str
    request_count: int
    prompt_tokens: int


@frozen(kw_only=True)
class Measurement:
    """One printed value with its range, where that is printed."""

    link_key: str
    test_id: str
    metric: Metric
    value: Spread
    section: str


@frozen(kw_only=True)
class InferenceSystem:
    """What the first study measured on."""

    model: str
    model_as_printed: str
    hardware: str
    node_count: int
    tensor_parallel_size: int
    max_num_batched_tokens: int
    draft_token_count: int
    output_tokens: int
    engine: str
    nccl: str
    switch: str


@frozen(kw_only=True)
class InferenceStudy:
    """The first study: tensor-parallel inference over two links."""

    source: str
    system: InferenceSystem
    links: tuple[StudyLink, ...]
    tests: tuple[StudyTest, ...]
    measurements: tuple[Measurement, ...]

    def link(self, key: str) -> StudyLink:
        """The link named `key`; raises KeyError where there is none."""
        return {link.key: link for link in self.links}[key]

    def measured(self, link_key: str, test_id: str, metric: Metric) -> Spread | None:
        """The printed value of one metric of one test over one link; None: not printed."""
        for measurement in self.measurements:
            if (measurement.link_key, measurement.test_id, measurement.metric) == (link_key, test_id, metric):
                return measurement.value
        return None


@frozen(kw_only=True)
class BandwidthRow:
    """One setup of nccl-tests. The study states neither the collective nor the message size."""

    id: str
    node_count: int
    link: str
    line_rate_bits_per_second: int
    bus_bandwidth_bytes_per_second: float
    note: str = ""


@frozen(kw_only=True)
class FineTuningRow:
    """One setup of data-parallel fine-tuning, all values means; rates are of the whole cluster.

    `link` and `bandwidth_of` (an id of a `BandwidthRow`) are empty for one node alone.
    """

    node_count: int
    samples_per_second: float
    elapsed_seconds: float
    step_seconds: float
    link: str = ""
    bandwidth_of: str = ""


@frozen(kw_only=True)
class FineTuning:
    """One kind of fine-tuning: what is trained and how fast."""

    id: str
    section: str
    model: str
    trainable_parameters: int
    gradient_value_bytes: int
    rows: tuple[FineTuningRow, ...]

    @property
    def gradient_bytes(self) -> int:
        """Bytes of all gradients that one step all-reduces."""
        return self.trainable_parameters * self.gradient_value_bytes

    @property
    def compute_step_seconds(self) -> float:
        """Step time of one node alone, as measured."""
        (alone,) = [row.step_seconds for row in self.rows if row.node_count == 1]
        return alone


@frozen(kw_only=True)
class PreTrainingRow:
    """One setup of pre-training and the inputs that a prediction of it would need."""

    node_count: int
    tokens_per_second: float
    missing_inputs: tuple[str, ...] = field(converter=tuple)
    link: str = ""


@frozen(kw_only=True)
class MultiNodeStudy:
    """The second study: bandwidth and data-parallel training."""

    source: str
    nccl_run_id: str
    nccl_section: str
    bandwidths: tuple[BandwidthRow, ...]
    training_run_id: str
    fine_tunings: tuple[FineTuning, ...]
    pre_training_id: str
    pre_training_section: str
    pre_trainings: tuple[PreTrainingRow, ...]

    def bandwidth(self, row_id: str) -> BandwidthRow:
        """The nccl-tests row named `row_id`; raises KeyError where there is none."""
        return {row.id: row for row in self.bandwidths}[row_id]


@frozen(kw_only=True)
class Study:
    """Both studies."""

    inference: InferenceStudy
    multi_node: MultiNodeStudy

    @property
    def run_ids(self) -> tuple[str, ...]:
        """Ids of all runs of the studies, in the order in which they are told."""
        inference = tuple(link.run_id for link in self.inference.links)
        return (*inference, self.multi_node.nccl_run_id, self.multi_node.training_run_id)


def setup_name(kind: str, node_count: int, link: str) -> str:
    """The subject of a training setup: `full, 4 nodes, QSFP`."""
    nodes = f"{node_count} node{'s' if node_count > 1 else ''}"
    return ", ".join(part for part in (kind, nodes, link) if part)


def load_study() -> Study:
    """Reads `study.toml`."""
    text = files("linkbound.data").joinpath("study.toml").read_text(encoding="utf-8")
    tables = tomllib.loads(text)
    return Study(inference=_inference(tables["tensor_parallel"]), multi_node=_multi_node(tables["multi_node"]))


def _inference(table: Mapping[str, Any]) -> InferenceStudy:
    return InferenceStudy(
        source=table["source"],
        system=InferenceSystem(**table["system"]),
        links=tuple(_link(key, row) for key, row in table["links"].items()),
        tests=tuple(StudyTest(**row) for row in table["tests"]),
        measurements=tuple(_measurements(table["groups"], table["round_count"])),
    )


def _link(key: str, row: Mapping[str, Any]) -> StudyLink:
    return StudyLink(
        key=key,
        run_id=row["run"],
        title=row["title"],
        link=Link(
            line_rate_bits_per_second=row["line_rate_bits_per_second"],
            pcie_function_count=row.get("pcie_function_count"),
            measured_bits_per_second=row.get("measured_bits_per_second"),
        ),
        section=row["section"],
    )


def _measurements(groups: Sequence[Mapping[str, Any]], round_count: int) -> list[Measurement]:
    return [
        Measurement(
            link_key=row["link"],
            test_id=row["test"],
            metric=Metric[group["metric"]],
            value=Spread(
                mean=row["mean"],
                minimum=row.get("minimum"),
                maximum=row.get("maximum"),
                round_count=round_count,
            ),
            section=group["section"],
        )
        for group in groups
        for row in group["rows"]
    ]


def _multi_node(table: Mapping[str, Any]) -> MultiNodeStudy:
    nccl_tests, pre_training = table["nccl_tests"], table["pre_training"]
    return MultiNodeStudy(
        source=table["source"],
        nccl_run_id=nccl_tests["run"],
        nccl_section=nccl_tests["section"],
        bandwidths=tuple(BandwidthRow(**row) for row in nccl_tests["rows"]),
        training_run_id=table["training"]["run"],
        fine_tunings=tuple(_fine_tuning(row) for row in table["fine_tuning"]),
        pre_training_id=pre_training["id"],
        pre_training_section=pre_training["section"],
        pre_trainings=tuple(PreTrainingRow(**row) for row in pre_training["rows"]),
    )


def _fine_tuning(table: Mapping[str, Any]) -> FineTuning:
    rows = tuple(FineTuningRow(**row) for row in table["rows"])
    return FineTuning(**{**table, "rows": rows})
