from pathlib import Path

import pytest

from linkbound.client.spool.numbering import Numbering, NumberRange, SpoolState
from linkbound.client.spool.state_file import SLOT_BYTES, StateFile, read_state


def state(next_index: int) -> SpoolState:
    return SpoolState(numbering=Numbering(unsettled_from=None), next_index=next_index)


def written(path: Path, *next_indexes: int) -> None:
    file = StateFile(path)
    for next_index in next_indexes:
        file.write(state(next_index))
    file.close()


def found(path: Path) -> int | None:
    file = StateFile(path)
    file.close()
    assert file.state == read_state(path)
    return None if file.state is None else file.state.next_index


def test_the_last_state_counts(tmp_path: Path) -> None:
    path = tmp_path / "state"
    assert read_state(path) is None
    assert found(path) is None
    written(path, 1, 2)
    assert found(path) == 2
    written(path, 3)
    assert found(path) == 3


@pytest.mark.parametrize("torn_bytes", [0, 1, 10, 30])
def test_a_state_that_was_written_by_half_leaves_the_one_before(tmp_path: Path, torn_bytes: int) -> None:
    path = tmp_path / "state"
    written(path, 1, 2, 3)
    # The third one went into the second slot.
    content = bytearray(path.read_bytes())
    content[SLOT_BYTES + torn_bytes : 2 * SLOT_BYTES] = bytes(SLOT_BYTES - torn_bytes)
    path.write_bytes(content)
    assert found(path) == 2
    written(path, 4)
    assert found(path) == 4


def test_the_file_has_its_full_size_from_the_start(tmp_path: Path) -> None:
    path = tmp_path / "state"
    StateFile(path).close()
    size_bytes = path.stat().st_size
    written(path, *range(1, 10))
    assert path.stat().st_size == size_bytes == 2 * SLOT_BYTES


def test_a_state_that_is_too_long_is_not_written(tmp_path: Path) -> None:
    ranges = [NumberRange(index, index) for index in range(1000)]
    file = StateFile(tmp_path / "state")
    with pytest.raises(ValueError, match="a state of"):
        file.write(SpoolState(numbering=Numbering(ranges, None), next_index=1))
    file.close()
    assert found(tmp_path / "state") is None
