"""Fixtures of several integration tests."""

from collections.abc import Iterator

import pytest

from tests.integration.replaceable import Replaceable


@pytest.fixture
def replaceable() -> Iterator[Replaceable]:
    """An estimator that can be killed and replaced."""
    server = Replaceable()
    yield server
    server.process.kill()
    server.process.communicate()
