"""The wheel alone, in clean environments, does what the README promises.

Two environments are made: one with the packages of a plain `pip install linkbound`, one with the
`services` extra. Neither sees the checkout. Both hold exactly the locked versions.
"""

import json
import os
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterable
from pathlib import Path

import attrs
import pytest

from tests.packaging.project import ROOT, LockedPackage, base_closure, read_lock

TOP_LEVEL = {"estimator_service", "ingest_service", "linkbound", "serving"}
ESTIMATE = [
    *("estimate", "prefill", "--model", "glm-5.3", "--tp", "2"),
    *("--prompt-tokens", "8192", "--link", "10g", "--json"),
]


@attrs.frozen
class CleanEnvironment:
    """A virtual environment with the wheel and its locked dependencies, and nothing else."""

    folder: Path

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Runs a program of the environment in a folder of its own, with an empty environment."""
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        program, *arguments = command
        return subprocess.run(
            [self.folder / "bin" / program, *arguments],
            cwd=home,
            env={"HOME": str(home), "PATH": os.defpath, "LANG": "C.UTF-8"},
            capture_output=True,
            text=True,
            check=False,
        )


def install(folder: Path, wheel: Path, packages: Iterable[LockedPackage]) -> CleanEnvironment:
    """Makes an environment at `folder` with the packages, each held to its hash, and the wheel."""
    venv.create(folder)
    lock = folder / "requirements.lock"
    lock.write_text("".join(package.text for package in packages), encoding="utf-8")
    # pip of the test environment installs into the clean one, which then has not even pip. Most of what it installs is
    # never imported here, so what is is compiled then.
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(folder)]
    for arguments in [["--require-hashes", "-r", str(lock)], ["--no-index", str(wheel)]]:
        subprocess.run([*pip, "install", "--quiet", "--no-compile", "--no-deps", *arguments], check=True)
    return CleanEnvironment(folder)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the checkout with the locked build backend."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> CleanEnvironment:
    """What a plain `pip install linkbound` gives."""
    names = base_closure()
    packages = [entry for entry in read_lock(ROOT / "requirements.lock") if entry.name in names]
    return install(tmp_path_factory.mktemp("plain"), wheel, packages)


@pytest.fixture(scope="module")
def with_services(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> CleanEnvironment:
    """What `pip install linkbound[services]` gives: the content of the images."""
    packages = read_lock(ROOT / "docker" / "requirements.lock")
    return install(tmp_path_factory.mktemp("services"), wheel, packages)


def test_the_wheel_holds_the_four_packages_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    top_level = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    assert top_level == TOP_LEVEL
    for package in TOP_LEVEL:
        assert f"{package}/py.typed" in names


def test_the_wheel_holds_every_file_of_the_packages(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packed = set(archive.namelist())
    for package in TOP_LEVEL:
        parent = ROOT / "clients" if package == "linkbound" else ROOT
        for path in parent.joinpath(package).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                assert path.relative_to(parent).as_posix() in packed


def test_the_plain_environment_has_no_storage_and_no_arrays(plain: CleanEnvironment) -> None:
    for module in ["duckdb", "numpy", "pyarrow", "grpc_reflection"]:
        result = plain.run("python", "-c", f"import {module}")
        assert "ModuleNotFoundError" in result.stderr
    result = plain.run("python", "-c", "import linkbound; print(linkbound.__file__)")
    assert Path(result.stdout).is_relative_to(plain.folder)


@pytest.mark.parametrize("environment", ["plain", "with_services"])
def test_the_command_estimates(environment: str, request: pytest.FixtureRequest) -> None:
    clean: CleanEnvironment = request.getfixturevalue(environment)
    result = clean.run("linkbound", *ESTIMATE)
    assert result.returncode == 0, result.stderr
    answer = json.loads(result.stdout)
    # Per token: all-reduces x 2 (n-1)/n x hidden size x 2 bytes, with the model's 6,144 and TP 2.
    sent_bytes_per_token = answer["all_reduce_count"] * 6144 * 2
    assert answer["sent_bytes_per_prompt_token"] == sent_bytes_per_token
    assert answer["sent_bytes_per_rank"] == 8192 * sent_bytes_per_token
    assert 0 < answer["network_seconds"]["lower"] <= answer["network_seconds"]["upper"]


def test_the_demo_runs_and_leaves_a_database(with_services: CleanEnvironment) -> None:
    result = with_services.run("linkbound", "demo", "--out", "out")
    assert result.returncode == 0, result.stderr
    assert result.stdout
    code = "import duckdb; print(len(duckdb.connect('out/study.duckdb').sql('SHOW TABLES')))"
    tables = with_services.run("python", "-c", code)
    assert tables.returncode == 0, tables.stderr
    assert int(tables.stdout) > 0


def test_a_plain_install_says_what_the_servers_need(plain: CleanEnvironment) -> None:
    result = plain.run("linkbound", "serve", "--data", "data")
    assert result.returncode == 2, result.stderr
    assert "linkbound[services]" in result.stderr
    assert "Traceback" not in result.stderr
