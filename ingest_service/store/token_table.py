"""Chunks of tokens in `tokens`: one row for each chunk of each request, beside the rows of `requests`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from linkbound.domain.records import AppendRequest, RequestRecord

HOT_TOKENS = "hot.tokens"
"""The table that appends go into."""

TOKENS_OF_A_CHUNK = 1
"""Where a record gives the times of its chunks and not their tokens."""


def token_rows(request: AppendRequest) -> pa.Table | None:
    """The chunks of the records of one append as rows; None where it has none."""
    records = [
        (index, record)
        for index, record in enumerate(request.records)
        if isinstance(record, RequestRecord) and record.chunk_offset_ns
    ]
    if not records:
        return None
    counts = np.array([len(record.chunk_offset_ns) for _, record in records])
    row_count = int(counts.sum())
    places = pa.array(np.repeat(np.arange(len(records)), counts))
    offsets = [offset for _, record in records for offset in record.chunk_offset_ns]
    tokens = [
        token_count
        for _, record in records
        for token_count in record.chunk_tokens or (TOKENS_OF_A_CHUNK,) * len(record.chunk_offset_ns)
    ]
    return pa.table(
        {
            "run_id": pa.repeat(request.run, row_count),
            "writer_id": pa.repeat(request.writer_id, row_count),
            "sequence_number": pa.repeat(pa.scalar(request.sequence_number, pa.int64()), row_count),
            "record_index": pa.array([index for index, _ in records], pa.int32()).take(places),
            "subject": pa.array([record.subject for _, record in records], pa.string()).take(places),
            "round_index": pa.array([record.round_index for _, record in records], pa.int32()).take(places),
            "request_index": pa.array([record.request_index for _, record in records], pa.int32()).take(places),
            "chunk_index": pa.array(np.concatenate([np.arange(count, dtype=np.int32) for count in counts])),
            "offset_ns": pa.array(offsets, pa.int64()),
            "token_count": pa.array(tokens, pa.int32()),
        }
    )
