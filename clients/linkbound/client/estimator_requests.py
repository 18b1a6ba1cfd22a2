"""Requests of the estimator from the keywords of the clients. Pure; written once for sync and async.

Every violation of a call comes at once: a link given as text that is no rate does not hide a bad token count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import frozen

from linkbound.client import names
from linkbound.domain.calibration import CollectiveTable
from linkbound.domain.collective import CollectiveAlgorithm, CollectiveKind
from linkbound.domain.collective_estimate import CollectiveRequest
from linkbound.domain.decode import DecodeRequest
from linkbound.domain.errors import InvalidArgumentError, Violation
from linkbound.domain.link import Link
from linkbound.domain.link_comparison import EmulatedLink, LinkComparisonRequest
from linkbound.domain.link_presets import parse_link
from linkbound.domain.prefill import PrefillRequest
from linkbound.domain.rules import as_tuple, shown
from linkbound.domain.tp_projection import TpProjectionRequest
from linkbound.domain.training import DEFAULT_VALUE_BYTES, TrainingSharding, TrainingStepRequest
from linkbound.domain.workload import DecodeWorkload, PrefillWorkload

if TYPE_CHECKING:
    from linkbound.domain.batch import BatchQuestion, BatchRequest
    from linkbound.domain.layout_comparison import LayoutComparisonRequest
    from linkbound.domain.layout_recommendation import LayoutRecommendationRequest
    from linkbound.domain.sweep import SweepAxis, SweepRequest

LinkOrRate = Link | str
"""A link, its effective rate as people write it (`200g`, `22.14GB/s`), or its name (`spark-1f`)."""

T = TypeVar("T")

_STAND_IN = Link(line_rate_bits_per_second=1)
"""Takes the place of a link that could not be read, so that the other rules are still checked."""


class LinksRead:
    """Reads links and keeps what is wrong with them until the whole request can be judged."""

    def __init__(self) -> None:
        self._violations: list[Violation] = []

    def read(self, link: LinkOrRate, field: str) -> Link:
        """The link, or a stand-in if `link` is text that is neither a rate nor a name."""
        if not isinstance(link, str):
            return link
        try:
            return parse_link(link, field)
        except InvalidArgumentError as error:
            self._violations.extend(error.field_violations)
            return _STAND_IN

    def read_optional(self, link: LinkOrRate | None, field: str) -> Link | None:
        """The link, None for None, or a stand-in if `link` is text that is neither a rate nor a name."""
        return None if link is None else self.read(link, field)

    def read_each(self, links: Sequence[LinkOrRate], field: str) -> tuple[Link, ...]:
        """The links, each with its index in the field. What cannot be a tuple stays as it is; its rule refuses it."""
        given: Any = as_tuple(links)
        if not isinstance(given, tuple):
            return cast("tuple[Link, ...]", given)
        return tuple(self.read(link, f"{field}[{index}]") for index, link in enumerate(given))

    def judge(self, build: Callable[[], T]) -> T:
        """What `build` makes; InvalidArgumentError with its violations and those of the links."""
        try:
            request = build()
        except InvalidArgumentError as error:
            raise InvalidArgumentError([*error.field_violations, *self._violations]) from None
        if self._violations:
            raise InvalidArgumentError(self._violations)
        return request


@frozen(kw_only=True)
class LinkDetails:
    """What a question about a layout says of its links beside those between nodes, as callers give it."""

    inner_link: LinkOrRate | None = None
    rank_links: Sequence[LinkOrRate] = ()
    calibration: str = ""
    collective_table: CollectiveTable | None = None


def prefill_request(
    workload: PrefillWorkload,
    *,
    link: LinkOrRate,
    to_link: LinkOrRate | None,
    baseline_ttft_seconds: float | None,
    details: LinkDetails | None = None,
) -> PrefillRequest:
    """The request of `estimate_prefill`."""
    links, given = LinksRead(), details or LinkDetails()
    first, second = links.read(link, "link"), links.read_optional(to_link, "to_link")
    inner, others = links.read_optional(given.inner_link, "inner_link"), links.read_each(given.rank_links, "rank_links")
    return links.judge(
        lambda: PrefillRequest(
            workload=workload,
            link=first,
            to_link=second,
            baseline_ttft_seconds=baseline_ttft_seconds,
            inner_link=inner,
            rank_links=others,
            calibration=names.calibration_id(given.calibration),
            collective_table=given.collective_table,
        )
    )


def decode_request(
    workload: DecodeWorkload, *, link: LinkOrRate, to_link: LinkOrRate | None, details: LinkDetails | None = None
) -> DecodeRequest:
    """The request of `estimate_decode`."""
    links, given = LinksRead(), details or LinkDetails()
    first, second = links.read(link, "link"), links.read_optional(to_link, "to_link")
    inner, others = links.read_optional(given.inner_link, "inner_link"), links.read_each(given.rank_links, "rank_links")
    return links.judge(
        lambda: DecodeRequest(
            workload=workload,
            link=first,
            to_link=second,
            inner_link=inner,
            rank_links=others,
            calibration=names.calibration_id(given.calibration),
            collective_table=given.collective_table,
        )
    )


def collective_request(  # noqa: PLR0913 - the keywords are the request
    *,
    kind: CollectiveKind,
    rank_count: int,
    link: LinkOrRate,
    message_bytes: int | None,
    ranks_per_node: int = 1,
    inner_link: LinkOrRate | None = None,
    algorithm: CollectiveAlgorithm = CollectiveAlgorithm.UNSPECIFIED,
    calibration: str = "",
    collective_table: CollectiveTable | None = None,
) -> CollectiveRequest:
    """The request of `estimate_collective`."""
    links = LinksRead()
    outer, inner = links.read(link, "link"), links.read_optional(inner_link, "inner_link")
    return links.judge(
        lambda: CollectiveRequest(
            kind=kind,
            rank_count=rank_count,
            link=outer,
            message_bytes=message_bytes,
            ranks_per_node=ranks_per_node,
            inner_link=inner,
            algorithm=algorithm,
            calibration=names.calibration_id(calibration),
            collective_table=collective_table,
        )
    )


def training_step_request(  # noqa: PLR0913 - the keywords are the request
    *,
    link: LinkOrRate,
    rank_count: int,
    compute_step_seconds: float,
    gradient_bytes: int | None = None,
    model: str = "",
    lora_parameters: int | None = None,
    sharding: TrainingSharding = TrainingSharding.UNSPECIFIED,
    value_bytes: int = DEFAULT_VALUE_BYTES,
    calibration: str = "",
    collective_table: CollectiveTable | None = None,
) -> TrainingStepRequest:
    """The request of `estimate_training_step`."""
    links = LinksRead()
    read = links.read(link, "link")
    return links.judge(
        lambda: TrainingStepRequest(
            gradient_bytes=gradient_bytes,
            rank_count=rank_count,
            link=read,
            compute_step_seconds=compute_step_seconds,
            model=names.model_id(model),
            lora_parameters=lora_parameters,
            sharding=sharding,
            value_bytes=value_bytes,
            calibration=names.calibration_id(calibration),
            collective_table=collective_table,
        )
    )


def link_comparison_request(
    workload: PrefillWorkload | DecodeWorkload,
    *,
    old_link: LinkOrRate,
    new_link: LinkOrRate,
    baseline_seconds: float | None,
    emulation: EmulatedLink | None,
    inner_link: LinkOrRate | None = None,
) -> LinkComparisonRequest:
    """The request of `compare_links`."""
    links = LinksRead()
    old, new = links.read(old_link, "old_link"), links.read(new_link, "new_link")
    inner = links.read_optional(inner_link, "inner_link")
    given: object = workload
    if not isinstance(given, PrefillWorkload | DecodeWorkload):
        kind = f"{shown(workload)} is neither a PrefillWorkload nor a DecodeWorkload"
        raise InvalidArgumentError([Violation("workload", kind)])
    return links.judge(
        lambda: LinkComparisonRequest(
            prefill=workload if isinstance(workload, PrefillWorkload) else None,
            decode=workload if isinstance(workload, DecodeWorkload) else None,
            old_link=old,
            new_link=new,
            baseline_seconds=baseline_seconds,
            emulation=emulation,
            inner_link=inner,
        )
    )


def layout_comparison_request(  # noqa: PLR0913 - the keywords are the request
    *,
    model: str,
    model_config_json: str,
    node_count: int,
    ranks_per_node: int,
    link: LinkOrRate,
    inner_link: LinkOrRate | None,
    prompt_tokens: int,
    request_count: int,
    max_num_batched_tokens: int,
    hardware: str,
    calibration: str,
    collective_table: CollectiveTable | None,
    draft_token_count: int,
    output_tokens: int,
) -> LayoutComparisonRequest:
    """The request of `compare_layouts`."""
    from linkbound.domain.layout_comparison import LayoutComparisonRequest

    links = LinksRead()
    outer, inner = links.read(link, "link"), links.read_optional(inner_link, "inner_link")
    return links.judge(
        lambda: LayoutComparisonRequest(
            model=names.model_id(model),
            model_config_json=model_config_json,
            node_count=node_count,
            ranks_per_node=ranks_per_node,
            link=outer,
            inner_link=inner,
            prompt_tokens=prompt_tokens,
            request_count=request_count,
            max_num_batched_tokens=max_num_batched_tokens,
            hardware=names.hardware_id(hardware),
            calibration=names.calibration_id(calibration),
            collective_table=collective_table,
            draft_token_count=draft_token_count,
            output_tokens=output_tokens,
        )
    )


def layout_recommendation_request(  # noqa: PLR0913 - the keywords are the request
    *,
    model: str,
    model_config_json: str,
    node_count: int,
    ranks_per_node: int,
    link: LinkOrRate,
    inner_link: LinkOrRate | None,
    reference_link: LinkOrRate,
    prompt_tokens: int,
    request_count: int,
    max_num_batched_tokens: int,
    hardware: str,
    calibration: str,
    collective_table: CollectiveTable | None,
    baseline_tensor_parallel_size: int,
    baseline_ttft_seconds: float | None,
) -> LayoutRecommendationRequest:
    """The request of `recommend_layout`."""
    from linkbound.domain.layout_recommendation import LayoutRecommendationRequest

    links = LinksRead()
    outer, inner = links.read(link, "link"), links.read_optional(inner_link, "inner_link")
    reference = links.read(reference_link, "reference_link")
    return links.judge(
        lambda: LayoutRecommendationRequest(
            model=names.model_id(model),
            model_config_json=model_config_json,
            node_count=node_count,
            ranks_per_node=ranks_per_node,
            link=outer,
            inner_link=inner,
            reference_link=reference,
            prompt_tokens=prompt_tokens,
            request_count=request_count,
            max_num_batched_tokens=max_num_batched_tokens,
            hardware=names.hardware_id(hardware),
            calibration=names.calibration_id(calibration),
            collective_table=collective_table,
            baseline_tensor_parallel_size=baseline_tensor_parallel_size,
            baseline_ttft_seconds=baseline_ttft_seconds,
        )
    )


def tp_projection_request(
    workload: PrefillWorkload,
    *,
    baseline_ttft_seconds: float,
    link: LinkOrRate,
    to_link: LinkOrRate,
    tensor_parallel_sizes: Sequence[int],
    hardware: str = "",
) -> TpProjectionRequest:
    """The request of `project_tp_sizes`."""
    links = LinksRead()
    first, second = links.read(link, "link"), links.read(to_link, "to_link")
    return links.judge(
        lambda: TpProjectionRequest(
            workload=workload,
            baseline_ttft_seconds=baseline_ttft_seconds,
            link=first,
            to_link=second,
            tensor_parallel_sizes=as_tuple(tensor_parallel_sizes),
            hardware=names.hardware_id(hardware),
        )
    )


def batch_request(questions: Sequence[BatchQuestion]) -> BatchRequest:
    """The request of `batch_estimate`."""
    # The types of rarer questions are loaded when one is asked.
    from linkbound.domain.batch import BatchRequest

    return BatchRequest(questions=as_tuple(questions))


def sweep_request(
    workload: PrefillWorkload,
    *,
    link: LinkOrRate,
    to_link: LinkOrRate | None,
    axes: Sequence[SweepAxis],
    start_index: int,
    points_per_response: int | None,
) -> SweepRequest:
    """The request of `stream_sweep`."""
    from linkbound.domain.sweep import DEFAULT_POINTS_PER_RESPONSE, SweepRequest

    links = LinksRead()
    first, second = links.read(link, "link"), links.read_optional(to_link, "to_link")
    return links.judge(
        lambda: SweepRequest(
            workload=workload,
            link=first,
            to_link=second,
            axes=as_tuple(axes),
            start_index=start_index,
            points_per_response=DEFAULT_POINTS_PER_RESPONSE if points_per_response is None else points_per_response,
        )
    )
