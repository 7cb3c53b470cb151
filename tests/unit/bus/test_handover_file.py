"""Files that somebody else put where drivers hand over: what isn't a whole one is never used, whatever is in it."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from io import BytesIO
from pathlib import Path

import fastavro
import pytest

from headwater.errors import HeadwaterError, TransientError
from headwater.events import Heartbeat
from headwater.journal import Journal, JournalEntry, JournalRecord, MissingRecords
from headwater.listeners.bus.handover import Handover, LocalDirectory
from headwater.listeners.bus.handover_file import (
    HandoverFile,
    HandoverFileError,
    HandoverHeader,
    encode_handover,
)
from headwater.listeners.bus.spool_manifest import ALL_FAMILIES
from headwater.listeners.settings import Settings
from tests.kit.bus.scripts import Taking, bus_of, emit_all, ids
from tests.kit.waiting import PATIENCE, until

HEADER = HandoverHeader(0, {"mine": 0}, {"mine": ALL_FAMILIES}, "application_1", "", "")


def spool(place: Path, count: int = 12) -> Journal:
    journal = Journal.open(place / "spool")
    headers = (("family", b"JOB"), ("sequence", b"1"))
    values = (bytes([1 + number % 200] * 100) for number in range(count))
    journal.append_many([JournalEntry(value, b"key", headers) for value in values])
    return journal


@pytest.fixture
def whole(tmp_path: Path) -> bytes:
    with spool(tmp_path) as journal:
        return encoded(journal, journal.next_offset)


def encoded(journal: Journal, end: int, **positions: int) -> bytes:
    header = HandoverHeader(end, positions or {"mine": 0}, HEADER.families, "application_1", "", "")
    return b"".join(encode_handover(header, journal))


def opened(directory: Path, data: bytes) -> HandoverFile:
    path = directory / "copy"
    path.write_bytes(data)
    return HandoverFile("copy.avro", path.open("rb"))


def read_all(file: HandoverFile, position: int, step: int = 1000) -> Iterator[JournalRecord | MissingRecords]:
    with file.tail(position) as tail:
        while batch := tail.read(step):
            yield from batch.missing
            yield from batch.records


def test_what_is_read_is_what_the_spool_had(tmp_path: Path) -> None:
    with spool(tmp_path) as journal, journal.tail(0) as tail:
        records = tail.read(100).records
        file = opened(tmp_path, encoded(journal, 12, mine=3, late=7))
    with file:
        check_reading(tmp_path, file, records)


def check_reading(place: Path, file: HandoverFile, records: Sequence[JournalRecord]) -> None:
    assert file.header.waiting == {"mine": 9, "late": 5}
    for step in (1, 5, 1000):
        assert list(read_all(file, 3, step)) == list(records[3:])
    cursor = file.cursor("late")
    assert cursor.read(2).records == records[7:9]
    cursor.rewind()
    assert cursor.read(3).records == records[7:10]
    cursor.commit(9)
    cursor.rewind()
    assert cursor.read().records == records[9:]
    assert file.positions() == {"mine": 3, "late": 9}
    cursor.commit(12)
    cursor.rewind()
    assert not cursor.read()
    with opened(place, b"".join(encode_handover(file.rest, file))) as rest:
        assert rest.header.positions == {"mine": 3}
        assert list(read_all(rest, 3)) == list(records[3:])


def test_a_file_of_any_avro_reader(whole: bytes) -> None:
    """What is handed over can be read without headwater."""
    rows = list(fastavro.reader(BytesIO(whole)))
    assert [row["offset"] for row in rows] == list(range(13))  # type: ignore[call-overload,index]
    assert rows[-1]["value"] == b"", "the mark of its end"  # type: ignore[call-overload,index]


def test_one_that_is_cut_anywhere_is_none(tmp_path: Path, whole: bytes) -> None:
    opened(tmp_path, whole).close()
    for length in {*range(0, len(whole), 17), *range(len(whole) - 20, len(whole))}:
        with pytest.raises(HandoverFileError):
            opened(tmp_path, whole[:length])
    with pytest.raises(HandoverFileError):
        opened(tmp_path, whole + whole)


def test_one_that_is_cut_between_two_blocks_is_none(tmp_path: Path) -> None:
    """What is left of it is a right container, and lacks its end."""
    with spool(tmp_path, 6_000) as journal:
        data = encoded(journal, journal.next_offset)
    sync = data[-16:]
    ends = [at + 16 for at in range(len(data)) if data.startswith(sync, at)]
    assert len(ends) > 3
    for end in ends[:-1]:
        with pytest.raises(HandoverFileError, match="its end is missing"):
            opened(tmp_path, data[:end])
    opened(tmp_path, data[: ends[-1]]).close()


def test_one_of_another_schema_is_none(tmp_path: Path, whole: bytes) -> None:
    """Though all that is read of a record stands in it, and its metadata are right."""
    reader = fastavro.reader(BytesIO(whole))
    rows, schema = list(reader), json.loads(reader.metadata["avro.schema"])
    schema["fields"].append({"name": "more", "type": "long", "default": 0})
    stream = BytesIO()
    fastavro.writer(stream, schema, rows, metadata={"headwater.handover": reader.metadata["headwater.handover"]})
    with pytest.raises(HandoverFileError, match="it is of another kind"):
        opened(tmp_path, stream.getvalue())


def test_one_with_a_bit_that_changed_is_none_or_says_the_same(tmp_path: Path, whole: bytes) -> None:
    """All that a listener gets of a record is under its checksum, and the rest says itself where it is wrong."""
    beginning = whole.index(b"key")
    with opened(tmp_path, whole) as file:
        records = list(read_all(file, 0))
    randomness = random.Random(7)
    for _ in range(100):
        data = bytearray(whole)
        data[randomness.randrange(beginning, len(data))] ^= 1 << randomness.randrange(8)
        try:
            with opened(tmp_path, bytes(data)) as file:
                changed = list(read_all(file, 0))
        except HandoverFileError:
            continue
        times = [(each._replace(time=0) if isinstance(each, JournalRecord) else each) for each in changed]
        assert times == [each._replace(time=0) for each in records if isinstance(each, JournalRecord)]


def avro_of(schema: object, rows: list[object], codec: str = "null") -> bytes:
    stream = BytesIO()
    fastavro.writer(stream, schema, rows, codec=codec)  # type: ignore[arg-type]
    return stream.getvalue()


def nested(depth: int) -> bytes:
    schema = {"type": "record", "name": "R", "fields": [{"name": "next", "type": ["null", "R"]}]}
    return avro_of(schema, [{"next": None}]) + b"\x02" * depth


FOREIGN: dict[str, bytes] = {
    "nothing": b"",
    "text": b"total: 3 spools\n" * 1000,
    "magic alone": b"Obj\x01",
    "an endless map": b"Obj\x01" + b"\x02\x00\x00" * 100_000,
    "a name of 2^60 bytes": b"Obj\x01\x02" + b"\xfe" * 8 + b"\x0f",
    "a negative length": b"Obj\x01\x02\x01",
    "another's": avro_of({"type": "record", "name": "A", "fields": [{"name": "a", "type": "long"}]}, [{"a": 1}]),
    "compressed": avro_of("string", ["a" * 1_000_000], "deflate"),
    "a schema that calls itself": nested(100_000),
    "deep JSON": b"Obj\x01\x02\x16avro.schema\xc0\xb8\x02" + b"[" * 20_000,
}


@pytest.mark.parametrize("what", FOREIGN)
def test_what_somebody_else_wrote_is_none(tmp_path: Path, what: str) -> None:
    with pytest.raises(HandoverFileError):
        opened(tmp_path, FOREIGN[what])
    with pytest.raises(HandoverFileError):
        HandoverHeader.parse(FOREIGN[what])


@pytest.mark.parametrize("size", [1 << 40, 0x7FFFFFFFFFFFFFFF])
def test_no_block_has_more_than_a_record_may_have(tmp_path: Path, whole: bytes, size: int) -> None:
    """The block says that it is that large, and the file is as large: holes take no room on the disk."""
    stream = BytesIO()
    fastavro.schemaless_writer(stream, "long", size)
    sync = whole[-16:]
    data = whole[: whole.index(sync) + 16] + b"\x02" + stream.getvalue()
    path = tmp_path / "copy"
    path.write_bytes(data)
    os.truncate(path, min(size, 10 << 30))
    with pytest.raises(HandoverFileError, match="wants"):
        HandoverFile("copy.avro", path.open("rb"))


def links(directory: Path, whole: bytes) -> None:
    outside = directory.with_name("outside")
    outside.write_bytes(whole)
    (directory / "link.avro").symlink_to(outside)
    (directory / "..avro").symlink_to(directory.parent)
    (directory / "dangling.avro").symlink_to("/nowhere")


def others(directory: Path, whole: bytes) -> None:
    os.mkfifo(directory / "fifo.avro")
    (directory / "directory.avro").mkdir()
    (directory / ".hidden.avro").write_bytes(whole)
    (directory / "unfinished").write_bytes(whole)


@pytest.mark.parametrize("plant", [links, others])
def test_only_regular_files_right_there_count(
    tmp_path: Path, whole: bytes, plant: Callable[[Path, bytes], None]
) -> None:
    directory = tmp_path / "shared"
    directory.mkdir()
    plant(directory, whole)
    handover = Handover(str(directory), lambda: LocalDirectory(directory), Settings(spool_dir=tmp_path))
    assert handover.sizes() == {}
    for each in sorted(directory.iterdir()):
        if each.is_symlink() or not each.is_file():  # as if it had been put there after the look
            with pytest.raises(HeadwaterError, match=r"symbolic link|regular file|directory"):
                handover.fetch(each.name, len(whole))
    handover.close()


@pytest.mark.slow
def test_a_driver_takes_up_what_is_right_beside_all_that_is_wrong(tmp_path: Path) -> None:
    """Links, pipes, foreign files, 10 GB of zeros and names with `../` in what a file says: each stays, is known, and
    keeps nothing else from being delivered. No path outside is touched."""
    shared, made = tmp_path / "shared", Taking()
    keys = {"spool.handover": str(shared)}
    with spool(tmp_path, 1) as journal:
        data = encoded(journal, 1)
        climbing = encoded(journal, 1, **{"../../outside": 0})
    shared.mkdir(exist_ok=True)
    links(shared, data)
    others(shared, data)
    for number, foreign in enumerate([*FOREIGN.values(), data[:-1]]):
        (shared / f"a{number}.avro").write_bytes(foreign)
    (shared / "climbing.avro").write_bytes(climbing)
    for name, beginning in {"zeros.avro": b"", "hole.avro": data}.items():
        (shared / name).write_bytes(beginning)
        os.truncate(shared / name, 10 << 30)
    planted = {each.name for each in shared.iterdir()}
    before = set(tmp_path.iterdir())

    class Away(Taking):
        def handle(self, batch: object) -> None:
            raise TransientError("away")

    with bus_of(tmp_path / "pod2", {"mine": lambda _: Away()}, keys) as bus:
        emitted = emit_all(bus, [Heartbeat()] * 3)
        assert not bus.stop(0.3)
    began = time.monotonic()
    with bus_of(tmp_path / "pod3", {"mine": lambda _: made}, keys) as bus:
        until(lambda: bus.report().shipped == 1)
        until(lambda: "zeros.avro: it isn't a whole file" in bus.handover_error)
        assert "hole.avro: it has 10737418240 bytes" in bus.handover_error
    assert time.monotonic() - began < PATIENCE
    assert ids(made.records) == ids(emitted)
    assert {each.name for each in shared.iterdir()} == planted
    assert set(tmp_path.iterdir()) - before == {tmp_path / "pod2", tmp_path / "pod3"}
