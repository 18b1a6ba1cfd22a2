"""Calls beyond a limit are refused, and whatever ends a call makes room for the next."""

import pytest

from linkbound.domain.errors import ResourceExhaustedError
from serving.admission import CallLimit


def full() -> ResourceExhaustedError:
    return ResourceExhaustedError("full", reason="QUEUE_FULL", retry_delay_seconds=1.0)


def test_as_many_calls_run_as_the_limit_says() -> None:
    limit = CallLimit(2, full)
    with limit.slot():
        assert limit.refusal() is None
        with limit.slot():
            assert limit.refusal() is not None
            with pytest.raises(ResourceExhaustedError), limit.slot():
                pass
        assert limit.refusal() is None


def test_a_call_that_fails_makes_room_too() -> None:
    limit = CallLimit(1, full)
    with pytest.raises(RuntimeError), limit.slot():
        raise RuntimeError
    assert limit.refusal() is None
