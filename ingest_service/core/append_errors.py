"""What writers are told when the append machine refuses: one error each, with the numbers that they need to go on."""

from __future__ import annotations

from linkbound.domain.errors import AbortedError, FailedPreconditionError, OutOfRangeError


def run_sealed(run_id: str) -> FailedPreconditionError:
    """Nothing can be appended to a sealed run."""
    return FailedPreconditionError(
        f"run {run_id} is sealed, nothing can be appended", reason="RUN_SEALED", metadata={"run": run_id}
    )


def writer_conflict(writer_id: str, sequence_number: int) -> AbortedError:
    """The number is stored with other content."""
    return AbortedError(
        f"number {sequence_number} of writer {writer_id} is stored with other content;"
        " two processes may be using one writer id",
        reason="WRITER_CONFLICT",
        metadata={"writer": writer_id, "sequenceNumber": str(sequence_number)},
    )


def writer_fenced(writer_id: str) -> AbortedError:
    """The writer opened another stream."""
    return AbortedError(
        f"writer {writer_id} opened another stream, which ends this one; if that was another process, give each a"
        " writer id of its own",
        reason="WRITER_FENCED",
        metadata={"writer": writer_id},
    )


def kind_mismatch(writer_id: str, kind: str, asked_kind: str) -> FailedPreconditionError:
    """A writer appends by `kind` and no other way."""
    return FailedPreconditionError(
        f"writer {writer_id} appends by {kind}, not by {asked_kind}; use another writer id",
        reason="WRITER_KIND_MISMATCH",
        metadata={"writer": writer_id, "kind": kind, "askedKind": asked_kind},
    )


def sequence_gap(writer_id: str, sequence_number: int, expected: int, checkpointed: int) -> OutOfRangeError:
    """The number is too far ahead of the `expected` one; what is `checkpointed` the writer need not keep."""
    return OutOfRangeError(
        f"number {sequence_number} of writer {writer_id} is too far ahead, {expected} comes next",
        reason="SEQUENCE_GAP",
        metadata={
            "writer": writer_id,
            "sequenceNumber": str(sequence_number),
            "expectedSequenceNumber": str(expected),
            "checkpointedSequenceNumber": str(checkpointed),
        },
    )


def acked_data_missing(writer_id: str, last_acked: int, first_kept: int, committed: int) -> FailedPreconditionError:
    """The store lacks numbers that the writer, who has those from `first_kept` on, cannot send any more."""
    return FailedPreconditionError(
        f"writer {writer_id} can send from number {first_kept} on, but only {committed} are stored:"
        " acknowledged data is gone, perhaps with an older copy of the file",
        reason="ACKED_DATA_MISSING",
        metadata={
            "writer": writer_id,
            "lastAckedSequenceNumber": str(last_acked),
            "firstKeptSequenceNumber": str(first_kept),
            "committedSequenceNumber": str(committed),
        },
    )
