from hypothesis import given
from hypothesis import strategies as st

from linkbound.client.spool.frames import FIRST_RECORDS, HEADER_BYTES, SAMPLES, frame_at, frame_bytes, frames_in

PAYLOADS = st.lists(st.binary(max_size=200), min_size=1, max_size=8)


def file_of(payloads: list[bytes]) -> bytes:
    return b"".join(frame_bytes(SAMPLES, 7 + i, 2 * i, payload) for i, payload in enumerate(payloads))


@given(PAYLOADS)
def test_what_was_written_is_found_again(payloads: list[bytes]) -> None:
    content = file_of(payloads)
    frames = list(frames_in(content))
    assert [content[f.payload_offset : f.end_offset] for f in frames] == payloads
    assert [(f.kind, f.index, f.row_count) for f in frames] == [(SAMPLES, 7 + i, 2 * i) for i in range(len(payloads))]
    assert all(f.holds(content[f.payload_offset : f.end_offset]) for f in frames)


@given(PAYLOADS, st.data())
def test_a_flipped_bit_costs_one_frame_and_is_always_noticed(payloads: list[bytes], data: st.DataObject) -> None:
    content = bytearray(file_of(payloads))
    position = data.draw(st.integers(0, len(content) - 1))
    content[position] ^= 1 << data.draw(st.integers(0, 7))
    damaged = bytes(content)
    good = [f.index for f in frames_in(damaged) if f.holds(damaged[f.payload_offset : f.end_offset])]
    hit = next(f.index for f in frames_in(file_of(payloads)) if position < f.end_offset)
    assert good == [index for index in range(7, 7 + len(payloads)) if index != hit]


@given(PAYLOADS, st.data())
def test_a_file_that_is_cut_off_holds_what_lies_before_the_cut(payloads: list[bytes], data: st.DataObject) -> None:
    content = file_of(payloads)
    cut = content[: data.draw(st.integers(0, len(content)))]
    good = [f for f in frames_in(cut) if f.holds(cut[f.payload_offset : f.end_offset])]
    assert [f.index for f in good] == [f.index for f in frames_in(content) if f.end_offset <= len(cut)]


def test_a_payload_that_looks_like_a_frame_is_none() -> None:
    inner = frame_bytes(FIRST_RECORDS, 99, 1, b"inside")
    content = frame_bytes(SAMPLES, 1, 1, inner) + frame_bytes(SAMPLES, 2, 1, b"")
    assert [f.index for f in frames_in(content)] == [1, 2]


def test_no_frame_begins_where_there_is_no_room_for_its_header() -> None:
    assert frame_at(frame_bytes(SAMPLES, 1, 1, b"")[: HEADER_BYTES - 1], 0) is None
