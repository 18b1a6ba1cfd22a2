"""Runs the demo: starts the pair, predicts, appends what the studies measured, compares, stops, keeps the database."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from attrs import frozen

from linkbound.client.estimator import EstimatorClient
from linkbound.client.ingest import IngestClient
from linkbound.client.local.blocking import STORE_FILE_NAME
from linkbound.data.study import InferenceStudy, MultiNodeStudy, Study, StudyLink, load_study
from linkbound.demo import database, predictions, records
from linkbound.demo.servers import Servers, Service
from linkbound.demo.tables import Comparisons
from linkbound.domain.errors import DeadlineExceededError, UnavailableError
from linkbound.domain.prediction import Prediction
from linkbound.domain.records import Record
from linkbound.domain.run_comparison import RunComparison

WRITER_ID = "demo"

Progress = Callable[[str], None]
"""Told what happens, one line each."""


@frozen
class DemoResult:
    """What the demo found, and the database it left."""

    study: Study
    comparisons: Comparisons
    database_path: Path


@frozen
class _RunFacts:
    """What a run says about itself."""

    display_name: str
    source: str
    settings: Mapping[str, str]


@frozen
class Loader:
    """Fills `ingest` with runs whose predictions come from `estimator`; `progress` is told of each."""

    estimator: EstimatorClient
    ingest: IngestClient
    progress: Progress

    def load(self, study: Study) -> Comparisons:
        """Loads the four runs of the studies and compares each.

        Raises AlreadyExistsError if a run of the same name with other content is there.
        """
        inference, multi_node = study.inference, study.multi_node
        faster_link, slower_link = inference.links
        faster = self._load_run(
            faster_link.run_id,
            _inference_facts(inference, faster_link),
            predictions.of_first_link(self.estimator, inference, faster_link),
            records.inference_records(inference, faster_link),
        )
        slower = self._load_run(
            slower_link.run_id,
            _inference_facts(inference, slower_link),
            predictions.of_changed_link(self.estimator, inference, slower_link, faster_link, faster),
            records.inference_records(inference, slower_link),
        )
        nccl = self._load_run(
            multi_node.nccl_run_id,
            _RunFacts("nccl-tests between DGX Spark", multi_node.source, {"section": multi_node.nccl_section}),
            predictions.of_bandwidths(self.estimator, multi_node),
            records.bandwidth_records(multi_node),
        )
        training = self._load_run(
            multi_node.training_run_id,
            _training_facts(multi_node),
            predictions.of_training(self.estimator, multi_node, nccl),
            records.training_records(multi_node),
        )
        return Comparisons(faster, slower, nccl, training)

    def _load_run(self, run_id: str, facts: _RunFacts, prediction: Prediction, rows: Sequence[Record]) -> RunComparison:
        """Freezes the prediction with a new run, then appends and compares.

        The run stays open: the rows of a sealed one are in files beside the database, which is handed over alone.
        """
        self.ingest.create_run(
            run_id,
            display_name=facts.display_name,
            source=facts.source,
            settings=facts.settings,
            prediction=prediction,
        )
        self.ingest.append(run_id, writer_id=WRITER_ID, sequence_number=1, records=rows)
        stored = self.ingest.get_run(run_id).row_counts.total_row_count
        self.progress(f"{run_id}: {len(prediction.values)} predicted values frozen, {stored} records stored")
        return self.ingest.compare_run(run_id)


def run_demo(directory: Path, progress: Progress) -> DemoResult:
    """Runs everything and leaves `study.duckdb` in `directory`.

    Raises the classes of `linkbound.domain.errors`; no server is left behind, whatever happens.
    """
    study = load_study()
    path = database.prepare(directory, study.run_ids)
    with tempfile.TemporaryDirectory(prefix="linkbound-demo-") as scratch:
        progress("starting the estimator and the ingest service on free ports")
        with Servers(Path(scratch)) as servers:
            comparisons = _load(study, servers, progress)
            progress("stopping both servers")
            servers.stop()
        database.publish(Path(scratch) / STORE_FILE_NAME, path)
    progress(f"wrote {path}")
    return DemoResult(study, comparisons, path)


def _load(study: Study, servers: Servers, progress: Progress) -> Comparisons:
    addresses = {service: servers.address(service) for service in Service}
    for service, address in addresses.items():
        progress(f"{service.value} serves on {address}")
    with EstimatorClient(addresses[Service.ESTIMATOR]) as estimator, IngestClient(addresses[Service.INGEST]) as ingest:
        try:
            return Loader(estimator, ingest, progress).load(study)
        except (UnavailableError, DeadlineExceededError):
            # A service that died says more about it than a connection that broke.
            servers.check()
            raise


def _inference_facts(study: InferenceStudy, link: StudyLink) -> _RunFacts:
    system = study.system
    return _RunFacts(
        display_name=f"{system.model_as_printed} on TP{system.tensor_parallel_size}, {link.title}",
        source=study.source,
        settings={
            "engine": system.engine,
            "hardware": f"{system.node_count} x {system.hardware}",
            "link": link.title,
            "max_num_batched_tokens": f"{system.max_num_batched_tokens}",
            "model": system.model_as_printed,
            "nccl.version": system.nccl,
            "output_tokens": f"{system.output_tokens}",
            "speculative_draft_tokens": f"{system.draft_token_count}",
            "switch": system.switch,
            "tensor_parallel_size": f"{system.tensor_parallel_size}",
        },
    )


def _training_facts(study: MultiNodeStudy) -> _RunFacts:
    trained = ", ".join(f"{kind.model} {kind.id}" for kind in study.fine_tunings)
    return _RunFacts(
        display_name="data-parallel training on DGX Spark",
        source=study.source,
        settings={"trained": f"{trained}, {study.pre_training_id}"},
    )
