from pathlib import Path
from typing import Any

import pytest

from linkbound import EstimatorClient, IngestClient, InvalidArgumentError, NotFoundError, TrainingStep
from linkbound.client import names


def test_a_prefix_is_taken_off_once_and_only_its_own() -> None:
    assert names.model_id("models/glm-5.3") == names.model_id("glm-5.3") == "glm-5.3"
    assert names.model_id("runs/glm-5.3") == "runs/glm-5.3"
    assert names.hardware_id("hardware/dgx-spark") == "dgx-spark"
    assert names.hardware_id("") == ""
    assert names.run_id("runs/runs/r") == "runs/r"


def test_clients_of_the_estimator_take_resource_names() -> None:
    with EstimatorClient() as client:
        assert client.get_model("models/glm-5.3") == client.get_model("glm-5.3")
        assert client.get_hardware("hardware/dgx-spark") == client.get_hardware("dgx-spark")
        answer = client.estimate_decode(
            model="models/glm-5.3", tensor_parallel_size=8, link="200g", hardware="hardware/dgx-spark"
        )
        assert answer.model == "glm-5.3"


@pytest.mark.parametrize("name", ["GLM-5.3", "GLM_5.3", "glm 5.3"])
def test_another_spelling_is_not_found_and_the_right_one_is_near(name: str) -> None:
    with EstimatorClient() as client, pytest.raises(NotFoundError) as caught:
        client.get_model(name)
    assert caught.value.near_names[0] == "glm-5.3"


@pytest.mark.parametrize("name", ["", "x" * 65, "glm\n5.3", "\ud800", 5, None])
def test_what_can_be_no_name_is_a_violation(name: Any) -> None:
    with EstimatorClient() as client, pytest.raises(InvalidArgumentError) as caught:
        client.get_model(name)
    assert [violation.field for violation in caught.value.field_violations] == ["model"]


def test_clients_of_the_ingest_service_take_resource_names(tmp_path: Path) -> None:
    with IngestClient(data_directory=tmp_path) as client:
        client.create_run("r1")
        steps = [TrainingStep(subject="s", node_count=1, step_seconds=1.0)]
        assert client.append("runs/r1", writer_id="w", sequence_number=1, records=steps).committed_sequence_number == 1
        assert client.get_run("runs/r1") == client.get_run("r1")
        assert client.compare_run("runs/r1") == client.compare_run("r1")
        assert client.seal_run("runs/r1", expected_row_count=1) == client.get_run("r1").run
        assert client.delete_run("runs/r1").total_row_count == 1
