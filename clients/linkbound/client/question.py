"""What a client asks of a service, before anybody waits for an answer.

Each question is a function, written once: its keywords, its words and the request that it makes of them. The bases of
the clients turn it into a method with `asks`, `lists`, `sweeps`, `schedules`, `whole_schedules`, `selects` and
`watches`; blocking and asyncio differ in nothing but how they wait.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from attrs import frozen

from linkbound.client.operations import Operation
from linkbound.client.options import Timeout
from linkbound.domain.paging import PageRequest

if TYPE_CHECKING:
    from linkbound.domain.paging import Page
    from linkbound.domain.run_watch import WatchRunsRequest
    from linkbound.domain.schedule import ScheduleRequest
    from linkbound.domain.sql import SqlRequest
    from linkbound.domain.sweep import SweepRequest

RequestT = TypeVar("RequestT")
ResultT = TypeVar("ResultT")
AnswerT = TypeVar("AnswerT")
EntryT = TypeVar("EntryT")
MethodT = TypeVar("MethodT", bound=Callable[..., object])

_FIRST_PAGE = PageRequest()
_SELF = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)


@frozen
class Question(Generic[AnswerT]):
    """One call: the operation and its request, how long it may take, and what of the result is the answer."""

    operation: Operation[Any, Any]
    request: Any
    timeout_seconds: Timeout
    answer_of: Callable[[Any], AnswerT]


@frozen
class Listing(Generic[EntryT]):
    """Every entry of a list, over as many pages as it takes; the timeout is that of one page."""

    operation: Operation[Any, Page[EntryT]]
    timeout_seconds: Timeout
    first_page: PageRequest = _FIRST_PAGE


@frozen
class Sweep:
    """Every point of a sweep, over as many streams as it takes; the timeout is that of the whole sweep."""

    request: SweepRequest
    timeout_seconds: Timeout


@frozen
class SqlQuery:
    """One SELECT, whose rows come as they are read; the timeout is that of the whole answer."""

    request: SqlRequest
    timeout_seconds: Timeout


@frozen
class Watch:
    """Runs as they change, over as many streams as it takes; the timeout is that of the whole watch."""

    request: WatchRunsRequest
    timeout_seconds: Timeout


@frozen
class ScheduleQuestion:
    """Every pass of requests, over as many streams as it takes; the timeout is that of the whole schedule."""

    request: ScheduleRequest
    timeout_seconds: Timeout


def question(operation: Operation[RequestT, ResultT], request: RequestT, timeout_seconds: Timeout) -> Question[ResultT]:
    """The question whose answer is the whole result of `operation`."""
    return Question(operation, request, timeout_seconds, _whole)


def answer_name(asked: Callable[..., object]) -> str:
    """What `asked` is answered with, as its annotation says: `Model` of `Question[Model]` or `Listing[Model]`."""
    annotation: str = asked.__annotations__["return"]
    return annotation[annotation.index("[") + 1 : -1]


def described(method: MethodT, asked: Callable[..., object], returns: str) -> MethodT:
    """`method` with the name, the words and the keywords of the question `asked`, and with what it `returns`.

    So `help` shows them. Type checkers know the keywords from the type of the method.
    """
    functools.update_wrapper(method, asked)
    signature = inspect.signature(asked)
    method.__annotations__ = {**asked.__annotations__, "return": returns}
    vars(method)["__signature__"] = signature.replace(
        parameters=[_SELF, *signature.parameters.values()], return_annotation=returns
    )
    return method


def _whole(result: ResultT) -> ResultT:
    return result
