from typing import Any

import pytest
from attrs import evolve

from linkbound.client import ingest_questions
from linkbound.domain.errors import InvalidArgumentError
from linkbound.domain.records import RequestRecord
from linkbound.domain.run import Setting


def test_settings_are_sorted_by_key() -> None:
    request = ingest_questions.create_run("r1", settings={"link": "200g", "engine": "x"}).request
    assert request.settings == (Setting(key="engine", value="x"), Setting(key="link", value="200g"))


def test_two_creations_with_the_same_content_are_the_same_request() -> None:
    first, second = (
        ingest_questions.create_run("r1", settings=settings).request
        for settings in ({"a": "1", "b": "2"}, {"b": "2", "a": "1"})
    )
    assert first == second


def test_a_stream_is_opened_without_knowing_what_is_stored() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        ingest_questions.open_stream_request("R 1", writer_id="", series=[])
    assert [v.field for v in caught.value.field_violations] == ["run", "writer_id", "series"]


def test_what_is_no_sequence_of_records_is_a_violation() -> None:
    records: Any = None
    with pytest.raises(InvalidArgumentError) as caught:
        ingest_questions.append("r1", writer_id="w", sequence_number=1, records=records)
    assert [v.field for v in caught.value.field_violations] == ["records"]


def test_a_record_to_append_states_no_writer() -> None:
    """It would be lost: the append says who wrote all of its records."""
    record = RequestRecord(subject="P1", round_index=0, request_index=0, prompt_tokens=1, output_tokens=1)
    stated = [evolve(record, writer_id=writer) for writer in ("", "another", "w")]
    with pytest.raises(InvalidArgumentError) as caught:
        ingest_questions.append("r1", writer_id="w", sequence_number=1, records=stated)
    problem = "is stated; the append names the writer of all of its records"
    assert [(v.field, v.description) for v in caught.value.field_violations] == [
        ("records[1].writer_id", f"'another' {problem}"),
        ("records[2].writer_id", f"'w' {problem}"),
    ]
