"""Schedules and engine fits near ones that mean something: an answer that JSON can hold, or a typed refusal.

Messages that are random all over have too many required parts to get past the rules, so these begin with good ones, of
which a few fields are changed. `FUZZ_CALLS` says how many, `FUZZ_SEED` which.
"""

import json
import os
import random
import sys
from collections import Counter
from itertools import islice
from random import Random
from typing import Any

import pytest
from attrs import evolve
from google.protobuf.message import Message

from estimator_service.service import default_estimator
from linkbound.convert.engine_catalog import (
    fit_engine_calibration_request_from_proto,
    fit_engine_calibration_request_to_proto,
    fit_engine_calibration_response_to_proto,
)
from linkbound.convert.json import message_to_json
from linkbound.convert.schedule import schedule_request_from_proto, schedule_request_to_proto
from linkbound.convert.schedule_parts import parts_that_fit, schedule_part_to_proto
from linkbound.domain.engine import EngineRequest, FitEngineCalibrationRequest
from linkbound.domain.errors import Error, InternalError
from linkbound.domain.schedule import ScheduleRequest
from tests.fuzz.random_messages import random_value
from tests.golden.engine_tables import measured_engine

DEFAULT_CALL_COUNT = 150
LARGEST_CHANGE_COUNT = 4
READ_MESSAGE_COUNT = 5
ESTIMATOR = default_estimator()
STUDY, RECORDING = measured_engine("engine_study.toml"), measured_engine("engine_recording.toml")
TOGETHER = tuple(EngineRequest(prompt_tokens=size, output_tokens=64) for size in (4096, 100, 30_000))
IN_TURN = tuple(evolve(one, arrival_seconds=0.5 * index) for index, one in enumerate(TOGETHER))
BY_PASS = tuple(evolve(one, arrival_pass=3 * index) for index, one in enumerate(TOGETHER))
TABLE = STUDY.seen
OVER: dict[str, Any] = {"layout": TABLE.layout, "link": TABLE.link, "to_link": STUDY.unseen.link}
TIGHT = evolve(TABLE.scheduler, kv_block_count=2000, accepted_draft_tokens_per_pass=1.5)

SCHEDULES: list[Message] = [
    schedule_request_to_proto(request)
    for request in (
        ScheduleRequest(requests=BY_PASS, scheduler=TIGHT),
        ScheduleRequest(requests=TOGETHER, scheduler=TIGHT, model="glm-5.3", **OVER),
        ScheduleRequest(requests=TOGETHER, engine_table=TABLE, arrivals_may_split=True, **OVER),
        ScheduleRequest(requests=IN_TURN, engine_table=RECORDING.seen, to_link=RECORDING.unseen.link),
    )
]
FITS: list[Message] = [
    fit_engine_calibration_request_to_proto(FitEngineCalibrationRequest(table=table))
    for table in (STUDY.seen, STUDY.unseen, RECORDING.seen)
]


def changed(message: Message, source: Random) -> Any:
    """A copy of which a few fields are others, gone or there twice."""
    copy = type(message)()
    copy.CopyFrom(message)
    for _ in range(source.randint(0, LARGEST_CHANGE_COUNT)):
        _change(copy, source)
    return copy


def _change(message: Any, source: Random) -> None:
    """Go down at random, and change something there."""
    field = source.choice(message.DESCRIPTOR.fields)
    if field.message_type is None or source.random() < 0.1:
        _change_field(message, field, source)
    elif field.is_repeated:
        entries = getattr(message, field.name)
        if entries:
            _change(source.choice(entries), source)
    elif message.HasField(field.name):
        _change(getattr(message, field.name), source)


def _change_field(message: Any, field: Any, source: Random) -> None:
    content = getattr(message, field.name)
    if field.is_repeated:
        if content and source.random() < 0.5:
            del content[source.randrange(len(content))]
        else:
            content.extend(list(content)[:1])
    elif field.message_type is not None or source.random() < 0.2:
        message.ClearField(field.name)
    else:
        setattr(message, field.name, random_value(field, source))


def schedule(message: Any) -> list[Message]:
    parts = ESTIMATOR.stream_schedule(schedule_request_from_proto(message))
    return list(islice(map(schedule_part_to_proto, parts_that_fit(parts)), READ_MESSAGE_COUNT))


def fit(message: Any) -> list[Message]:
    request = evolve(fit_engine_calibration_request_from_proto(message), engine_calibration="")
    return [fit_engine_calibration_response_to_proto(ESTIMATOR.fit_engine_calibration(request))]


@pytest.mark.parametrize(("good", "ask"), [(SCHEDULES, schedule), (FITS, fit)], ids=["schedules", "fits"])
def test_what_is_not_answered_is_refused(good: list[Message], ask: Any, capsys: pytest.CaptureFixture[str]) -> None:
    call_count = int(os.environ.get("FUZZ_CALLS", DEFAULT_CALL_COUNT))
    source = random.Random(f"{os.environ.get('FUZZ_SEED', '0')} {ask.__name__}")
    ends: Counter[str] = Counter()
    for _ in range(call_count):
        message = changed(source.choice(good), source)
        try:
            for answer in ask(message):
                json.dumps(message_to_json(answer), allow_nan=False)
            ends["OK"] += 1
        except Error as error:
            assert not isinstance(error, InternalError), message
            ends[error.code] += 1
    assert ends["OK"] > 0
    assert ends["INVALID_ARGUMENT"] > 0
    with capsys.disabled():
        told = ", ".join(f"{count} {code}" for code, count in ends.most_common())
        sys.stdout.write(f"\n{call_count} changed {ask.__name__} questions: {told}\n")
