"""Requests of the ingest service from the keywords of the clients. Pure; written once for sync and async."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from linkbound.client.names import run_id
from linkbound.domain.prediction import Prediction
from linkbound.domain.records import AppendRequest, Record
from linkbound.domain.rules import as_tuple
from linkbound.domain.run import CreateRunRequest, RunRequest, SealRunRequest, Setting
from linkbound.domain.samples import OpenStreamRequest, SeriesDescriptor


def create_run_request(
    run: str,
    *,
    display_name: str,
    source: str,
    settings: Mapping[str, str],
    prediction: Prediction | None,
) -> CreateRunRequest:
    """The request of `create_run`."""
    return CreateRunRequest(
        run_id=run,
        display_name=display_name,
        source=source,
        settings=tuple(Setting(key=key, value=settings[key]) for key in sorted(settings)),
        prediction=prediction,
    )


def run_request(run: str) -> RunRequest:
    """The request of what takes a run and nothing else."""
    return RunRequest(run=run_id(run))


def seal_run_request(run: str, *, expected_row_count: int | None) -> SealRunRequest:
    """The request of `seal_run`."""
    return SealRunRequest(run=run_id(run), expected_row_count=expected_row_count)


def append_request(run: str, *, writer_id: str, sequence_number: int, records: Sequence[Record]) -> AppendRequest:
    """The request of `append`."""
    return AppendRequest(
        run=run_id(run), writer_id=writer_id, sequence_number=sequence_number, records=as_tuple(records)
    )


def open_stream_request(run: str, *, writer_id: str, series: Sequence[SeriesDescriptor]) -> OpenStreamRequest:
    """The request that opens a sample stream of a writer that does not know yet what is stored."""
    return OpenStreamRequest(run=run_id(run), writer_id=writer_id, series=as_tuple(series))
