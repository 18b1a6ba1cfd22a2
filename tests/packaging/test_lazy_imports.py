"""What is heavy is loaded only when it is used: the command has to start quickly."""

import subprocess
import sys

import pytest

HEAVY = ["duckdb", "numpy", "pyarrow", "estimator_service", "ingest_service", "serving"]


def loaded_by(statement: str) -> set[str]:
    """Returns the modules that a fresh interpreter holds after running `statement`."""
    code = f"{statement}\nimport sys\nprint(*sys.modules, sep='\\n')"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(result.stdout.splitlines())


@pytest.mark.parametrize("module", ["linkbound", "linkbound.client", "linkbound.cli.main"])
def test_importing_loads_nothing_heavy(module: str) -> None:
    loaded = loaded_by(f"import {module}")
    assert module in loaded
    assert loaded.isdisjoint(HEAVY)


def test_the_domain_types_need_no_transport() -> None:
    loaded = loaded_by("import linkbound.domain")
    assert loaded.isdisjoint([*HEAVY, "grpc", "google.protobuf", "click", "structlog"])


def test_arrays_are_for_sweeps_alone() -> None:
    estimate = "from linkbound import EstimatorClient\nEstimatorClient().get_model('glm-5.3')"
    loaded = loaded_by(estimate)
    assert "estimator_service.service" in loaded
    assert loaded.isdisjoint(["numpy", "linkbound.domain.sweep", "linkbound.domain.batch"])
