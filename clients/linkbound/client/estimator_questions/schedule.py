"""Which passes an engine makes of requests, and when they get their tokens. Its types are loaded when it is asked."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ParamSpec

from linkbound.client import names
from linkbound.client.link_reader import LinkOrRate, LinkReader
from linkbound.client.options import UNSET, Timeout
from linkbound.client.question import ScheduleQuestion
from linkbound.domain.rules import as_tuple

if TYPE_CHECKING:
    from linkbound.domain.calibration import CollectiveTable
    from linkbound.domain.engine import BurstTable, EngineRequest, EngineTable, SchedulerSettings
    from linkbound.domain.layout import ParallelLayout


P = ParamSpec("P")


def estimate_schedule(  # noqa: PLR0913 - the keywords are the request
    requests: Sequence[EngineRequest],
    *,
    scheduler: SchedulerSettings | None = None,
    arrivals_may_split: bool = False,
    model: str = "",
    model_config_json: str = "",
    layout: ParallelLayout | None = None,
    link: LinkOrRate | None = None,
    to_link: LinkOrRate | None = None,
    inner_link: LinkOrRate | None = None,
    to_bursts: BurstTable | None = None,
    calibration: str = "",
    collective_table: CollectiveTable | None = None,
    engine_calibration: str = "",
    engine_table: EngineTable | None = None,
    timeout_seconds: Timeout = UNSET,
) -> ScheduleQuestion:
    """The passes that an engine makes of up to 10000 `requests`, in the order of their arrival, and what follows.

    Without a `scheduler` the settings of the engine calibration hold, or `DEFAULT_SCHEDULER`. Without a model the
    passes alone are answered; with `model` (or the contents of its config), `layout` and `link` what links take of
    each, and when first tokens come at the earliest. An `engine_calibration` of the catalogue, or an `engine_table` of
    measured times in its place, says what passes take: its model, layout and link hold where no other is given. With
    `to_link`, times are over that link, and what the change adds is answered too; `to_bursts` are bursts that were seen
    on it. With `arrivals_may_split`, intervals cover every way in which requests that arrive together may be parted by
    the first pass. Formulas: `docs/formulas.md`, schedule and engine times.

    All passes are held together; `stream_schedule` yields them one by one. A stream of the service that breaks is
    opened again where it was, for as long as there is progress; the timeout is that of the whole schedule, none unless
    one is set.

    Raises InvalidArgumentError, also where the engine would never finish a request, NotFoundError for an unknown model
    or calibration, FailedPreconditionError (ESTIMATOR_CHANGED), and the errors of the connection.
    """
    from linkbound.domain.schedule import ScheduleRequest

    links = LinkReader()
    request = links.build(
        lambda: ScheduleRequest(
            requests=as_tuple(requests),
            scheduler=scheduler,
            arrivals_may_split=arrivals_may_split,
            model=names.model_id(model),
            model_config_json=model_config_json,
            layout=layout,
            link=links.read_optional(link, "link"),
            to_link=links.read_optional(to_link, "to_link"),
            inner_link=links.read_optional(inner_link, "inner_link"),
            to_bursts=to_bursts,
            calibration=names.calibration_id(calibration),
            collective_table=collective_table,
            engine_calibration=names.engine_calibration_id(engine_calibration),
            engine_table=engine_table,
        )
    )
    return ScheduleQuestion(request, timeout_seconds)


def _streamed(asked: Callable[P, ScheduleQuestion]) -> Callable[P, ScheduleQuestion]:
    """The question `asked`, for an answer that comes part by part; the same keywords, in words of its own."""

    @functools.wraps(asked, assigned=("__annotations__",))
    def stream_schedule(*args: P.args, **keywords: P.kwargs) -> ScheduleQuestion:
        """What `estimate_schedule` answers, pass by pass as they are replayed.

        Yields each `SchedulePass` in the order of the engine, and at last one `ScheduleSummary`; no more is held than
        is read. The keywords and the timeout are those of `estimate_schedule`.

        Raises its errors, while iterating all but those of a request that is none.
        """
        return asked(*args, **keywords)

    return stream_schedule


stream_schedule = _streamed(estimate_schedule)
