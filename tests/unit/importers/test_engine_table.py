"""Measured times of an engine as a file: fields, short forms, and what is wrong with one."""

from typing import Any

import pytest
from attrs import evolve

from linkbound.domain.engine import (
    BurstPoint,
    BurstTable,
    EnginePoint,
    EngineRequest,
    EngineTable,
    SchedulerSettings,
)
from linkbound.domain.errors import InvalidArgumentError
from linkbound.domain.layout import ParallelLayout
from linkbound.domain.link import Link
from linkbound.domain.measured_range import MeasuredRange
from linkbound.importers.engine_table import EngineFile, read_engine_file

HEAD = """
model = "glm-5.3"
tensor_parallel_size = 8
sources = ["a rack"]
link = { line_rate_bits_per_second = 200_000_000_000 }
scheduler = { max_num_batched_tokens = 4096 }
"""
POINT = """
[[points]]
label = "P1"
prompt_tokens = 1024
output_tokens = 64
ttft_seconds = [1]
"""
ONE = EngineRequest(prompt_tokens=1024, output_tokens=64)
FILE = EngineFile(
    table=EngineTable(
        model="glm-5.3",
        layout=ParallelLayout(tensor_parallel_size=8),
        link=Link(line_rate_bits_per_second=200 * 10**9),
        scheduler=SchedulerSettings(max_num_batched_tokens=4096),
        points=(EnginePoint(label="P1", requests=(ONE,), ttft_seconds=(1.0,)),),
    ),
    sources=("a rack",),
)


def with_point(**fields: Any) -> EngineFile:
    (point,) = FILE.table.points
    return evolve(FILE, table=evolve(FILE.table, points=(evolve(point, **fields),)))


def test_a_point_of_one_request() -> None:
    assert read_engine_file(HEAD + POINT) == FILE


def test_ranges_of_rounds() -> None:
    ranges = "ttft_range_seconds = [{ least = 0.9, largest = 1.1 }]\noutput_tokens_per_second = 20\n"
    speeds = "output_range_tokens_per_second = { least = 19, largest = 21.5 }\n"
    assert read_engine_file(HEAD + POINT + ranges + speeds) == with_point(
        ttft_range_seconds=(MeasuredRange(least=0.9, largest=1.1),),
        output_tokens_per_second=20.0,
        output_range_tokens_per_second=MeasuredRange(least=19.0, largest=21.5),
    )


def test_several_requests_that_are_alike() -> None:
    measured = POINT.replace("[1]", "[1, 2, 3]")
    expected = with_point(requests=(ONE,) * 3, ttft_seconds=(1.0, 2.0, 3.0))
    assert read_engine_file(f"{HEAD}{measured}request_count = 3\n") == expected


def test_requests_that_arrive_by_time() -> None:
    measured = POINT.replace("[1]", "[1, 2]")
    requests = (evolve(ONE, arrival_seconds=0.0), evolve(ONE, arrival_seconds=0.5))
    assert read_engine_file(f"{HEAD}{measured}arrival_seconds = [0, 0.5]\n") == with_point(
        requests=requests, ttft_seconds=(1.0, 2.0)
    )


def test_every_field_as_it_is() -> None:
    spelt_out = """
model_config_json = "{}"
layout = { tensor_parallel_size = 2, ranks_per_node = 2 }
link = { measured_bits_per_second = 383_000_000, transport = "LINK_TRANSPORT_TCP" }
inner_link = { line_rate_bits_per_second = 1 }
[bursts]
least_header_ratio = 1.05
points = [{ message_bytes = 5, least_bits_per_second = 6, largest_bits_per_second = 7 }]
[scheduler]
engine = "vllm-0.32"
max_num_batched_tokens = 9
[[points]]
label = "L"
last_ttft_seconds = 2.5
requests = [
  { prompt_tokens = 1, output_tokens = 2 },
  { prompt_tokens = 3, output_tokens = 4, arrival_pass = 5 },
]
"""
    found = read_engine_file(spelt_out)
    assert found.sources == ()
    assert found.table.bursts == BurstTable(
        least_header_ratio=1.05,
        points=(BurstPoint(message_bytes=5, least_bits_per_second=6, largest_bits_per_second=7),),
    )
    assert found.table.layout == ParallelLayout(tensor_parallel_size=2, ranks_per_node=2)
    assert found.table.scheduler.engine == "vllm-0.32"
    assert found.table.points[0].requests[1].arrival_pass == 5


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "layout: is missing"),
        ("= nothing", "line 1"),
        (HEAD, "points: is missing"),
        (HEAD + "points = 5", "points: is not an array"),
        (HEAD + "points = [5]", "points[0]"),
        (HEAD + "layout = { tensor_parallel_size = 8 }\n" + POINT, "tensor_parallel_size: is given beside a layout"),
        (HEAD + "speed = 5\n" + POINT, "speed: is not a key of it"),
        (HEAD.replace('["a rack"]', "[5]") + POINT, "sources: are not an array of texts"),
        (HEAD.replace('["a rack"]', '"a rack"') + POINT, "sources: are not an array of texts"),
        (HEAD + POINT + "speed = 5", "points[0].speed: is not a key of it"),
        (HEAD + POINT + "requests = []", "points[0]: has requests, and what stands for them"),
        (HEAD + POINT + "request_count = 0", "points[0].request_count"),
        (HEAD + POINT + "request_count = true", "points[0].request_count"),
        (HEAD + POINT + "request_count = 1001", "points[0].request_count"),
        (HEAD + POINT + "arrival_seconds = 5", "points[0].arrival_seconds: is not an array"),
        (HEAD + POINT + "arrival_seconds = []", "points[0].request_count"),
        (HEAD + POINT + "arrival_seconds = [0.0]\nrequest_count = 2", "1 arrivals are not those of 2 requests"),
        (HEAD + POINT.replace("prompt_tokens = 1024\n", ""), "points[0].requests[0].prompt_tokens: is missing"),
        (HEAD + POINT.replace("[1]", '["1"]'), "ttft_seconds[0]: is not of the type float"),
        (HEAD + "a = " + "[" * 5000, ""),
    ],
)
def test_what_is_wrong_is_told_with_its_place(content: str, message: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        read_engine_file(content)
    (violation,) = caught.value.field_violations
    assert violation.field == "file"
    assert message in violation.description
