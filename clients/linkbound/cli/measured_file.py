"""A file with measured times: its text, before an importer reads it."""

from __future__ import annotations

from pathlib import Path

from linkbound.cli.failures import USAGE, Failure

LARGEST_FILE_BYTES = 16 * 2**20


def measured_text(file: Path, parameter: str) -> str:
    """The text of `file`; `parameter` is what the person gave it as.

    Raises Failure where it cannot be read or is too large. Bytes that are no text are for the importer to refuse.
    """
    try:
        with file.open("rb") as opened:
            content = opened.read(LARGEST_FILE_BYTES + 1)
    except ValueError as error:
        raise Failure(f"{parameter}: {error}: {str(file)!a}", USAGE) from error
    except OSError as error:
        raise Failure(f"{parameter}: {error.strerror}: {str(file)!a}", USAGE) from error
    if len(content) > LARGEST_FILE_BYTES:
        raise Failure(f"{parameter}: is larger than {LARGEST_FILE_BYTES} bytes", USAGE)
    return content.decode("utf-8", errors="replace")
