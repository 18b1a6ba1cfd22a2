"""Columns are the same on the wire as if protobuf had written them number by number."""

from __future__ import annotations

import sys
from array import array
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkbound.convert.packed import add_columns, as_column, column_of
from linkbound.convert.sweep import sweep_columns_from_proto
from linkbound.domain.errors import InternalError
from linkbound.estimator.v1.sweep_pb2 import StreamSweepResponse
from tests.strategies.values import INT64

WHOLES = st.lists(st.integers(*INT64), max_size=300)
REALS = st.lists(st.floats(allow_nan=False), max_size=300)


@given(wholes=WHOLES, reals=REALS)
def test_what_is_added_as_columns_is_what_protobuf_writes(wholes: list[int], reals: list[float]) -> None:
    columns: dict[str, array[Any]] = {"sent_bytes_per_rank": array("q", wholes), "network_seconds": array("d", reals)}
    message = add_columns(StreamSweepResponse(start_index=7), columns)
    plain = StreamSweepResponse(start_index=7, sent_bytes_per_rank=wholes, network_seconds=reals)
    assert message == plain
    assert message.SerializeToString() == plain.SerializeToString()
    assert column_of(plain, "sent_bytes_per_rank", "q") == columns["sent_bytes_per_rank"]
    assert column_of(plain, "network_seconds", "d") == columns["network_seconds"]


@given(wholes=WHOLES)
def test_on_a_machine_with_the_other_byte_order_entries_are_turned_around(wholes: list[int]) -> None:
    column, turned = array("q", wholes), array("q", wholes)
    turned.byteswap()
    other = "big" if sys.byteorder == "little" else "little"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("linkbound.convert.packed.sys.byteorder", other)
        message = add_columns(StreamSweepResponse(), {"sent_bytes_per_rank": column})
        back = column_of(message, "sent_bytes_per_rank", "q")
    assert list(message.sent_bytes_per_rank) == list(turned if other == "big" else column)
    assert back == column == array("q", wholes)


def test_an_array_stays_as_it_is() -> None:
    column = array("d", [1.5])
    assert as_column("d", column) is column
    assert as_column("d", [1.5]) == column
    assert as_column("d", array("f", [1.5])) == column


@pytest.mark.parametrize(
    "message",
    [
        StreamSweepResponse(point_count=2, sent_bytes_per_rank=[1], network_seconds=[1.0, 2.0]),
        StreamSweepResponse(point_count=1, sent_bytes_per_rank=[1, 2], network_seconds=[1.0, 2.0]),
        StreamSweepResponse(
            point_count=1, sent_bytes_per_rank=[1], network_seconds=[1.0], extra_ttft_lower_seconds=[1.0]
        ),
    ],
)
def test_columns_of_different_length_are_refused(message: StreamSweepResponse) -> None:
    with pytest.raises(InternalError) as caught:
        sweep_columns_from_proto(message)
    assert caught.value.reason == "MALFORMED_ANSWER"
