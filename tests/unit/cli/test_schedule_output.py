"""A schedule on stdout: printed as it comes, and not kept."""

import json
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from linkbound import EngineRequest, EstimatorClient
from linkbound.cli.schedule_json import print_schedule_as_json
from linkbound.cli.schedule_text import blocks
from linkbound.convert.json import message_to_json
from linkbound.convert.schedule import schedule_pass_to_proto, schedule_summary_to_proto
from linkbound.domain.schedule import PassShare, SchedulePass, ScheduleSummary

FEW = [EngineRequest(prompt_tokens=8192, output_tokens=1 + index) for index in range(5)]


def test_passes_are_printed_as_they_come(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing before the first of them, which may fail; each before the next one is replayed."""
    printed: list[str] = []
    with EstimatorClient() as client:
        whole = client.estimate_schedule(FEW)
    answer: list[SchedulePass | ScheduleSummary] = [*whole.passes, whole.summary]

    def entries() -> Iterator[SchedulePass | ScheduleSummary]:
        for entry in answer:
            printed.append(capsys.readouterr().out)
            yield entry

    print_schedule_as_json(entries())
    printed.append(capsys.readouterr().out)
    assert printed[0] == ""
    for one, text in zip(whole.passes, printed[1:], strict=False):
        assert json.loads(text[text.index('{"') :]) == message_to_json(schedule_pass_to_proto(one))
    document = json.loads("".join(printed))
    assert document == {
        "passes": [message_to_json(schedule_pass_to_proto(one)) for one in whole.passes],
        **message_to_json(schedule_summary_to_proto(whole.summary)),
    }


@pytest.mark.parametrize("shown", [print_schedule_as_json, lambda entries: list(blocks(entries, FEW))])
def test_passes_are_not_kept(shown: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """But for those that the text shows."""
    alive: weakref.WeakSet[Any] = weakref.WeakSet()
    most = 0

    def entries() -> Iterator[SchedulePass | ScheduleSummary]:
        nonlocal most
        for number in range(500):
            one = SchedulePass(scheduled=(PassShare(0, number),), repeat=1)
            alive.add(one)
            yield one
            del one
            most = max(most, len(alive))
        with EstimatorClient() as client:
            yield client.estimate_schedule(FEW).summary

    shown(entries())
    assert most < 60
    capsys.readouterr()
