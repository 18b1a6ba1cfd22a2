"""The estimator as an object: catalogue methods, pages, what it refuses, and what importing it loads."""

import base64
import subprocess
import sys
from collections.abc import Callable

import pytest

from estimator_service.catalog.directory import SHIPPED_DIRECTORY, Catalog
from estimator_service.core.version import ESTIMATOR_VERSION
from estimator_service.service import Estimator, default_estimator
from linkbound.domain.collective import CollectiveKind
from linkbound.domain.collective_estimate import CollectiveRequest
from linkbound.domain.decode import DecodeRequest
from linkbound.domain.errors import InvalidArgumentError, NotFoundError
from linkbound.domain.link import Link
from linkbound.domain.link_comparison import LinkComparisonRequest
from linkbound.domain.paging import PageRequest
from linkbound.domain.prefill import PrefillRequest
from linkbound.domain.tp_projection import TpProjectionRequest
from linkbound.domain.training import TrainingStepRequest
from linkbound.domain.workload import DecodeWorkload, PrefillWorkload

ESTIMATOR = default_estimator()
MODEL_IDS = list(Catalog(SHIPPED_DIRECTORY).models.ids)
LINK = Link(line_rate_bits_per_second=200 * 10**9)


@pytest.mark.parametrize("page_size", [1, 3, 4, 0, 1000, 2**31 - 1])
def test_pages_hold_every_model_once_in_order(page_size: int) -> None:
    ids: list[str] = []
    page_sizes = []
    token = ""
    # One page more than there are models would repeat some.
    for _ in range(len(MODEL_IDS) + 1):
        page = ESTIMATOR.list_models(PageRequest(page_size=page_size, page_token=token))
        ids += [model.model_id for model in page.entries]
        page_sizes.append(len(page.entries))
        token = page.next_page_token
        if not token:
            break
    assert ids == sorted(set(ids))
    assert ids == MODEL_IDS
    if 0 < page_size < 10:
        assert set(page_sizes[:-1]) == {page_size}
    assert all(page_sizes)


def test_hardware_pages() -> None:
    page = ESTIMATOR.list_hardware(PageRequest())
    ids = [entry.hardware_id for entry in page.entries]
    assert "dgx-spark" in ids
    assert ids == sorted(ids)
    assert page.next_page_token == ""


def encoded(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    "token",
    [
        "x",
        "not base64!",
        "\N{LATIN SMALL LETTER E WITH ACUTE}",
        encoded("glm-5"),
        encoded("1/hardware/dgx-spark"),
        encoded("2/models/glm-5"),
        encoded("1/models/"),
        encoded("1/models/glm-5") + "=",
        encoded("1/models/\N{LATIN SMALL LETTER E WITH ACUTE}"),
    ],
)
def test_a_token_of_another_list_is_refused(token: str) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        ESTIMATOR.list_models(PageRequest(page_token=token))
    assert [violation.field for violation in raised.value.field_violations] == ["page_token"]


def test_a_token_of_its_own_list_is_not() -> None:
    """Guards the refusals above: the same form is taken where it belongs."""
    page = ESTIMATOR.list_models(PageRequest(page_token=encoded("1/models/glm-5")))
    assert page.entries[0].model_id == "glm-5.1"
    first = ESTIMATOR.list_models(PageRequest(page_size=2))
    assert first.next_page_token == encoded(f"1/models/{MODEL_IDS[1]}")


def test_a_token_continues_after_an_id_that_is_gone() -> None:
    page = ESTIMATOR.list_models(PageRequest(page_token=encoded("1/models/glm-5.15")))
    assert page.entries[0].model_id == "glm-5.2"


def test_entries_by_id() -> None:
    assert ESTIMATOR.get_model("glm-5.3").display_name == "GLM-5.3 (NVFP4)"
    assert ESTIMATOR.get_hardware("dgx-spark").display_name == "NVIDIA DGX Spark (GB10)"


@pytest.mark.parametrize(("get", "field"), [(Estimator.get_model, "model"), (Estimator.get_hardware, "hardware")])
@pytest.mark.parametrize("entry_id", ["", "a" * 65, "glm\n", "g\N{LATIN SMALL LETTER O WITH DIAERESIS}"])
def test_what_can_be_no_name_is_a_violation(get: Callable[[Estimator, str], object], field: str, entry_id: str) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        get(ESTIMATOR, entry_id)
    assert [violation.field for violation in raised.value.field_violations] == [field]


@pytest.mark.parametrize("entry_id", ["GLM-5.3", "glm_5.3", "glm 5.3"])
def test_another_spelling_is_not_found_and_the_right_one_is_near(entry_id: str) -> None:
    with pytest.raises(NotFoundError) as raised:
        ESTIMATOR.get_model(entry_id)
    assert raised.value.near_names[0] == "glm-5.3"


@pytest.mark.parametrize("get", [Estimator.get_model, Estimator.get_hardware])
def test_a_name_that_looks_like_a_path_is_a_name(get: Callable[[Estimator, str], object]) -> None:
    with pytest.raises(NotFoundError):
        get(ESTIMATOR, "../models/glm-5.3")


PREFILL = PrefillWorkload(model="glm-6", tensor_parallel_size=8, prompt_tokens=10)
DECODE = DecodeWorkload(model="glm-6", tensor_parallel_size=8)


@pytest.mark.parametrize(
    "ask",
    [
        lambda: ESTIMATOR.get_model("glm-6"),
        lambda: ESTIMATOR.estimate_prefill(PrefillRequest(workload=PREFILL, link=LINK)),
        lambda: ESTIMATOR.estimate_decode(DecodeRequest(workload=DECODE, link=LINK)),
        lambda: ESTIMATOR.compare_links(LinkComparisonRequest(prefill=PREFILL, old_link=LINK, new_link=LINK)),
        lambda: ESTIMATOR.project_tp_sizes(
            TpProjectionRequest(
                workload=PREFILL, baseline_ttft_seconds=1, link=LINK, to_link=LINK, tensor_parallel_sizes=(8,)
            )
        ),
    ],
)
def test_an_unknown_model_is_not_found_with_near_names(ask: Callable[[], object]) -> None:
    with pytest.raises(NotFoundError) as raised:
        ask()
    assert raised.value.reason == "MODEL_NOT_FOUND"
    assert "glm-5" in raised.value.near_names
    assert "glm-5" in raised.value.message


def test_every_answer_carries_the_version_of_the_formulas() -> None:
    prefill = PrefillWorkload(model="glm-5.3", tensor_parallel_size=8, prompt_tokens=10)
    decode = DecodeWorkload(model="glm-5.3", tensor_parallel_size=8)
    kind = CollectiveKind.ALL_REDUCE
    answers = (
        ESTIMATOR.estimate_prefill(PrefillRequest(workload=prefill, link=LINK)),
        ESTIMATOR.estimate_decode(DecodeRequest(workload=decode, link=LINK)),
        ESTIMATOR.estimate_collective(CollectiveRequest(kind=kind, rank_count=2, link=LINK)),
        ESTIMATOR.estimate_training_step(
            TrainingStepRequest(gradient_bytes=1, rank_count=2, link=LINK, compute_step_seconds=1)
        ),
        ESTIMATOR.compare_links(LinkComparisonRequest(prefill=prefill, old_link=LINK, new_link=LINK)),
        ESTIMATOR.project_tp_sizes(
            TpProjectionRequest(
                workload=prefill, baseline_ttft_seconds=1, link=LINK, to_link=LINK, tensor_parallel_sizes=(8,)
            )
        ),
    )
    assert {answer.estimator_version for answer in answers} == {ESTIMATOR_VERSION}
    assert all(answer.assumptions for answer in answers)


def test_unknown_hardware_is_not_found() -> None:
    workload = DecodeWorkload(model="glm-5.3", tensor_parallel_size=8, hardware="dgx")
    with pytest.raises(NotFoundError) as raised:
        ESTIMATOR.estimate_decode(DecodeRequest(workload=workload, link=LINK))
    assert raised.value.reason == "HARDWARE_NOT_FOUND"


def test_a_name_that_is_near_nothing_has_no_near_names() -> None:
    with pytest.raises(NotFoundError) as raised:
        ESTIMATOR.get_model("zzzzzzzzzzzz")
    assert raised.value.near_names == ()


def test_importing_the_service_loads_nothing_heavy() -> None:
    code = "import sys, estimator_service.service\nprint(*sys.modules, sep='\\n')"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(result.stdout.splitlines())
    assert "estimator_service.core.prefill" in loaded
    heavy = {"google", "google.protobuf", "grpc", "numpy", "duckdb", "pyarrow", "structlog", "click", "asyncio"}
    assert loaded.isdisjoint(heavy)
    # Only asking for an entry needs these.
    assert loaded.isdisjoint({"tomllib", "difflib"})
