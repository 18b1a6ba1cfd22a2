"""`make` says in one line what is missing on a fresh machine, and repeats no finished work."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.packaging.project import ROOT

SCRIPT = ROOT / "scripts" / "make_venv.sh"
TOOLS = ["bash", "cat", "cmp", "env", "grep"]

TOO_OLD = """#!/bin/bash
case "$*" in
  -V) echo "Python 3.9.2" ;;
  *version_info*) exit 1 ;;
esac
"""
WITHOUT_VENV = """#!/bin/bash
case "$*" in
  *ensurepip*) echo "ModuleNotFoundError: No module named 'ensurepip'" >&2; exit 1 ;;
esac
"""


def write_executable(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


@pytest.fixture
def bare_path(tmp_path: Path) -> Path:
    """A folder for PATH that holds the tools of any Debian machine and no Python."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found is not None
        folder.joinpath(tool).symlink_to(found)
    return folder


def make_venv(folder: Path, path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    folder.joinpath("requirements.lock").touch()
    return subprocess.run(
        [SCRIPT, "venv", "requirements.lock"],
        cwd=folder,
        env={"PATH": str(path), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("interpreter", "reason", "package"),
    [
        (None, "python3 not found", "python3"),
        (TOO_OLD, "Python 3.9.2 is too old", "python3"),
        (WITHOUT_VENV, "cannot create virtual environments", "python3-venv"),
    ],
    ids=["missing", "too old", "without venv"],
)
def test_a_missing_part_is_named_in_one_line(
    tmp_path: Path, bare_path: Path, interpreter: str | None, reason: str, package: str
) -> None:
    if interpreter is not None:
        write_executable(bare_path / "python3", interpreter)
    result = make_venv(tmp_path, bare_path)
    assert result.returncode != 0
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ")
    assert reason in line
    assert f"Debian package {package}" in line or f"Debian packages {package} " in line
    assert not tmp_path.joinpath("venv").exists()


def test_an_environment_made_from_the_same_lock_is_left_alone(tmp_path: Path, bare_path: Path) -> None:
    venv = tmp_path / "venv"
    venv.joinpath("bin").mkdir(parents=True)
    write_executable(venv / "bin" / "python", "#!/bin/bash\n")
    venv.joinpath(".made-from").write_text(f"{tmp_path}\n", encoding="utf-8")
    result = make_venv(tmp_path, bare_path)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


@pytest.mark.parametrize(("prefix", "outcome"), [("/usr", ""), ("/opt/other", "is too old")], ids=["same", "other"])
def test_an_interpreter_that_is_named_is_the_one_that_is_used(
    tmp_path: Path, bare_path: Path, prefix: str, outcome: str
) -> None:
    venv = tmp_path / "venv"
    venv.joinpath("bin").mkdir(parents=True)
    write_executable(venv / "bin" / "python", "#!/bin/bash\necho /usr\n")
    write_executable(bare_path / "python3.99", f"#!/bin/bash\necho {prefix}\n[[ $* != *version_info* ]]\n")
    venv.joinpath(".made-from").write_text(f"{tmp_path}\n", encoding="utf-8")
    result = make_venv(tmp_path, bare_path, PYTHON="python3.99")
    # Another one is looked at as for a new environment, and this one fails there.
    assert (result.returncode == 0) == (outcome == "")
    assert outcome in result.stderr


@pytest.mark.parametrize("stamp", ["{folder}\nattrs==1.0\n", "/elsewhere\n", None])
def test_an_environment_made_from_something_else_is_not_kept(
    tmp_path: Path, bare_path: Path, stamp: str | None
) -> None:
    venv = tmp_path / "venv"
    venv.joinpath("bin").mkdir(parents=True)
    write_executable(venv / "bin" / "python", "#!/bin/bash\n")
    if stamp is not None:
        venv.joinpath(".made-from").write_text(stamp.format(folder=tmp_path), encoding="utf-8")
    # Without a usable interpreter the rebuild stops at once, which shows that it was begun.
    result = make_venv(tmp_path, bare_path)
    assert "python3 not found" in result.stderr
