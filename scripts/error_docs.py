"""Writes the table of `docs/errors.md` from the error table of the servers, or checks it.

error_docs.py write    put the table into the document
error_docs.py check    fail where the document differs
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

from serving.errors import ERROR_TABLE, ErrorRow

__all__ = ["DOCUMENT", "ErrorRow", "rendered"]

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "errors.md"
BEGIN = "<!-- table: written by scripts/error_docs.py -->"
END = "<!-- end of the table -->"


def rendered(document: str) -> str:
    """`document` with the table as the code has it. Raises ValueError where the marks are missing."""
    before, begin, rest = document.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{DOCUMENT.name} lacks the marks of the table")
    return "".join([before, BEGIN, "\n", *(f"{line}\n" for line in _lines()), END, after])


def _lines() -> Iterable[str]:
    yield "| situation | code | reason | raised as | details besides `ErrorInfo` |"
    yield "| --- | --- | --- | --- | --- |"
    for row in ERROR_TABLE:
        for situation in row.situations:
            yield (
                f"| {situation.text} | `{row.code.name}` | `{situation.reason}` | `{row.error.__name__}` |"
                f" {row.details_description} |"
            )


def main() -> int:
    """Run the command line; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["write", "check"])
    command = parser.parse_args().command
    current = DOCUMENT.read_text(encoding="utf-8")
    wanted = rendered(current)
    if command == "write":
        DOCUMENT.write_text(wanted, encoding="utf-8")
        return 0
    if current != wanted:
        print("docs/errors.md differs from the error table; run: python scripts/error_docs.py write", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
