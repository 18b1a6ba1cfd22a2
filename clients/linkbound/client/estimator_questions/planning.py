"""Which network to buy or keep: links compared, the slowest one that will do, switches and cables, the checklist."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from linkbound.client import names, operations
from linkbound.client.link_reader import LinkOrRate, LinkReader
from linkbound.client.options import UNSET, Timeout
from linkbound.client.question import Question, question
from linkbound.domain.errors import InvalidArgumentError, Violation
from linkbound.domain.link import Link
from linkbound.domain.link_comparison import EmulatedLink, LinkComparison, LinkComparisonRequest
from linkbound.domain.rules import shown
from linkbound.domain.workload import DecodeWorkload, PrefillWorkload

if TYPE_CHECKING:
    from linkbound.domain.planning import PlanCheck, SlowestLink
    from linkbound.domain.sizing import ClusterSizing


def compare_links(
    *,
    workload: PrefillWorkload | DecodeWorkload,
    old_link: LinkOrRate,
    new_link: LinkOrRate,
    baseline_seconds: float | None = None,
    emulation: EmulatedLink | None = None,
    inner_link: LinkOrRate | None = None,
    timeout_seconds: Timeout = UNSET,
) -> Question[LinkComparison]:
    """What `workload` loses or gains if `old_link` becomes `new_link`.

    `baseline_seconds` is measured over `old_link`: the TTFT of a prefill, the pass time of a decode. `emulation`
    is a TTFT measured over a link that stands in for the new one, `inner_link` the link of each rank within a node
    where it has several. Formulas: `docs/formulas.md`, link comparison.

    Raises InvalidArgumentError, NotFoundError for an unknown model or hardware, and the errors of the connection.
    """
    given: object = workload
    if not isinstance(given, PrefillWorkload | DecodeWorkload):
        kind = f"{shown(workload)} is neither a PrefillWorkload nor a DecodeWorkload"
        raise InvalidArgumentError([Violation("workload", kind)])
    links = LinkReader()
    request = links.build(
        lambda: LinkComparisonRequest(
            prefill=workload if isinstance(workload, PrefillWorkload) else None,
            decode=workload if isinstance(workload, DecodeWorkload) else None,
            old_link=links.read(old_link, "old_link"),
            new_link=links.read(new_link, "new_link"),
            baseline_seconds=baseline_seconds,
            emulation=emulation,
            inner_link=links.read_optional(inner_link, "inner_link"),
        )
    )
    return question(operations.COMPARE_LINKS, request, timeout_seconds)


def find_slowest_link(
    *,
    workload: PrefillWorkload,
    target_ttft_seconds: float,
    baseline_link: LinkOrRate | None = None,
    baseline_ttft_seconds: float | None = None,
    inner_link: LinkOrRate | None = None,
    timeout_seconds: Timeout = UNSET,
) -> Question[SlowestLink]:
    """The slowest effective rate that keeps `target_ttft_seconds`, and what links with a name do to it.

    `baseline_ttft_seconds` is measured over `baseline_link`; without it the answer is a rate below which the
    target cannot be kept. `inner_link` is that of each rank within a node of several, and stays. Formulas:
    `docs/formulas.md`, slowest link.

    Raises InvalidArgumentError, NotFoundError for an unknown model, and the errors of the connection.
    """
    from linkbound.domain.planning import SlowestLinkRequest

    links = LinkReader()
    request = links.build(
        lambda: SlowestLinkRequest(
            workload=workload,
            target_ttft_seconds=target_ttft_seconds,
            baseline_link=links.read_optional(baseline_link, "baseline_link"),
            baseline_ttft_seconds=baseline_ttft_seconds,
            inner_link=links.read_optional(inner_link, "inner_link"),
        )
    )
    return question(operations.FIND_SLOWEST_LINK, request, timeout_seconds)


def size_cluster(
    *,
    node_count: int,
    rate: LinkOrRate,
    switch: str = "",
    links_per_node: int | None = None,
    nic: str = "",
    oversubscription_ratio: float | None = None,
    timeout_seconds: Timeout = UNSET,
) -> Question[ClusterSizing]:
    """Switches and cables that connect `node_count` nodes, each with `links_per_node` links of `rate`, best first.

    `switch` and `nic` are ids of the catalogue: every switch and the adapter of a DGX Spark where they are empty.
    Leaves are joined without oversubscription unless `oversubscription_ratio` allows some. Rules:
    `docs/formulas.md`, sizing.

    Raises InvalidArgumentError, NotFoundError for an unknown switch or nic, and the errors of the connection.
    """
    from linkbound.domain.sizing import SizeClusterRequest

    links = LinkReader()
    request = links.build(
        lambda: SizeClusterRequest(
            node_count=node_count,
            rate_bits_per_second=_port_bits_per_second(links.read(rate, "rate")),
            switch=names.switch_id(switch),
            links_per_node=links_per_node,
            nic=names.nic_id(nic),
            oversubscription_ratio=oversubscription_ratio,
        )
    )
    return question(operations.SIZE_CLUSTER, request, timeout_seconds)


def check_plan(  # noqa: PLR0913 - the keywords are the request
    *,
    node_count: int,
    link: LinkOrRate,
    model: str = "",
    reference_link: LinkOrRate | None = None,
    tensor_parallel_size: int = 0,
    prompt_tokens: int = 0,
    target_ttft_seconds: float | None = None,
    baseline_ttft_seconds: float | None = None,
    switch: str = "",
    nic: str = "",
    hardware: str = "",
    counter_interval_seconds: float | None = None,
    timeout_seconds: Timeout = UNSET,
) -> Question[PlanCheck]:
    """The planning checklist for nodes over `link`, line by line; what else is not given is answered as missing.

    `baseline_ttft_seconds` is the TTFT of a prompt of `prompt_tokens`, measured over `reference_link` at
    `tensor_parallel_size`. Lines and rules: `docs/formulas.md`, plan.

    Raises InvalidArgumentError, NotFoundError for an unknown model, hardware, switch or nic, and the errors of the
    connection.
    """
    from linkbound.domain.planning import PlanRequest

    links = LinkReader()
    request = links.build(
        lambda: PlanRequest(
            model=names.model_id(model),
            node_count=node_count,
            link=links.read(link, "link"),
            reference_link=links.read_optional(reference_link, "reference_link"),
            tensor_parallel_size=tensor_parallel_size,
            prompt_tokens=prompt_tokens,
            target_ttft_seconds=target_ttft_seconds,
            baseline_ttft_seconds=baseline_ttft_seconds,
            switch=names.switch_id(switch),
            nic=names.nic_id(nic),
            hardware=names.hardware_id(hardware),
            counter_interval_seconds=counter_interval_seconds,
        )
    )
    return question(operations.CHECK_PLAN, request, timeout_seconds)


def _port_bits_per_second(link: Link) -> int:
    """The line rate of `link`, else its measured one; what is no link is passed on, for its rule to refuse."""
    given: Any = link
    if not isinstance(given, Link):
        return cast("int", given)
    return link.line_rate_bits_per_second or link.measured_bits_per_second or 0
