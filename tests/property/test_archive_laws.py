"""Laws of the archive: records come back as they went in, and columns say what the event says."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.consumers.archive.decoding import DECODED_FIELDS, UNDECODED, DecodedEvent, EventReader, to_columns
from headwater.consumers.archive.ordered_rows import Verification
from headwater.consumers.archive.table import EventArchive
from headwater.consumers.archive.upkeep import compact
from headwater.consumers.sources import BusRecord
from headwater.events import Committed, DatasetId, Event
from headwater.events.avro import Codec
from headwater.events.base import Model
from headwater.lineage.bulk import BusPartition
from headwater.testing.strategies import events
from tests.kit.archive.records import DATA, DAY, NOON, append, in_order, read_all
from tests.kit.effort import examples

pytestmark = pytest.mark.slow
GOLDEN = [
    bytes.fromhex(each["bytes"])
    for file in sorted(Path("tests/golden").glob("*.json"))
    for each in json.loads(file.read_text())
]


def decoded(data: list[bytes]) -> list[DecodedEvent]:
    """As the archive's columns have it."""
    reader = EventReader()
    columns = to_columns(reader.read(each) for each in data)
    return [DecodedEvent(*row) for row in zip(*(column.to_pylist() for column in columns), strict=True)]


def datasets_in(value: Any) -> Iterator[str]:
    if isinstance(value, DatasetId):
        yield str(value)
    elif isinstance(value, Model):
        for name in type(value).model_fields:
            yield from datasets_in(getattr(value, name))
    elif isinstance(value, tuple):
        for each in value:
            yield from datasets_in(each)


@settings(max_examples=examples(40))
@given(st.lists(events(), min_size=1, max_size=12))
def test_columns_say_what_the_event_says(drafts: list[Event]) -> None:
    codec = Codec()
    data = [codec.encode(each) for each in drafts]
    found = decoded(data)
    for event, columns in zip(drafts, found, strict=True):
        job = event.job
        assert columns.kind == event.kind
        assert columns.error is None
        assert columns.schema_version == event.schema_version
        assert columns.event_time == event.time
        assert (columns.producer, columns.sequence) == (str(event.producer), event.sequence)
        assert columns.application == event.application
        assert (columns.job_namespace, columns.job) == (job.namespace if job else None, job.name if job else None)
        assert columns.run == (None if event.run is None else str(event.run))
        assert columns.barrier == (event.barrier if isinstance(event, Committed) else None)
        assert set(columns.datasets or ()) == set(datasets_in(event))
        assert len(columns.datasets or ()) == len(set(columns.datasets or ()))


def test_every_released_version_is_decoded() -> None:
    found = decoded(GOLDEN)
    assert len(found) >= 27
    assert [each for each in found if each.kind == UNDECODED] == []


def broken(random: Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(random.randint(1, 3)):
        at = random.randrange(len(changed)) if changed else 0
        way = random.random()
        if way < 0.5 and changed:
            changed[at] = random.randrange(256)
        elif way < 0.7:
            del changed[at : at + random.randint(1, 4)]
        elif way < 0.9:
            changed[at:at] = random.randbytes(random.randint(1, 12))
        else:
            del changed[at:]
    return bytes(changed)


@settings(max_examples=examples(20))
@given(st.randoms(use_true_random=False))
def test_broken_bytes_say_why_they_are_not_decoded(random: Random) -> None:
    for each in decoded([broken(random, random.choice(GOLDEN)) for _ in range(80)]):
        assert (each.kind == UNDECODED) == (each.error is not None) == (each.producer is None)


NUMBERS = [(1 << 31) - 1, 1 << 31, -(1 << 31) - 1, (1 << 63) - 1, -(1 << 63)]


@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_that_no_column_holds_makes_an_event_undecoded(number: int) -> None:
    """It mustn't end the archiver."""
    zigzag = (number << 1) ^ (number >> 63)
    varint = bytearray()
    while zigzag > 0x7F:
        varint.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    varint.append(zigzag)
    data = [each[:10] + bytes(varint) + each[11:] for each in DATA]  # in the place of schema_version
    found = decoded(data)
    assert {each.kind == UNDECODED for each in found} == {not -(1 << 31) <= number < 1 << 31}


PARTITIONS = st.builds(BusPartition, st.just("cluster"), st.sampled_from(["topic-a", "topic-b"]), st.integers(0, 1))
HEADERS = st.lists(
    st.tuples(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), st.binary(max_size=9)), max_size=3
)
LOOSE = st.builds(
    lambda partition, data, key, time, headers: BusRecord(data, partition, 0, time, key, tuple(headers)),
    PARTITIONS,
    st.one_of(st.binary(max_size=40), st.sampled_from(DATA)),
    st.none() | st.binary(max_size=9),
    st.none() | st.integers(NOON - DAY, NOON + DAY),
    HEADERS,
)


@settings(max_examples=examples(10))
@given(st.lists(st.lists(LOOSE, min_size=1, max_size=15), min_size=1, max_size=4), st.integers(1, 9), st.booleans())
def test_records_come_back_as_they_went_in(commits: list[list[BusRecord]], most: int, is_compacted: bool) -> None:
    counters: dict[BusPartition, Iterator[int]] = {}
    placed = [
        [each._replace(offset=next(counters.setdefault(each.partition, count(3)))) for each in commit]
        for commit in commits
    ]
    with tempfile.TemporaryDirectory() as directory:
        archive = EventArchive.create(Path(directory) / "archive")
        for commit in placed:
            append(archive, commit)
        if is_compacted:
            compact(archive, before=None)
        assert in_order(read_all(archive.address, most=most)) == in_order(each for commit in placed for each in commit)
        verification = Verification(archive)
        assert list(verification.run())
        assert (verification.damages, verification.unarchived) == ([], [])


def test_each_column_has_a_field() -> None:
    assert DecodedEvent._fields == tuple(each.name for each in DECODED_FIELDS)
