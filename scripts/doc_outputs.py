"""Runs the commands in the console blocks of Markdown files and writes what they print below them.

    doc_outputs.py FILE...

A command stands on a line that starts with `$ `; everything down to the next one, or to the end of the block, is its
output. The test of a page compares both, so this is needed only when an answer has changed on purpose.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^\$ (.+)$", re.MULTILINE)


def printed_by(command: str) -> str:
    """What a command prints, run in a shell with the scripts of this interpreter on the path; it has to succeed."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    settings = {name: value for name, value in os.environ.items() if not name.startswith("LINKBOUND_")}
    done = subprocess.run(
        ["bash", "-c", command], env={**settings, "PATH": path}, capture_output=True, text=True, check=True
    )
    return done.stdout


def refreshed(block: re.Match[str]) -> str:
    """A console block with the output of each of its commands."""
    lines = [f"$ {command}\n{printed_by(command)}" for command in _COMMAND.findall(block[1])]
    return f"```console\n{''.join(lines)}```"


def main() -> None:
    """Refresh every file that is named."""
    for name in sys.argv[1:]:
        path = Path(name)
        path.write_text(_BLOCK.sub(refreshed, path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
