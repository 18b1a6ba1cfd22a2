"""Tables and TOML text of the catalogue come back as the values that they were made of."""

import tomllib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from estimator_service.architecture.ranges import indexes_of, is_ranges, ranges_of
from estimator_service.catalog.directory import SHIPPED_DIRECTORY
from estimator_service.catalog.files import read_table
from estimator_service.catalog.model_files import ModelFile, model_text
from estimator_service.catalog.toml_text import toml_text
from linkbound.importers.tables import from_table, to_table

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
KEYS = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)
PLAIN = st.integers(-(10**12), 10**12) | st.booleans() | TEXTS | st.floats(allow_nan=False, allow_infinity=False)
TABLES: Any = st.recursive(
    st.dictionaries(KEYS, PLAIN | st.lists(TEXTS, max_size=4), max_size=4),
    lambda inner: st.dictionaries(KEYS, PLAIN | inner | st.lists(inner, min_size=1, max_size=3), max_size=4),
    max_leaves=12,
)


@given(TABLES)
def test_toml_text_comes_back(table: dict[str, Any]) -> None:
    assert tomllib.loads(toml_text(table)) == table


@given(st.sets(st.integers(0, 1023), min_size=1).map(sorted))
def test_ranges_come_back(indexes: list[int]) -> None:
    ranges = ranges_of(indexes)
    assert is_ranges(ranges, 1024)
    assert list(indexes_of(ranges)) == indexes


def test_shipped_files_come_back_and_are_written_as_the_catalogue_writes() -> None:
    paths = sorted((SHIPPED_DIRECTORY / "models").glob("*.toml"))
    assert len(paths) >= 25
    for path in paths:
        content = from_table(ModelFile, read_table(path))
        assert from_table(ModelFile, to_table(content)) == content
        assert path.read_text(encoding="utf-8") == model_text(content), path.name
