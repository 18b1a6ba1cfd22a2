"""What is loaded when: a command that asks one question in this process must start quickly."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import linkbound

TRANSPORT = {"grpc", "grpc_status", "grpc_health", "google.protobuf", "asyncio"}
STORAGE = {"duckdb", "numpy", "pyarrow"}
SERVICES = {"estimator_service", "ingest_service", "serving"}

ONE_ESTIMATE = """
from linkbound import EstimatorClient
with EstimatorClient('local:') as client:
    client.estimate_prefill(model='glm-5.3', tensor_parallel_size=8, prompt_tokens=8192, link='200g', to_link='100g')
"""


def loaded_by(code: str) -> set[str]:
    """Modules of a fresh interpreter after running `code`."""
    script = f"{code}\nimport sys\nprint('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_the_package_loads_nothing() -> None:
    loaded = loaded_by("import linkbound")
    assert loaded.isdisjoint(TRANSPORT | STORAGE | SERVICES | {"attrs", "attr"})
    assert not any(name.startswith("linkbound.") for name in loaded)


@pytest.mark.parametrize(
    "code",
    [
        "from linkbound import EstimatorClient\nEstimatorClient('local:')",
        "from linkbound import IngestClient\nIngestClient('local:')",
        "from linkbound.client import predict",
    ],
)
def test_a_client_of_this_process_loads_neither_transport_nor_services(code: str) -> None:
    assert loaded_by(code).isdisjoint(TRANSPORT | STORAGE | SERVICES)


def test_an_estimate_in_this_process_loads_no_transport_and_no_storage() -> None:
    loaded = loaded_by(ONE_ESTIMATE)
    assert "estimator_service.service" in loaded
    assert loaded.isdisjoint(TRANSPORT | STORAGE | {"ingest_service", "serving"})


def test_a_client_of_a_server_loads_no_service() -> None:
    loaded = loaded_by("from linkbound import EstimatorClient\nEstimatorClient('localhost:1')")
    assert "grpc" in loaded
    assert loaded.isdisjoint(STORAGE | SERVICES)


def test_the_version_is_that_of_the_distribution() -> None:
    root = Path(__file__).parents[3]
    assert tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"] == linkbound.__version__
