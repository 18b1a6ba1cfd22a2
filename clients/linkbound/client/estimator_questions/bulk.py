"""Many questions in one call, and sweeps. Their types are loaded when one is asked: a single estimate needs none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from linkbound.client import operations
from linkbound.client.link_reader import LinkOrRate, LinkReader
from linkbound.client.options import UNSET, Timeout
from linkbound.client.question import Question, Sweep
from linkbound.domain.rules import as_tuple
from linkbound.domain.workload import PrefillWorkload

if TYPE_CHECKING:
    from linkbound.domain.batch import BatchAnswer, BatchEstimate, BatchQuestion
    from linkbound.domain.errors import Error
    from linkbound.domain.sweep import SweepAxis


def batch_estimate(
    questions: Sequence[BatchQuestion], *, timeout_seconds: Timeout = UNSET
) -> Question[tuple[BatchAnswer | Error, ...]]:
    """The answers to up to 1000 questions of any kinds, in their order: what each call alone would return or raise.

    A question that fails is an error among the answers and leaves the others alone. The questions and the answers
    have to fit into a message of 16 MiB each.

    Raises InvalidArgumentError for no question, too many or what is none, and the errors of the connection.
    """
    from linkbound.domain.batch import BatchRequest

    request = BatchRequest(questions=as_tuple(questions))
    return Question(operations.BATCH_ESTIMATE, request, timeout_seconds, _answers)


def stream_sweep(
    *,
    workload: PrefillWorkload,
    link: LinkOrRate,
    axes: Sequence[SweepAxis],
    to_link: LinkOrRate | None = None,
    start_index: int = 0,
    points_per_response: int | None = None,
    timeout_seconds: Timeout = UNSET,
) -> Sweep:
    """Bytes, network time and extra TTFT at every point of up to four `axes`, the last of which varies fastest.

    Yields stretches of points as columns, in the order of their index and from `start_index` on. What an axis
    varies is taken from the axis in place of `workload`, `link` and `to_link`. A stream that breaks is opened again
    where it was, for as long as there is progress; the timeout is that of the whole sweep, none unless one is set.
    With `local:` a sweep needs NumPy. Formulas: `docs/formulas.md`, prefill.

    Raises InvalidArgumentError; while iterating NotFoundError for an unknown model, FailedPreconditionError
    (SWEEPS_UNAVAILABLE, ESTIMATOR_CHANGED), and the errors of the connection.
    """
    from linkbound.domain.sweep import DEFAULT_POINTS_PER_RESPONSE, SweepRequest

    links = LinkReader()
    request = links.build(
        lambda: SweepRequest(
            workload=workload,
            link=links.read(link, "link"),
            to_link=links.read_optional(to_link, "to_link"),
            axes=as_tuple(axes),
            start_index=start_index,
            points_per_response=DEFAULT_POINTS_PER_RESPONSE if points_per_response is None else points_per_response,
        )
    )
    return Sweep(request, timeout_seconds)


def _answers(estimate: BatchEstimate) -> tuple[BatchAnswer | Error, ...]:
    return estimate.answers
