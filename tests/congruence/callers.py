"""One way to call each kind of client: blocking or on an event loop, with a server or in this process."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from attrs import evolve, field, frozen

from linkbound import AsyncEstimatorClient, AsyncIngestClient, Error, EstimatorClient, IngestClient
from linkbound.domain.run import Run, RunDetails

SOME_TIME = datetime(2026, 1, 1, tzinfo=UTC)


@frozen
class Call:
    """One call of a client."""

    method: str
    positional: tuple[Any, ...] = ()
    keywords: Mapping[str, Any] = field(factory=dict)


def call(method: str, *positional: Any, **keywords: Any) -> Call:
    return Call(method, positional, keywords)


@frozen
class Failure:
    """An error as far as every backend has to agree on it."""

    kind: type[Error]
    message: str
    facts: dict[str, Any]


class Caller:
    """Makes calls and returns their results, or the failure instead."""

    def ask(self, asked: Call) -> Any:
        """The result of a call; a list for iterators."""
        try:
            return without_instants(self._result(asked))
        except Error as error:
            return failure_of(error)

    def close(self) -> None:
        """Close the client."""
        raise NotImplementedError

    def _result(self, asked: Call) -> Any:
        raise NotImplementedError


class BlockingCaller(Caller):
    """Calls a blocking client."""

    def __init__(self, client: EstimatorClient | IngestClient) -> None:
        self._client = client

    def close(self) -> None:
        """Close the client."""
        self._client.close()

    def _result(self, asked: Call) -> Any:
        result = getattr(self._client, asked.method)(*asked.positional, **asked.keywords)
        return list(result) if isinstance(result, Iterator) else result


class AsyncCaller(Caller):
    """Calls a client for asyncio on a loop of its own."""

    def __init__(self, client: AsyncEstimatorClient | AsyncIngestClient) -> None:
        self._client = client
        self._runner = asyncio.Runner()

    def close(self) -> None:
        """Close the client and its loop."""
        self._runner.run(self._client.close())
        self._runner.close()

    def _result(self, asked: Call) -> Any:
        return self._runner.run(self._answer(asked))

    async def _answer(self, asked: Call) -> Any:
        result = getattr(self._client, asked.method)(*asked.positional, **asked.keywords)
        return [entry async for entry in result] if isinstance(result, AsyncIterator) else await result


def failure_of(error: Error) -> Failure:
    """What has to be equal: all but the request id, which a call in this process does not have."""
    facts = {name: value for name, value in vars(error).items() if name not in {"request_id", "message"}}
    return Failure(type(error), error.message, facts)


def without_instants(result: Any) -> Any:
    """A result without what differs from one store to the next: at which instants things were stored."""
    match result:
        case Run():
            prediction = result.prediction
            return evolve(
                result,
                create_time=SOME_TIME,
                seal_time=None if result.seal_time is None else SOME_TIME,
                prediction=None if prediction is None else evolve(prediction, store_time=SOME_TIME),
            )
        case RunDetails():
            return evolve(result, run=without_instants(result.run))
        case list():
            return [without_instants(entry) for entry in result]
        case tuple():
            # The answers of a batch, errors among them.
            return tuple(failure_of(entry) if isinstance(entry, Error) else entry for entry in result)
    return result
