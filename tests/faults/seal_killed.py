"""A process that seals or deletes a run and is killed meanwhile.

`python -m tests.faults.seal_killed FOLDER seal|delete STEP N` kills itself when STEP is reached for the
N-th time, and is killed from outside with STEP `NEVER`. It says `begun` before it begins.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import structlog

from ingest_service.service import Ingest, StoreSettings
from ingest_service.store.life_steps import LifeStep
from linkbound.domain.run import SealRunRequest
from tests.integration.store_content import RUN, TickingClock


def main(folder: Path, action: str, step_name: str, count: int) -> None:
    """Seals or deletes the run of the store in `folder`."""
    left = count

    def on_step(step: LifeStep) -> None:
        nonlocal left
        if step.name == step_name:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    with Ingest.open(StoreSettings(path=folder / "linkbound.duckdb"), TickingClock(), on_step) as ingest:
        os.write(sys.stdout.fileno(), b"begun\n")
        if action == "delete":
            ingest.delete_run(RUN)
        else:
            ingest.seal_run(SealRunRequest(run=RUN))


if __name__ == "__main__":
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4]))
