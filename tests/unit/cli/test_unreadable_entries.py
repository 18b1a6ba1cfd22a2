"""Lists of a catalogue with a broken file: the rest on stdout, what is wrong on stderr and in the JSON."""

from pathlib import Path

import pytest

from tests.unit.cli.command import Command


@pytest.mark.parametrize("kind", ["models", "calibrations"])
def test_a_list_says_what_it_skips(kind: str, linkbound: Command, tmp_path: Path) -> None:
    before = linkbound(kind, "list", "--data", str(tmp_path))
    folder = tmp_path / "catalog" / kind
    folder.mkdir(parents=True)
    (folder / "broken.toml").write_text("= nothing")
    outcome = linkbound(kind, "list", "--data", str(tmp_path))
    assert (outcome.exit_code, outcome.out) == (0, before.out)
    assert outcome.err.startswith(f"linkbound: {kind}/broken is skipped: {folder / 'broken.toml'}: ")
    answer = linkbound(kind, "list", "--data", str(tmp_path), "--json")
    assert [entry["name"] for entry in answer.answer["unreadable"]] == [f"{kind}/broken"]
    assert answer.answer["unreadable"][0]["problem"] in answer.err
