"""What a type checker sees of the public clients. No tests run here; `make types` checks it.

`assert_type` holds that results are typed; a line with an ignore holds that the mistake on it is found, since an ignore
that is not needed is an error itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import assert_type

from linkbound import (
    AppendOutcome,
    AsyncEstimatorClient,
    AsyncIngestClient,
    CollectiveKind,
    EngineCalibration,
    EngineRequest,
    Estimate,
    EstimatorClient,
    IngestClient,
    Link,
    LinkComparison,
    Model,
    PhaseTraffic,
    PortTraffic,
    PrefillEstimate,
    PrefillWorkload,
    RequestRecord,
    Run,
    RunComparison,
    RunDetails,
    SampleColumns,
    ScheduleEstimate,
    SchedulePass,
    SchedulerSettings,
    ScheduleSummary,
    SeriesDescriptor,
    Spool,
    TrainingStep,
)
from linkbound.client.calibrate import calibrate_from_run, calibrate_from_run_async

WORKLOAD = PrefillWorkload(model="glm-5.3", tensor_parallel_size=8, prompt_tokens=8192)


def blocking(client: EstimatorClient, ingest: IngestClient) -> None:
    """Results of the blocking clients."""
    with client as entered:
        assert_type(entered, EstimatorClient)
    prefill = client.estimate_prefill(model="m", tensor_parallel_size=8, prompt_tokens=1, link="200g")
    assert_type(prefill, PrefillEstimate)
    assert_type(prefill.ttft_seconds, Estimate)
    assert_type(prefill.extra_ttft_seconds, Estimate | None)
    assert_type(client.compare_links(workload=WORKLOAD, old_link="1g", new_link="2g"), LinkComparison)
    for model in client.list_models(timeout_seconds=timedelta(seconds=3)):
        assert_type(model, Model)
    asked = [EngineRequest(prompt_tokens=1, output_tokens=1)]
    schedule = client.estimate_schedule(asked, scheduler=SchedulerSettings(max_num_batched_tokens=1))
    assert_type(schedule, ScheduleEstimate)
    assert_type(client.stream_schedule(asked), Iterator[SchedulePass | ScheduleSummary])
    for calibration in client.list_engine_calibrations():
        assert_type(calibration, EngineCalibration)
    assert_type(ingest.create_run("r"), Run)
    assert_type(ingest.get_run("r", timeout_seconds=None), RunDetails)
    assert_type(ingest.compare_run("r"), RunComparison)
    assert_type(list(ingest.list_request_records("r", subject="s")), list[RequestRecord])
    assert_type(ingest.query_traffic("r", windows_ns=[1_000_000], end_ns=5), tuple[PortTraffic, ...])
    assert_type(list(ingest.list_phase_traffic("r")), list[PhaseTraffic])
    assert_type(calibrate_from_run(client, ingest, "r", link="200g", subjects=["s"]), EngineCalibration)
    steps = [TrainingStep(subject="s", node_count=1, step_seconds=1.0)]
    assert_type(ingest.append("r", writer_id="w", sequence_number=1, records=steps), AppendOutcome)
    with ingest.writer("r", "w", [SeriesDescriptor(metric="m", node="n")]) as writer:
        writer.write([SampleColumns(series_index=0, time_ns=(1,), value=(1,))])
        assert_type(writer.committed, int)
    with ingest.record_writer("r", "w", spool=Spool("place")) as records:
        records.write(steps)
        assert_type(records.pending, int)


async def asynchronous(client: AsyncEstimatorClient, ingest: AsyncIngestClient) -> None:
    """Results of the asyncio clients."""
    async with client as entered:
        assert_type(entered, AsyncEstimatorClient)
    assert_type(
        await client.estimate_prefill(model="m", tensor_parallel_size=8, prompt_tokens=1, link="200g"), PrefillEstimate
    )
    async for model in client.list_models():
        assert_type(model, Model)
    assert_type(await ingest.compare_run("r"), RunComparison)
    assert_type(await ingest.query_traffic("r"), tuple[PortTraffic, ...])
    assert_type(await calibrate_from_run_async(client, ingest, "r", engine_calibration="e"), EngineCalibration)
    async with ingest.writer("r", "w", [SeriesDescriptor(metric="m", node="n")]) as writer:
        await writer.write([SampleColumns(series_index=0, time_ns=(1,), value=(1,))])
        assert_type(writer.rejected, int)


async def mistakes(client: EstimatorClient, other: AsyncEstimatorClient) -> None:
    """Each line is a mistake that has to be found."""
    client.estimate_prefill(model="m", tensor_parallel_size=8, prompt_tokens=1)  # type: ignore[call-arg]  # no link
    client.estimate_prefill("m", 8, 1, "200g")  # type: ignore[call-arg]  # keywords only
    client.estimate_decode(tensor_parallel_size=8, link="1g", modle="m")  # type: ignore[call-arg]  # misspelt
    await other.estimate_decode(tensor_parallel_size=8, link="1g", modle="m")  # type: ignore[call-arg]  # misspelt
    await other.estimate_decode(tensor_parallel_size="8", link="1g")  # type: ignore[arg-type]  # a number
    await other.import_model(b"{}")  # type: ignore[arg-type]  # text
    client.estimate_collective(kind="all_reduce", rank_count=2, link="1g")  # type: ignore[arg-type]  # an enum
    client.estimate_collective(kind=CollectiveKind.ALL_REDUCE, rank_count=2, link=200)  # type: ignore[arg-type]  # a link or its name
    calibrate_from_run(client, IngestClient(), "r", lnik="200g")  # type: ignore[call-arg]  # misspelt
    client.get_model("m", timeout_seconds="5")  # type: ignore[arg-type]  # a number
    Link(line_rate_bits_per_second=1).line_rate_bits_per_second = 2  # type: ignore[misc]  # frozen
    _ = other.get_model("m").model_id  # type: ignore[attr-defined]  # not awaited
    for _ in other.list_models():  # type: ignore[attr-defined]  # not async for
        pass
