"""The studies' measurements as records to append. Aggregates only: the studies print no single rounds or requests."""

from __future__ import annotations

from linkbound.data.study import InferenceStudy, MultiNodeStudy, StudyLink, setup_name
from linkbound.domain.records import CollectiveResult, MetricAggregate, TrainingStep


def inference_records(study: InferenceStudy, link: StudyLink) -> tuple[MetricAggregate, ...]:
    """What the first study measured over `link`."""
    return tuple(
        MetricAggregate(
            metric=measurement.metric,
            subject=measurement.test_id,
            value=measurement.value,
            source=f"section {measurement.section}",
        )
        for measurement in study.measurements
        if measurement.link_key == link.key
    )


def bandwidth_records(study: MultiNodeStudy) -> tuple[CollectiveResult, ...]:
    """The nccl-tests rows; the study says neither which collective nor of which size."""
    return tuple(
        CollectiveResult(
            subject=row.id,
            rank_count=row.node_count,
            bus_bandwidth_bytes_per_second=row.bus_bandwidth_bytes_per_second,
            source="; ".join(part for part in (f"section {study.nccl_section}", row.note) if part),
        )
        for row in study.bandwidths
    )


def training_records(study: MultiNodeStudy) -> tuple[TrainingStep, ...]:
    """All training rows: means over a whole job."""
    fine_tuning = tuple(
        TrainingStep(
            subject=setup_name(kind.id, row.node_count, row.link),
            node_count=row.node_count,
            step_seconds=row.step_seconds,
            samples_per_second=row.samples_per_second,
            elapsed_seconds=row.elapsed_seconds,
            source=f"section {kind.section}",
        )
        for kind in study.fine_tunings
        for row in kind.rows
    )
    pre_training = tuple(
        TrainingStep(
            subject=setup_name(study.pre_training_id, row.node_count, row.link),
            node_count=row.node_count,
            tokens_per_second=row.tokens_per_second,
            source=f"section {study.pre_training_section}",
        )
        for row in study.pre_trainings
    )
    return fine_tuning + pre_training
