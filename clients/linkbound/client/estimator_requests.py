"""Requests of the estimator from the keywords of the clients. Pure; written once for sync and async.

Every violation of a call comes at once: a link given as text that is no rate does not hide a bad token count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from linkbound.domain.collective import CollectiveKind, CollectiveRequest
from linkbound.domain.decode import DecodeRequest
from linkbound.domain.errors import InvalidArgumentError, Violation
from linkbound.domain.link import Link
from linkbound.domain.link_comparison import EmulatedLink, LinkComparisonRequest
from linkbound.domain.prefill import PrefillRequest
from linkbound.domain.quantities import parse_rate_bits_per_second
from linkbound.domain.rules import as_tuple, shown
from linkbound.domain.tp_projection import TpProjectionRequest
from linkbound.domain.training import TrainingStepRequest
from linkbound.domain.workload import DecodeWorkload, PrefillWorkload

LinkOrRate = Link | str
"""A link, or its effective rate as people write it: `200g`, `22.14GB/s`."""

T = TypeVar("T")

_STAND_IN = Link(line_rate_bits_per_second=1)
"""Takes the place of a link that could not be read, so that the other rules are still checked."""


class _Links:
    """Reads links and keeps what is wrong with them until the whole request can be judged."""

    def __init__(self) -> None:
        self._violations: list[Violation] = []

    def read(self, link: LinkOrRate, field: str) -> Link:
        """The link, or a stand-in if `link` is text that is no rate."""
        if not isinstance(link, str):
            return link
        try:
            return Link(line_rate_bits_per_second=parse_rate_bits_per_second(link, field))
        except InvalidArgumentError as error:
            self._violations.extend(error.field_violations)
            return _STAND_IN

    def read_optional(self, link: LinkOrRate | None, field: str) -> Link | None:
        """The link, None for None, or a stand-in if `link` is text that is no rate."""
        return None if link is None else self.read(link, field)

    def judge(self, build: Callable[[], T]) -> T:
        """What `build` makes; InvalidArgumentError with its violations and those of the links."""
        try:
            request = build()
        except InvalidArgumentError as error:
            raise InvalidArgumentError([*error.field_violations, *self._violations]) from None
        if self._violations:
            raise InvalidArgumentError(self._violations)
        return request


def prefill_request(
    workload: PrefillWorkload,
    *,
    link: LinkOrRate,
    to_link: LinkOrRate | None,
    baseline_ttft_seconds: float | None,
) -> PrefillRequest:
    """The request of `estimate_prefill`."""
    links = _Links()
    first, second = links.read(link, "link"), links.read_optional(to_link, "to_link")
    return links.judge(
        lambda: PrefillRequest(
            workload=workload, link=first, to_link=second, baseline_ttft_seconds=baseline_ttft_seconds
        )
    )


def decode_request(workload: DecodeWorkload, *, link: LinkOrRate, to_link: LinkOrRate | None) -> DecodeRequest:
    """The request of `estimate_decode`."""
    links = _Links()
    first, second = links.read(link, "link"), links.read_optional(to_link, "to_link")
    return links.judge(lambda: DecodeRequest(workload=workload, link=first, to_link=second))


def collective_request(
    *, kind: CollectiveKind, rank_count: int, link: LinkOrRate, message_bytes: int | None
) -> CollectiveRequest:
    """The request of `estimate_collective`."""
    links = _Links()
    read = links.read(link, "link")
    return links.judge(
        lambda: CollectiveRequest(kind=kind, rank_count=rank_count, link=read, message_bytes=message_bytes)
    )


def training_step_request(
    *, gradient_bytes: int, rank_count: int, link: LinkOrRate, compute_step_seconds: float
) -> TrainingStepRequest:
    """The request of `estimate_training_step`."""
    links = _Links()
    read = links.read(link, "link")
    return links.judge(
        lambda: TrainingStepRequest(
            gradient_bytes=gradient_bytes, rank_count=rank_count, link=read, compute_step_seconds=compute_step_seconds
        )
    )


def link_comparison_request(
    workload: PrefillWorkload | DecodeWorkload,
    *,
    old_link: LinkOrRate,
    new_link: LinkOrRate,
    baseline_seconds: float | None,
    emulation: EmulatedLink | None,
) -> LinkComparisonRequest:
    """The request of `compare_links`."""
    links = _Links()
    old, new = links.read(old_link, "old_link"), links.read(new_link, "new_link")
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
        )
    )


def tp_projection_request(
    workload: PrefillWorkload,
    *,
    baseline_ttft_seconds: float,
    link: LinkOrRate,
    to_link: LinkOrRate,
    tensor_parallel_sizes: Sequence[int],
) -> TpProjectionRequest:
    """The request of `project_tp_sizes`."""
    links = _Links()
    first, second = links.read(link, "link"), links.read(to_link, "to_link")
    return links.judge(
        lambda: TpProjectionRequest(
            workload=workload,
            baseline_ttft_seconds=baseline_ttft_seconds,
            link=first,
            to_link=second,
            tensor_parallel_sizes=as_tuple(tensor_parallel_sizes),
        )
    )
