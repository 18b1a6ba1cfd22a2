"""The tables about engines in `docs/accuracy.md` are those that the code makes, and each miss is spoken of."""

import pytest

from tests.golden.engine_accuracy import PAGE, rendered, study_table

TEXT = PAGE.read_text("utf-8")


def test_the_page_states_what_is_computed() -> None:
    assert rendered(TEXT) == TEXT


def test_a_figure_that_is_changed_by_hand_is_found() -> None:
    last = study_table()[-1]
    assert last in TEXT
    assert rendered(TEXT.replace(last, last.replace("40.03", "40.04"))) == TEXT


def test_a_page_without_the_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="lacks the marks"):
        rendered(TEXT.replace("<!-- end of: recording -->", ""))


def test_every_row_that_misses_is_explained() -> None:
    missed = [line.split("|")[1].split() for line in study_table()[2:] if "| no |" in line]
    assert len(missed) == 3
    for label, which, _ in missed:
        assert f"- **{label}, {which}**" in TEXT
