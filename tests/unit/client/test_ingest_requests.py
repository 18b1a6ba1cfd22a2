import pytest

from linkbound.client import ingest_requests
from linkbound.domain.errors import InvalidArgumentError
from linkbound.domain.run import Setting


def test_settings_are_sorted_by_key() -> None:
    request = ingest_requests.create_run_request(
        "r1", display_name="", source="", settings={"link": "200g", "engine": "x"}, prediction=None
    )
    assert request.settings == (Setting(key="engine", value="x"), Setting(key="link", value="200g"))


def test_each_creation_can_be_told_from_the_next() -> None:
    first, second = (
        ingest_requests.create_run_request("r1", display_name="", source="", settings={}, prediction=None)
        for _ in range(2)
    )
    assert first.request_id
    assert first.request_id != second.request_id


def test_a_stream_is_opened_without_knowing_what_is_stored() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        ingest_requests.open_stream_request("R 1", writer_id="", series=[])
    assert [v.field for v in caught.value.field_violations] == ["run_id", "writer_id", "series"]
