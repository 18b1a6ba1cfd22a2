"""The sample streams that are open: one for each writer, the one that was opened last."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Protocol

from attrs import define, field

from ingest_service.core.append import Checkpointed
from ingest_service.core.append_errors import writer_fenced
from linkbound.domain.errors import AbortedError

WriterKey = tuple[str, str]


class OpenStream(Protocol):
    """A stream as far as others have something to tell it."""

    @property
    def key(self) -> WriterKey:
        """Run and writer."""
        ...

    def note_checkpointed(self, sequence_number: int) -> None:
        """Everything up to this number is in the file."""
        ...

    def fence(self, error: AbortedError) -> None:
        """The writer opened another stream; `error` says so."""
        ...


@define
class OpenStreams:
    """Safe from any thread; streams are opened in the order in which the store does it."""

    _lock: threading.Lock = field(init=False, factory=threading.Lock)
    _streams: dict[WriterKey, OpenStream] = field(init=False, factory=dict)

    def opened(self, stream: OpenStream) -> None:
        """`stream` is the one of its writer from now on; the one before it, if it is still open, is fenced."""
        with self._lock:
            before = self._streams.get(stream.key)
            self._streams[stream.key] = stream
        if before is not None:
            before.fence(writer_fenced(stream.key[1]))

    def closed(self, stream: OpenStream) -> None:
        """`stream` takes nothing any more. Repeating it is fine."""
        with self._lock:
            if self._streams.get(stream.key) is stream:
                del self._streams[stream.key]

    def checkpointed(self, changes: Sequence[Checkpointed]) -> None:
        """What a checkpoint holds is news to the streams of these writers."""
        with self._lock:
            told = [(self._streams.get((c.run_id, c.writer_id)), c.sequence_number) for c in changes]
        for stream, sequence_number in told:
            if stream is not None:
                stream.note_checkpointed(sequence_number)
