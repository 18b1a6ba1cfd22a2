from collections.abc import Iterator

import pytest

from tests.bound import bounded


@pytest.fixture(autouse=True)
def no_test_hangs() -> Iterator[None]:
    """A writer that waits for what never comes fails its test instead of holding up the others."""
    with bounded():
        yield
