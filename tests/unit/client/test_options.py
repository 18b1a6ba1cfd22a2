import math
from datetime import timedelta
from typing import Any

import pytest

from linkbound.client.options import UNSET, Timeout, resolve_timeout_seconds
from linkbound.domain.errors import InvalidArgumentError


@pytest.mark.parametrize(
    ("timeouts", "seconds"),
    [
        ((), 7.0),
        ((UNSET, UNSET), 7.0),
        ((2, 3), 2.0),
        ((UNSET, 3.5), 3.5),
        ((timedelta(milliseconds=1500), 3), 1.5),
        ((None, 3), None),
        ((UNSET, None), None),
    ],
)
def test_the_first_timeout_that_is_set_holds(timeouts: tuple[Timeout, ...], seconds: float | None) -> None:
    assert resolve_timeout_seconds(*timeouts, default_seconds=7.0) == seconds


@pytest.mark.parametrize("timeout", [0, -1.0, math.nan, math.inf, timedelta(0), timedelta(seconds=-3), True, "5", [1]])
def test_a_timeout_is_a_number_above_zero(timeout: Any) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        resolve_timeout_seconds(timeout, default_seconds=7.0)
    assert [violation.field for violation in caught.value.field_violations] == ["timeout_seconds"]


def test_unset_differs_from_none_and_says_its_name() -> None:
    assert UNSET is not None
    assert repr(UNSET) == "UNSET"
