"""A process that is killed while it seals leaves an open run with everything, or a sealed one with everything."""

import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from ingest_service.store.life_steps import LifeStep
from linkbound.domain.errors import FailedPreconditionError, NotFoundError
from linkbound.domain.run import RunState, SealRunRequest
from tests.faults.conftest import Report
from tests.faults.figures import FaultFigures, Rows
from tests.faults.repeats import REPEATS
from tests.integration.sealing.content import RECORDS, Seen, append, filled, hot_row_count, run_ids, sealed_names
from tests.integration.store_content import RUN, opened, with_run

pytestmark = pytest.mark.storage

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a closed store of one open run, and another beside it."""
    folder = tmp_path_factory.mktemp("template")
    with opened(folder) as store:
        with_run(filled(store), "other")
    return folder


@pytest.fixture(scope="module")
def seen(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """What reads say of the run."""
    folder = tmp_path_factory.mktemp("seen") / "store"
    shutil.copytree(template, folder)
    with opened(folder) as store:
        return Seen.of(store)


def killed(folder: Path, action: str, step: LifeStep | None, count: int = 1, after_seconds: float = 0) -> None:
    """Runs the process until it kills itself at a step, or is killed `after_seconds` of its work."""
    name = "NEVER" if step is None else step.name
    with subprocess.Popen(
        [sys.executable, "-m", "tests.faults.seal_killed", str(folder), action, name, str(count)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        if step is None:
            time.sleep(after_seconds)
            process.kill()
        process.wait(60)
        assert step is None or process.returncode == -signal.SIGKILL


def check_whole(folder: Path, seen: Seen) -> RunState:
    """The run is there with everything, in one state; the other one is too. Returns the state."""
    with opened(folder) as store:
        assert Seen.of(store) == seen
        assert run_ids(store) == ["other", RUN]
        state = store.get_run(RUN).run.state
        if state is RunState.SEALED:
            with pytest.raises(FailedPreconditionError) as caught:
                append(store, RUN, "bench", 3, RECORDS["bench"][:1])
            assert caught.value.reason == "RUN_SEALED"
        # Sent again because the acknowledgement was lost.
        assert append(store, RUN, "bench", 2, RECORDS["bench"][1:]) == 2
        of_run = [f"run_id={RUN}"] if state is RunState.SEALED else []
        assert sealed_names(folder) == set(of_run)
        sealed = store.seal_run(SealRunRequest(run=RUN, expected_row_count=seen.counts.total_row_count))
        assert sealed.state is RunState.SEALED
        assert Seen.of(store) == seen
    assert sealed_names(folder) == {f"run_id={RUN}"}
    assert hot_row_count(folder) == 0
    return state


@pytest.mark.parametrize(
    ("step", "count", "state"),
    [
        (LifeStep.CLOSED, 1, RunState.OPEN),
        (LifeStep.FILE_WRITTEN, 1, RunState.OPEN),
        (LifeStep.FILE_WRITTEN, 7, RunState.OPEN),
        (LifeStep.FILE_VERIFIED, 14, RunState.OPEN),
        (LifeStep.MANIFEST_WRITTEN, 1, RunState.OPEN),
        (LifeStep.PUBLISHED, 1, RunState.OPEN),
        (LifeStep.SEALED, 1, RunState.SEALED),
        (LifeStep.SLICE_DROPPED, 1, RunState.SEALED),
        (LifeStep.SLICE_DROPPED, 8, RunState.SEALED),
        (LifeStep.DROPPED, 1, RunState.SEALED),
    ],
)
def test_a_kill_at_any_step_leaves_the_whole_run(
    tmp_path: Path, template: Path, seen: Seen, step: LifeStep, count: int, state: RunState
) -> None:
    folder = tmp_path / "store"
    shutil.copytree(template, folder)
    killed(folder, "seal", step, count)
    assert check_whole(folder, seen) is state


def test_a_kill_at_any_moment_leaves_the_whole_run(tmp_path: Path, template: Path, seen: Seen, report: Report) -> None:
    moments = random.Random(20260102)
    states: Counter[RunState] = Counter()
    for index in range(REPEATS):
        folder = tmp_path / str(index)
        shutil.copytree(template, folder)
        killed(folder, "seal", None, after_seconds=moments.uniform(0, 0.8))
        states[check_whole(folder, seen)] += 1
    rows = seen.counts.total_row_count * REPEATS
    report(
        FaultFigures(
            fault="killed while it seals a run",
            times=REPEATS,
            rows=Rows(sent=rows, acknowledged=rows, stored=rows, lost=0, twice=0),
            remarks=[f"{states[RunState.OPEN]} open, {states[RunState.SEALED]} sealed afterwards, each whole"],
        )
    )


def test_the_same_run_can_be_killed_again_and_again(tmp_path: Path, template: Path, seen: Seen) -> None:
    folder = tmp_path / "store"
    shutil.copytree(template, folder)
    for step in (LifeStep.FILE_WRITTEN, LifeStep.PUBLISHED, LifeStep.PUBLISHED, LifeStep.SEALED):
        killed(folder, "seal", step)
    assert check_whole(folder, seen) is RunState.SEALED


@pytest.mark.parametrize(
    ("state", "step"),
    [
        (RunState.OPEN, LifeStep.DELETED),
        (RunState.OPEN, LifeStep.SLICE_DROPPED),
        (RunState.SEALED, LifeStep.DELETED),
        (RunState.SEALED, LifeStep.FOLDER_REMOVED),
        (RunState.SEALED, LifeStep.DROPPED),
    ],
)
def test_a_kill_while_a_run_is_deleted_leaves_nothing_of_it(
    tmp_path: Path, template: Path, seen: Seen, state: RunState, step: LifeStep
) -> None:
    folder = tmp_path / "store"
    shutil.copytree(template, folder)
    if state is RunState.SEALED:
        with opened(folder) as store:
            store.seal_run(SealRunRequest(run=RUN))
    killed(folder, "delete", step)
    with opened(folder) as store:
        assert run_ids(store) == ["other"]
        with pytest.raises(NotFoundError):
            store.get_run(RUN)
        # Its id can be used again at once, whatever is still to be dropped.
        filled(store)
        assert Seen.of(store).counts == seen.counts
        store.delete_run(RUN)
    assert sealed_names(folder) == set()
    assert hot_row_count(folder) == 0
