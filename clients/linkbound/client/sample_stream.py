"""What the sample writer needs of a stream, whoever is at its other end."""

from __future__ import annotations

from typing import Protocol

from attrs import frozen

from linkbound.domain.errors import Error
from linkbound.domain.samples import BatchOutcome, OpenStreamRequest, StreamStart


@frozen
class BatchRefusal:
    """One batch was refused with `error`; the stream goes on."""

    sequence_number: int
    error: Error


SampleEvent = BatchOutcome | BatchRefusal
"""What a stream answers: batches are durable, or one was refused."""


class SampleConnection(Protocol):
    """An open stream. Every method raises the classes of `linkbound.domain.errors` when the stream breaks."""

    @property
    def start(self) -> StreamStart:
        """What the service said when the stream was opened."""
        ...

    async def send(self, sequence_number: int, payload: bytes) -> None:
        """Send one batch (`linkbound.convert.sample_payload`); may wait for room on the way."""
        ...

    async def receive(self) -> SampleEvent | None:
        """The next answer; None once the other end is done."""
        ...

    async def finish(self) -> None:
        """Say that no further batch comes."""
        ...

    async def close(self) -> None:
        """Give the stream up at once."""
        ...


class SampleConnector(Protocol):
    """Opens streams, one after the other."""

    async def connect(self, request: OpenStreamRequest) -> SampleConnection:
        """Open a stream, waiting for the service where it is not there yet."""
        ...

    async def close(self) -> None:
        """Let go of what was opened for the streams."""
        ...
