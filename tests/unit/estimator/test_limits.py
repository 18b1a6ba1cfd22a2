"""At the limits of every request and of every model, whole numbers stay within 64 bits and times stay finite."""

import math
from pathlib import Path

import pytest

from estimator_service.catalog.directory import Catalog
from estimator_service.catalog.files import CatalogError
from estimator_service.catalog.model_files import read_model
from estimator_service.service import Estimator
from linkbound.domain.catalog import LARGEST_MESSAGE_BYTES_PER_ROW
from linkbound.domain.collective import LARGEST_MESSAGE_BYTES, LARGEST_RANK_COUNT, CollectiveKind
from linkbound.domain.collective_estimate import CollectiveRequest
from linkbound.domain.decode import DecodeRequest
from linkbound.domain.estimate import LARGEST_QUANTITY, Estimate
from linkbound.domain.layout import LARGEST_PARALLEL_SIZE
from linkbound.domain.link import LARGEST_RATE_BITS_PER_SECOND, Link
from linkbound.domain.link_comparison import LARGEST_BYTES_PER_PROMPT_TOKEN, EmulatedLink, LinkComparisonRequest
from linkbound.domain.prefill import PrefillRequest
from linkbound.domain.tp_projection import TpProjectionRequest
from linkbound.domain.training import TrainingStepRequest
from linkbound.domain.workload import (
    LARGEST_DRAFT_TOKEN_COUNT,
    LARGEST_PROMPT_TOKENS,
    LARGEST_REQUEST_COUNT,
    LARGEST_SECONDS,
    LARGEST_TOTAL_PROMPT_TOKENS,
    DecodeWorkload,
    PrefillWorkload,
)
from tests.property.estimator_strategies import parts_of

LARGEST_INT64 = 2**63 - 1
# The smallest MTU has the most header bytes.
SLOWEST = Link(line_rate_bits_per_second=1, roce_mtu_bytes=256)
FASTEST = Link(line_rate_bits_per_second=LARGEST_RATE_BITS_PER_SECOND, roce_mtu_bytes=256)

# 16-byte activations, 100,000 bytes a row in each of 350 sums: the largest payload of a row. 4,096 ranks divide the
# heads and the vocabulary.
LARGEST_MODEL = """
display_name = "Largest"
active_parameters = 1000000000000000
weight_bits_per_parameter = 64.0
sources = ["the limits"]

[architecture]
hidden_size = 6250
vocabulary_size = 999424
head_count = 4096
key_value_head_count = 4096
value_bytes = 16
is_complete = false

[[architecture.layers]]
layers = "0-348"

[[architecture.layers.mixers]]
type = "attention"
head_count = 4096
key_value_head_count = 4096
head_dim = 1
value_head_dim = 1
"""
BOARD = """
display_name = "Slowest board"
memory_bytes = 1
memory_bandwidth_bytes_per_second = 1
sources = ["the limits"]
"""


@pytest.fixture(name="estimator")
def estimator_of_the_largest_model(tmp_path: Path) -> Estimator:
    (tmp_path / "models").mkdir()
    (tmp_path / "hardware").mkdir()
    (tmp_path / "models" / "largest.toml").write_text(LARGEST_MODEL)
    (tmp_path / "hardware" / "board.toml").write_text(BOARD)
    return Estimator(Catalog(tmp_path))


def largest_prefill(request_count: int = 100, pass_tokens: int = 1) -> PrefillWorkload:
    return PrefillWorkload(
        model="largest",
        tensor_parallel_size=LARGEST_PARALLEL_SIZE,
        prompt_tokens=LARGEST_TOTAL_PROMPT_TOKENS // request_count,
        request_count=request_count,
        max_num_batched_tokens=pass_tokens,
    )


def largest_whole_number(answer: object) -> int:
    """The largest number in `answer`, after every number was checked."""
    whole_numbers = [0]
    for part in parts_of(answer):
        if isinstance(part, Estimate):
            assert part.upper is None or part.lower <= part.upper
        elif isinstance(part, float):
            assert math.isfinite(part)
            assert abs(part) <= LARGEST_QUANTITY
        elif isinstance(part, int):
            whole_numbers.append(abs(part))
    assert max(whole_numbers) <= LARGEST_INT64
    return max(whole_numbers)


@pytest.mark.parametrize("request_count", [100, LARGEST_REQUEST_COUNT])
@pytest.mark.parametrize("pass_tokens", [1, LARGEST_PROMPT_TOKENS])
@pytest.mark.parametrize("links", [(SLOWEST, FASTEST), (FASTEST, SLOWEST)])
def test_prefill(estimator: Estimator, request_count: int, pass_tokens: int, links: tuple[Link, Link]) -> None:
    workload = largest_prefill(request_count, pass_tokens)
    answer = estimator.estimate_prefill(PrefillRequest(workload=workload, link=links[0], to_link=links[1]))
    # The limits are tight: the largest answer needs more than half of the range.
    assert largest_whole_number(answer) > LARGEST_INT64 // 2


def test_prefill_with_the_largest_baseline(estimator: Estimator) -> None:
    answer = estimator.estimate_prefill(
        PrefillRequest(workload=largest_prefill(), link=FASTEST, to_link=SLOWEST, baseline_ttft_seconds=LARGEST_SECONDS)
    )
    assert largest_whole_number(answer) > 0
    assert answer.ttft_seconds.upper is not None
    assert answer.ttft_seconds.upper > 1e19


def test_decode(estimator: Estimator) -> None:
    workload = DecodeWorkload(
        model="largest",
        tensor_parallel_size=LARGEST_PARALLEL_SIZE,
        request_count=LARGEST_REQUEST_COUNT,
        draft_token_count=LARGEST_DRAFT_TOKEN_COUNT,
        acceptance_length_tokens=1.0 + LARGEST_DRAFT_TOKEN_COUNT,
        hardware="board",
    )
    for links in ((SLOWEST, FASTEST), (FASTEST, SLOWEST)):
        answer = estimator.estimate_decode(DecodeRequest(workload=workload, link=links[0], to_link=links[1]))
        assert largest_whole_number(answer) > 10**14


@pytest.mark.parametrize("link", [SLOWEST, FASTEST])
def test_collective_and_training(estimator: Estimator, link: Link) -> None:
    collective = estimator.estimate_collective(
        CollectiveRequest(
            kind=CollectiveKind.ALL_REDUCE,
            rank_count=LARGEST_RANK_COUNT,
            message_bytes=LARGEST_MESSAGE_BYTES,
            link=link,
        )
    )
    assert largest_whole_number(collective) > LARGEST_MESSAGE_BYTES
    training = estimator.estimate_training_step(
        TrainingStepRequest(
            gradient_bytes=LARGEST_MESSAGE_BYTES,
            rank_count=LARGEST_RANK_COUNT,
            link=link,
            compute_step_seconds=LARGEST_SECONDS,
        )
    )
    assert largest_whole_number(training) > LARGEST_MESSAGE_BYTES


def test_comparison_with_an_emulation(estimator: Estimator) -> None:
    answer = estimator.compare_links(
        LinkComparisonRequest(
            prefill=largest_prefill(),
            old_link=FASTEST,
            new_link=SLOWEST,
            baseline_seconds=LARGEST_SECONDS,
            emulation=EmulatedLink(
                link=FASTEST,
                ttft_seconds=LARGEST_SECONDS,
                counter_bytes_per_prompt_token=LARGEST_BYTES_PER_PROMPT_TOKEN,
            ),
        )
    )
    assert largest_whole_number(answer) > LARGEST_INT64 // 2
    assert answer.emulation is not None
    assert answer.emulation.real_link_extra_seconds.upper is not None
    assert answer.emulation.real_link_extra_seconds.upper > 1e20


def test_projection(estimator: Estimator) -> None:
    answer = estimator.project_tp_sizes(
        TpProjectionRequest(
            workload=largest_prefill(),
            baseline_ttft_seconds=LARGEST_SECONDS,
            link=FASTEST,
            to_link=SLOWEST,
            tensor_parallel_sizes=(1, 2, LARGEST_PARALLEL_SIZE),
        )
    )
    assert largest_whole_number(answer) > LARGEST_INT64 // 2


def test_a_model_with_more_bytes_in_a_row_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "larger.toml"
    path.write_text(LARGEST_MODEL.replace("0-348", "0-349"))
    with pytest.raises(CatalogError, match=str(LARGEST_MESSAGE_BYTES_PER_ROW)):
        read_model(path)
