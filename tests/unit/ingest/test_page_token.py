from datetime import UTC, datetime

import pytest

from ingest_service.core.page_token import PagePosition, decode_page_token, encode_page_token
from linkbound.domain.errors import InvalidArgumentError


def test_a_token_restores_its_position() -> None:
    position = PagePosition(create_time=datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC), run_id="study-109g")
    assert decode_page_token(encode_page_token(position)) == position


def test_the_empty_token_asks_for_the_first_page() -> None:
    assert decode_page_token("") is None


@pytest.mark.parametrize(
    "token", ["x", "!!!!", "AAAA", "W10=", "WzEsMl0=", "e30=", "WyIyMDI2LTAxLTAyIiwgInIiXQ==", "ü"]
)
def test_anything_else_is_refused_by_name(token: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        decode_page_token(token)
    assert [v.field for v in caught.value.field_violations] == ["page_token"]
