"""One way to call each kind of client: blocking or on an event loop, with a server or in this process."""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from attrs import evolve, field, frozen

from linkbound import AsyncEstimatorClient, AsyncIngestClient, Error, EstimatorClient, IngestClient
from linkbound.domain.records import AppendOutcome
from linkbound.domain.run import Run, RunDetails
from linkbound.domain.run_watch import RunUpdate
from linkbound.domain.sql import Snapshot

SOME_TIME = datetime(2026, 1, 1, tzinfo=UTC)


@frozen
class Call:
    """One call of a client."""

    method: str
    positional: tuple[Any, ...] = ()
    keywords: Mapping[str, Any] = field(factory=dict)
    taken_count: int | None = None
    """Entries after which an iterator that never ends is left."""


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
        if hasattr(result, "read_all"):
            return rows_of(result.read_all())
        return list(islice(result, asked.taken_count)) if isinstance(result, Iterator) else result


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
        if isinstance(result, AsyncGenerator):
            return await taken(result, asked.taken_count)
        answer = await result
        return rows_of(await answer.read_all()) if hasattr(answer, "read_all") else answer


async def taken(entries: AsyncGenerator[Any, None], count: int | None) -> list[Any]:
    """Every entry, or the first `count`."""
    found: list[Any] = []
    async with aclosing(entries):
        async for entry in entries:
            found.append(entry)
            if len(found) == count:
                break
    return found


def rows_of(table: Any) -> tuple[str, list[dict[str, Any]]]:
    """The columns and the rows of an Arrow table."""
    return str(table.schema), table.to_pylist()


def failure_of(error: Error) -> Failure:
    """What has to be equal: all but the request id, which a call in this process does not have."""
    facts = {name: value for name, value in vars(error).items() if name not in {"request_id", "message"}}
    # A store makes a checkpoint when it has a rest.
    facts["metadata"] = {key: value for key, value in error.metadata.items() if key != "checkpointedSequenceNumber"}
    return Failure(type(error), error.message, facts)


def without_instants(result: Any) -> Any:
    """A result without what differs from one store to the next: at which instants things were stored, and where."""
    match result:
        case AppendOutcome():
            return evolve(result, checkpointed_sequence_number=0)
        case Run():
            prediction = result.prediction
            return evolve(
                result,
                create_time=SOME_TIME,
                seal_time=None if result.seal_time is None else SOME_TIME,
                sealed_path=Path(result.sealed_path).name,
                sealed_size_bytes=min(1, result.sealed_size_bytes),
                prediction=None if prediction is None else evolve(prediction, store_time=SOME_TIME),
            )
        case Snapshot():
            name = Path(result.path).name
            return evolve(result, path=name, snapshot_time=SOME_TIME, size_bytes=min(1, result.size_bytes))
        case RunDetails() | RunUpdate():
            return evolve(result, run=without_instants(result.run))
        case list() | tuple():
            # Errors are among the answers of a batch.
            return type(result)(failure_of(e) if isinstance(e, Error) else without_instants(e) for e in result)
    return result
