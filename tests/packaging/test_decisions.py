"""The index of decisions names every decision, by its title."""

import re

from tests.packaging.project import ROOT

FOLDER = ROOT / "docs" / "adr"


def test_the_index_lists_every_decision() -> None:
    index = FOLDER.joinpath("README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[(\d{4})\]\((\S+)\) \| (.+) \|$", index, re.MULTILINE)
    files = sorted(FOLDER.glob("[0-9]*.md"))
    assert [name for _, name, _ in rows] == [path.name for path in files]
    for (number, _, title), path in zip(rows, files, strict=True):
        first_line = path.read_text(encoding="utf-8").splitlines()[0]
        assert path.name.startswith(number)
        assert first_line == f"# {int(number)}. {title}"
