"""Clients of the two services, blocking and for asyncio, and what they take. Everything is loaded when it is used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from linkbound.client.aio_estimator import AsyncEstimatorClient
    from linkbound.client.aio_ingest import AsyncIngestClient
    from linkbound.client.aio_record_writer import AsyncRecordWriter
    from linkbound.client.aio_sample_writer import AsyncSampleWriter
    from linkbound.client.estimator import EstimatorClient
    from linkbound.client.ingest import IngestClient
    from linkbound.client.options import UNSET, Timeout, TlsFiles
    from linkbound.client.record_writer import RecordWriter
    from linkbound.client.sample_writer import SampleWriter
    from linkbound.client.spool.options import Spool, WhenFull

__all__ = [
    "UNSET",
    "AsyncEstimatorClient",
    "AsyncIngestClient",
    "AsyncRecordWriter",
    "AsyncSampleWriter",
    "EstimatorClient",
    "IngestClient",
    "RecordWriter",
    "SampleWriter",
    "Spool",
    "Timeout",
    "TlsFiles",
    "WhenFull",
]

_MODULES = {
    "UNSET": "options",
    "AsyncEstimatorClient": "aio_estimator",
    "AsyncIngestClient": "aio_ingest",
    "AsyncRecordWriter": "aio_record_writer",
    "AsyncSampleWriter": "aio_sample_writer",
    "EstimatorClient": "estimator",
    "IngestClient": "ingest",
    "RecordWriter": "record_writer",
    "SampleWriter": "sample_writer",
    "Spool": "spool.options",
    "Timeout": "options",
    "TlsFiles": "options",
    "WhenFull": "spool.options",
}


def __getattr__(name: str) -> object:
    """The public name `name`, loaded now."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names, loaded or not."""
    return sorted({*globals(), *__all__})
