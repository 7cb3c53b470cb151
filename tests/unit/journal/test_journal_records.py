"""The bytes of a record: what goes in comes out, nothing else passes for one, limits are shown by type."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.journal import Fsync, Journal, JournalEntry, JournalOptions, RecordTooLargeError
from headwater.journal.record import (
    HEAD_SIZE,
    LARGEST_FIELD,
    body_matches,
    decode_body,
    encode,
    encode_batch,
    encode_plain,
    read_head,
)

KEYS = st.none() | st.binary(max_size=40)
HEADERS = st.lists(st.tuples(st.text(max_size=10), st.binary(max_size=20)), max_size=4).map(tuple)
OFFSETS = st.integers(0, 2**63)
TIMES = st.integers(-(2**63), 2**63 - 1)


@given(st.builds(JournalEntry, st.binary(max_size=400), KEYS, HEADERS), OFFSETS, TIMES, st.integers(0, 2**40))
def test_what_goes_in_comes_out(entry: JournalEntry, offset: int, time: int, seed: int) -> None:
    value, key, headers = entry
    frame = encode(value, key, headers, offset=offset, time=time, seed=seed)
    head = read_head(b"xy" + frame, 2)
    assert head is not None
    assert head.size == len(frame)
    assert body_matches(frame, head, seed)
    assert decode_body(b"xy" + frame, 2, head) == (offset, time, key, headers, value)


@given(st.binary(max_size=60), st.integers(0, 2**33), st.data())
def test_every_changed_byte_shows(value: bytes, seed: int, data: st.DataObject) -> None:
    frame = bytearray(encode(value, b"k", [("h", b"v")], offset=7, time=8, seed=seed))
    frame[data.draw(st.integers(0, len(frame) - 1))] ^= data.draw(st.integers(1, 255))
    head = read_head(bytes(frame), 0)
    assert head is None or head.size != len(frame) or not body_matches(bytes(frame), head, seed)


def test_a_frame_elsewhere_is_none() -> None:
    frame = encode_plain(b"value", 3, 4, 1000)
    head = read_head(frame, 0)
    assert head is not None
    assert body_matches(frame, head, 1000)
    assert not body_matches(frame, head, 1001)


def test_a_batch_is_the_frames_one_by_one() -> None:
    entries: list[bytes | JournalEntry] = [
        b"one",
        JournalEntry(b"two", b"k", [("h", b"v")]),
        b"",
        JournalEntry(b"three"),
    ]
    frames: list[bytes] = []
    at = 50
    for number, entry in enumerate(entries):
        value, key, headers = entry if isinstance(entry, JournalEntry) else JournalEntry(entry)
        frames.append(encode(value, key, headers, offset=number + 9, time=5, seed=at))
        at += len(frames[-1])
    assert b"".join(encode_batch(entries, 9, 5, 50, 10_000)) == b"".join(frames)
    room = len(frames[0]) + len(frames[1])
    assert b"".join(encode_batch(entries, 9, 5, 50, room)) == b"".join(frames[:2])
    assert b"".join(encode_batch(entries, 9, 5, 50, room - 1)) == frames[0]
    assert b"".join(encode_batch(entries, 9, 5, 50, 1)) == frames[0], "one always fits"


@pytest.mark.parametrize(
    ("entry", "word"),
    [
        (JournalEntry(b"x" * 1001), "max_record_bytes"),
        (JournalEntry(b"x" * 990, b"k" * 11), "max_record_bytes"),
        (JournalEntry(b"", b"k" * (LARGEST_FIELD + 1)), "key"),
        (JournalEntry(b"", None, [("h", b"v" * (LARGEST_FIELD + 1))]), "header"),
        (JournalEntry(b"", None, [("h", b"v" * 30_000), ("i", b"v" * 40_000)]), "headers"),
    ],
)
def test_what_is_too_large_is_refused_before_anything_is_written(
    tmp_path: Path, entry: JournalEntry, word: str
) -> None:
    with Journal.open(tmp_path, JournalOptions(fsync=Fsync.NONE, max_record_bytes=1000)) as journal:
        size = journal.size
        with pytest.raises(RecordTooLargeError, match=word):
            journal.append(entry.value, key=entry.key, headers=entry.headers)
        with pytest.raises(RecordTooLargeError, match=word):
            journal.append_many([b"small", entry])
        assert journal.size == size
        assert journal.append(b"x" * 1000) == 0
        assert journal.size == size + HEAD_SIZE + 1000
