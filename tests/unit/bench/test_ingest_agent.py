"""The agents of the bench send what the service stores: the same readings in both encodings."""

from __future__ import annotations

import pytest

from ingest_service.core.arrow_batches import columns_of_arrow
from linkbound.convert.samples import sample_columns_from_proto
from linkbound.domain.samples import SampleColumns
from linkbound.ingest.v1.ingest_service_pb2 import SampleBatch
from tests.bench.ingest_agent import PAYLOAD_COUNT, payloads


def read(payload: bytes) -> tuple[SampleColumns, ...]:
    message = SampleBatch.FromString(payload)
    if message.WhichOneof("content") == "arrow_ipc":
        return columns_of_arrow(message.arrow_ipc)
    return tuple(map(sample_columns_from_proto, message.column_set.columns))


@pytest.mark.parametrize("series_count", [1, 4])
def test_a_batch_has_the_rows_that_are_counted_for_it(series_count: int) -> None:
    arrow, columns = (payloads(encoding, 100, series_count) for encoding in ("arrow", "columns"))
    assert len(arrow) == len(columns) == PAYLOAD_COUNT
    for by_arrow, by_columns in zip(arrow, columns, strict=True):
        readings = read(by_arrow)
        assert readings == read(by_columns)
        assert [len(entry.time_ns) for entry in readings] == [100 // series_count] * series_count
        assert all(list(entry.time_ns) == sorted(entry.time_ns) for entry in readings)
