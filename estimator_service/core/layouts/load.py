"""What a workload puts on links: in the busiest stage, with passes that follow each other, with stages in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from attrs import frozen

from estimator_service.core.elementwise import ceil_quotient, larger, smaller
from estimator_service.core.layouts.rows import Payload, RowBytes, StageKind, StageRow, row_bytes
from linkbound.domain.errors import Violation
from linkbound.domain.layout import CollectiveTraffic, ParallelLayout
from linkbound.domain.workload import DecodeWorkload, PrefillWorkload

BytesOfRow = Callable[[StageRow], float]


LARGEST_SENT_BYTES = 7 * 10**18
"""With packet headers within 64 bits. A tensor-parallel group alone stays below it: twice the largest payload of a
token times the most tokens; what spreads experts may not."""


@frozen(kw_only=True)
class PassTokens:
    """Tokens of each of `repeat_count` passes: of the busiest attention group, and of all groups together."""

    group_tokens: float
    any_tokens: float
    repeat_count: int


@frozen(kw_only=True)
class RowCounts:
    """Rows of a workload: of the busiest attention group, of all groups together, and of the one with fewest.

    `passes` are those that follow each other through several stages, equal ones together, none with more rows than the
    one before; empty: there is one stage or one pass. `fewest_tokens` None: there is one group.
    """

    group_tokens: float
    any_tokens: float
    logits_rows: int
    passes: tuple[PassTokens, ...] = ()
    fewest_tokens: float | None = None

    def of(self, payload: Payload) -> float:
        """Rows of one payload."""
        match payload:
            case Payload.GROUP_TOKEN:
                return self.group_tokens
            case Payload.ANY_TOKEN:
                return self.any_tokens
            case Payload.LOGITS:
                return self.logits_rows

    @property
    def without_logits(self) -> RowCounts:
        """The same without the rows whose logits are gathered."""
        return RowCounts(
            group_tokens=self.group_tokens,
            any_tokens=self.any_tokens,
            logits_rows=0,
            passes=self.passes,
            fewest_tokens=self.fewest_tokens,
        )

    @property
    def of_any_group(self) -> RowCounts:
        """The rows of whichever attention group has fewest."""
        fewest = self.group_tokens if self.fewest_tokens is None else self.fewest_tokens
        return RowCounts(group_tokens=fewest, any_tokens=self.any_tokens, logits_rows=0)


@frozen(kw_only=True)
class LinkLoad:
    """Bytes over one kind of link.

    `busiest_bytes`: of the busiest stage. `pipelined_bytes`: what keeps the path busy at least, where passes follow
    each other through the stages without a gap and no token is sent twice to a rank. `sequential_bytes`: of every
    stage, one after another. `any_node_bytes`: what each of these links carries at least, wherever its node stands.
    """

    busiest_bytes: float
    pipelined_bytes: float
    sequential_bytes: float
    any_node_bytes: float


NO_LOAD = LinkLoad(busiest_bytes=0.0, pipelined_bytes=0.0, sequential_bytes=0.0, any_node_bytes=0.0)


@frozen(kw_only=True)
class FabricLoad:
    """The load of the link between nodes, and that of a rank's link within a node."""

    outer: LinkLoad
    inner: LinkLoad


def busiest_group_requests(request_count: int, layout: ParallelLayout) -> int:
    """Requests of the attention group that has most: ceil(R / D) (`docs/formulas.md`, Layouts)."""
    return ceil_quotient(request_count, layout.data_parallel_size)


def prefill_rows(workload: PrefillWorkload, logits_rows: int) -> RowCounts:
    """The rows of prompts; without max_num_batched_tokens each is one pass (`docs/formulas.md`, Layouts)."""
    layout = workload.layout
    return RowCounts(
        group_tokens=workload.prompt_tokens * busiest_group_requests(workload.request_count, layout),
        any_tokens=workload.total_prompt_tokens,
        logits_rows=logits_rows,
        passes=tuple(_passes(workload)) if workload.pipeline_parallel_size > 1 else (),
        fewest_tokens=_fewest_rows(workload.prompt_tokens, workload.request_count, layout),
    )


def _passes(workload: PrefillWorkload) -> Iterator[PassTokens]:
    """Passes in their order: every attention group takes part that still has tokens, each with all that it can.

    Some groups have one request more than the others. Full passes of all groups are followed by the last pass of those
    with fewer, by full ones of those with more, and by the last of these.
    """
    largest = workload.max_num_batched_tokens or workload.prompt_tokens
    fewest, ahead_count = divmod(workload.request_count, workload.data_parallel_size)
    behind_tokens = workload.prompt_tokens * fewest
    ahead_tokens = behind_tokens + workload.prompt_tokens if ahead_count else behind_tokens
    behind_count = workload.data_parallel_size - ahead_count
    done = 0
    # After the last full pass of a group comes one with what is left, and then none: the passes change nowhere else.
    ends = {tokens // largest + more for tokens in (behind_tokens, ahead_tokens) for more in (0, 1)}
    for end in sorted(ends):
        behind, ahead = (
            larger(0, smaller(tokens - done * largest, largest)) for tokens in (behind_tokens, ahead_tokens)
        )
        if end > done and ahead:
            yield PassTokens(
                group_tokens=ahead,
                any_tokens=ahead_count * ahead + behind_count * behind,
                repeat_count=end - done,
            )
            done = end


def decode_rows(workload: DecodeWorkload) -> RowCounts:
    """The rows of one pass; each of them has logits (`docs/formulas.md`, Layouts)."""
    rows = workload.rows_per_request * busiest_group_requests(workload.request_count, workload.layout)
    return RowCounts(
        group_tokens=rows,
        any_tokens=workload.request_count * workload.rows_per_request,
        logits_rows=rows,
        fewest_tokens=_fewest_rows(workload.rows_per_request, workload.request_count, workload.layout),
    )


def _fewest_rows(rows_of_request: int, request_count: int, layout: ParallelLayout) -> int | None:
    """Of the attention group that has fewest requests; None: there is one group."""
    if layout.data_parallel_size == 1:
        return None
    return rows_of_request * (request_count // layout.data_parallel_size)


def counted_bytes(per_row: RowBytes, counts: RowCounts) -> float:
    """Bytes of one stage: rows of each payload times theirs (`docs/formulas.md`, Layouts)."""
    return (
        counts.group_tokens * per_row.group_token
        + counts.any_tokens * per_row.any_token
        + counts.logits_rows * per_row.logits
    )


def bytes_of_one_token(per_row: RowBytes, counts: RowCounts) -> float:
    """Bytes of one stage for one of all tokens, of which the busiest group has its share.

    (`docs/formulas.md`, Layouts)
    """
    return counts.group_tokens / counts.any_tokens * per_row.group_token + per_row.any_token


def stage_bytes(rows: Sequence[StageRow], counts: RowCounts, bytes_of_row: BytesOfRow) -> float:
    """The same of some of its collectives (`docs/formulas.md`, Layouts)."""
    return counted_bytes(row_bytes(rows, bytes_of_row), counts)


def fabric_load(kinds: Sequence[StageKind], counts: RowCounts) -> FabricLoad:
    """What `counts` put on both kinds of links (`docs/formulas.md`, Layouts)."""
    outer = _link_load(kinds, [kind.outer for kind in kinds], [kind.least_outer for kind in kinds], counts)
    if not any(kind.sends_within for kind in kinds):
        return FabricLoad(outer=outer, inner=NO_LOAD)
    inner = _link_load(kinds, [kind.inner for kind in kinds], [kind.least_inner for kind in kinds], counts)
    return FabricLoad(outer=outer, inner=inner)


def _link_load(
    kinds: Sequence[StageKind], most_of_row: Sequence[RowBytes], least_of_row: Sequence[RowBytes], counts: RowCounts
) -> LinkLoad:
    """Bytes over one kind of link, of each kind of stage what one row sends at most and at least."""
    most = [counted_bytes(of_row, counts) for of_row in most_of_row]
    pipelined = _of_all_stages(kinds, [counted_bytes(of_row, counts) for of_row in least_of_row])
    if counts.passes:
        pipelined = smaller(pipelined, _longest_chain_bytes(kinds, least_of_row, counts.passes))
    return LinkLoad(
        busiest_bytes=max(most),
        pipelined_bytes=pipelined,
        sequential_bytes=_of_all_stages(kinds, most),
        any_node_bytes=_any_node_bytes(least_of_row, counts, most),
    )


def _longest_chain_bytes(
    kinds: Sequence[StageKind], of_stages: Sequence[RowBytes], passes: Sequence[PassTokens]
) -> float:
    """The longest of the chains of passes of which each waits for the one before.

    A chain: some passes through one stage, the last of these, which has the fewest rows of them, through the others
    too, and all later ones through the last stage. Where equal passes follow each other, the chain of the last one is
    the longest, so that one of each run counts. As no pass loses rows where tokens are added, neither does the longest.
    """
    at_end = next(index for index, kind in enumerate(kinds) if kind.is_last)
    of_passes = [[_bytes_of_pass(of_row, one) for of_row in of_stages] for one in passes]
    later = sum([of_pass[at_end] * one.repeat_count for of_pass, one in zip(of_passes, passes, strict=True)])
    done = [0.0] * len(of_stages)
    longest = 0.0
    for of_pass, one in zip(of_passes, passes, strict=True):
        done = [sent + more * one.repeat_count for sent, more in zip(done, of_pass, strict=True)]
        later -= of_pass[at_end] * one.repeat_count
        ahead = max([sent - once for sent, once in zip(done, of_pass, strict=True)])
        longest = larger(longest, ahead + _of_all_stages(kinds, of_pass) + later)
    return longest


def _any_node_bytes(of_stages: Sequence[RowBytes], counts: RowCounts, most: Sequence[float]) -> float:
    """Least bytes of a stage that sends any, in the attention group with fewest rows.

    A node whose stages send nothing to others, the last ones, gets as much from the stage before.
    """
    if counts.fewest_tokens is None and len(of_stages) == 1:
        return most[0]
    fewest = counts.of_any_group
    sending = [counted_bytes(of_row, fewest) for of_row in of_stages if of_row.group_token or of_row.any_token]
    return min(sending, default=0.0)


def _of_all_stages(kinds: Sequence[StageKind], of_stages: Sequence[float]) -> float:
    return sum([sent * kind.stage_count for sent, kind in zip(of_stages, kinds, strict=True)])


def _bytes_of_pass(per_row: RowBytes, tokens: PassTokens) -> float:
    return tokens.group_tokens * per_row.group_token + tokens.any_tokens * per_row.any_token


def load_violations(load: FabricLoad, field: str) -> Iterator[Violation]:
    """The violation of `field`, what multiplies the bytes of a token, where no answer could count them.

    (`docs/formulas.md`, Layouts)
    """
    most = larger(load.outer.sequential_bytes, load.inner.sequential_bytes)
    if most > LARGEST_SENT_BYTES:
        yield Violation(field, f"{most:.3g} bytes in all are above {LARGEST_SENT_BYTES:.3g}")


def logits_bytes(kinds: Sequence[StageKind], logits_rows: int) -> float:
    """Bytes over the link between nodes to gather logits, of the stage that does (`docs/formulas.md`, Layouts)."""
    return max([logits_rows * kind.outer.logits for kind in kinds])


def busiest_kind(kinds: Sequence[StageKind], counts: RowCounts) -> StageKind:
    """The stage that sends most to other nodes, else within its node (`docs/formulas.md`, Layouts)."""
    if len(kinds) == 1:
        return kinds[0]
    return max(
        kinds,
        key=lambda kind: (counted_bytes(kind.outer, counts), counted_bytes(kind.inner, counts)),
    )


def traffic_rows(rows: Sequence[StageRow], counts: RowCounts) -> tuple[CollectiveTraffic, ...]:
    """The bytes of one stage by collective; what sends nothing is left out (`docs/formulas.md`, Layouts)."""
    traffic = []
    for row in rows:
        collective = row.collective
        row_count = counts.of(collective.payload)
        sent, inner_sent = round(row_count * row.outer_bytes), round(row_count * row.inner_bytes)
        if sent or inner_sent:
            traffic.append(
                CollectiveTraffic(
                    kind=collective.kind,
                    rank_group=collective.rank_group,
                    count_per_pass=row.count,
                    sent_bytes_per_rank=sent,
                    inner_sent_bytes_per_rank=inner_sent,
                    reason=collective.reason,
                )
            )
    return tuple(traffic)


def all_reduce_count(kinds: Sequence[StageKind]) -> int:
    """All-reduces of one pass through every stage; of a single rank, those that the model would have.

    (`docs/formulas.md`, Layouts)
    """
    if any(kind.sends for kind in kinds):
        return sum(kind.stage_count * kind.sending_all_reduce_count for kind in kinds)
    return sum(kind.stage_count * kind.all_reduce_count for kind in kinds)
