"""From stored requests to a prediction: both servers, the recording at 400 Mb/s appended, 200 Mb/s predicted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from attrs import frozen

from linkbound import AsyncEstimatorClient, AsyncIngestClient, EstimatorClient, IngestClient
from linkbound.client.calibrate import calibrate_from_run, calibrate_from_run_async
from linkbound.domain.engine import EngineCalibration
from linkbound.domain.errors import NotFoundError
from tests.congruence.servers import ServerThread, estimator_server, ingest_server
from tests.golden.engine_tables import measured_engine
from tests.golden.recorded_requests import recorded_requests

pytestmark = pytest.mark.storage

RUN = "recording-400m"
RECORDING = measured_engine("engine_recording.toml")
SETTINGS = {
    "engine": "vLLM 0.32",
    "link": "383m",
    "tensor_parallel_size": "2",
    "max_num_batched_tokens": "4096",
    "long_prefill_token_threshold": "2048",
    "max_num_seqs": "8",
}
LARGEST_ERROR = {"L1": 0.06, "L2": 0.04, "L3": 0.04, "L4": 0.06}


@frozen
class Targets:
    estimator: str
    ingest: str


@pytest.fixture(scope="module")
def targets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Targets]:
    """Both services, the run with its settings and its requests, stored over the wire."""
    folder: Path = tmp_path_factory.mktemp("services")
    estimator = ServerThread(estimator_server(catalog_directory=folder / "catalog"))
    ingest = ServerThread(ingest_server(folder / "store"))
    try:
        with IngestClient(ingest.target) as client:
            client.create_run(RUN, source="a recording", settings=SETTINGS)
            stored = client.append(RUN, writer_id="bench", sequence_number=1, records=recorded_requests())
            assert stored.committed_sequence_number == 1
        yield Targets(estimator.target, ingest.target)
    finally:
        ingest.stop()
        estimator.stop()


def fitted(targets: Targets, name: str) -> EngineCalibration:
    with EstimatorClient(targets.estimator) as estimator, IngestClient(targets.ingest) as ingest:
        return calibrate_from_run(
            estimator, ingest, RUN, model_config_json=RECORDING.seen.model_config_json, engine_calibration=name
        )


def test_the_table_of_the_run_is_the_one_that_was_made_by_hand(targets: Targets) -> None:
    table = fitted(targets, "").table
    seen = RECORDING.seen
    assert (table.layout, table.scheduler) == (seen.layout, seen.scheduler)
    assert table.link.line_rate_bits_per_second == seen.link.measured_bits_per_second
    assert [point.label for point in table.points] == [point.label for point in seen.points]
    for point, expected in zip(table.points, seen.points, strict=True):
        assert point.ttft_seconds == pytest.approx(expected.ttft_seconds, abs=1e-6)
        assert point.output_tokens_per_second == pytest.approx(expected.output_tokens_per_second, abs=1e-4)
        for request, by_hand in zip(point.requests, expected.requests, strict=True):
            assert (request.prompt_tokens, request.output_tokens) == (by_hand.prompt_tokens, by_hand.output_tokens)
            assert request.arrival_seconds == pytest.approx(by_hand.arrival_seconds, abs=1e-6)


@pytest.mark.parametrize("point", RECORDING.unseen.points, ids=lambda point: point.label)
def test_what_was_stored_at_400_predicts_200(targets: Targets, point: object) -> None:
    (measured,) = [each for each in RECORDING.unseen.points if each is point]
    stored = fitted(targets, "lab")
    assert stored.engine_calibration_id == "lab"
    # The order of four that were sent within a millisecond is that of the run; at 200 only the rate is another.
    (seen,) = [each for each in stored.table.points if each.label == measured.label]
    with EstimatorClient(targets.estimator) as estimator:
        found = estimator.estimate_schedule(seen.requests, engine_calibration="lab", to_link="191m").summary
    predicted = sorted(
        times.ttft.calibrated_ttft_seconds.expected
        for times in found.requests
        if times.ttft is not None
        and times.ttft.calibrated_ttft_seconds is not None
        and times.ttft.calibrated_ttft_seconds.expected is not None
    )
    assert len(predicted) == len(measured.ttft_seconds)
    assert predicted == pytest.approx(measured.ttft_seconds, rel=LARGEST_ERROR[measured.label])


def test_the_sources_say_which_run_it_was_and_which_rounds_count(targets: Targets) -> None:
    run, engine, *points = fitted(targets, "").sources
    assert run.startswith(f"runs/{RUN}, created 20")
    assert run.endswith(" UTC, from a recording")
    assert engine.startswith("given: model; settings of the run: engine=vLLM 0.32, link=383m, ")
    assert points[0] == "L1: medians of rounds 0, 1, 2, 1 request each from lab, appended by bench"
    assert points[3] == "L4: medians of rounds 0, 1, 2, 4 requests each from lab, appended by bench"


async def test_an_event_loop_fits_the_same(targets: Targets) -> None:
    async with AsyncEstimatorClient(targets.estimator) as estimator, AsyncIngestClient(targets.ingest) as ingest:
        found = await calibrate_from_run_async(
            estimator, ingest, RUN, model_config_json=RECORDING.seen.model_config_json
        )
        with pytest.raises(NotFoundError):
            await calibrate_from_run_async(estimator, ingest, "recording-400")
    assert found == fitted(targets, "")
