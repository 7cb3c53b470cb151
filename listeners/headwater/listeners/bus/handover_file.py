"""What a driver couldn't deliver, as one Avro object container file: its form, and reading it without trusting it.

The metadata `headwater.handover` says whose events these are and where each listener stands. Each record is one of the
spool's, with its offset there; the last one has no value and says that the file is whole. Before a file is used all of
it is checked, no more is read at once than a record may have, and no name in it is taken for a path.
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import IO, Any, Final
from zlib import crc32

import fastavro
from fastavro.write import Writer

from headwater.errors import TerminalError
from headwater.events.envelope import EventFamily
from headwater.journal import JournalBatch, JournalRecord, MissingReason, MissingRecords
from headwater.journal.files import Closing
from headwater.journal.record import LARGEST_BODY
from headwater.listeners.bus.gap_tracker import RecordSource
from headwater.listeners.bus.spool_manifest import parse_families

HEADER_BYTES: Final = 64 << 10
_METADATA: Final = "headwater.handover"
_SCHEMA: Final = json.loads("""
{"type": "record", "name": "headwater.SpoolRecord", "fields": [
  {"name": "offset", "type": "long"},
  {"name": "missing", "type": ["null", "string"]},
  {"name": "time", "type": "long"},
  {"name": "key", "type": ["null", "bytes"]},
  {"name": "headers", "type": {"type": "map", "values": "bytes"}},
  {"name": "value", "type": "bytes"},
  {"name": "crc", "type": "long"}]}
""")
"""`missing` says why the offsets directly before a record don't come; `crc` is of key, headers and value."""
_HEADER: Final = fastavro.parse_schema(
    json.loads("""
{"type": "record", "name": "header", "fields": [
  {"name": "magic", "type": {"type": "fixed", "name": "magic", "size": 4}},
  {"name": "meta", "type": {"type": "map", "values": "bytes"}}]}
""")
)
_PARSED: Final = fastavro.parse_schema(_SCHEMA)
_BLOCK: Final = 256 << 10
_LARGEST_BLOCK: Final = LARGEST_BODY + 2 * _BLOCK
_Stored = tuple[JournalRecord, MissingReason | None]


class HandoverFileError(TerminalError):
    """It isn't a whole file of headwater's: it is left where it is, and nothing in it is delivered."""


@dataclass(frozen=True)
class HandoverHeader:
    """What the beginning of a file says."""

    end: int
    """The offset behind the last record."""
    positions: Mapping[str, int]
    """Where the listeners stand that haven't got everything."""
    families: Mapping[str, frozenset[EventFamily]]
    application: str
    producer: str
    since: str

    @property
    def waiting(self) -> Mapping[str, int]:
        """How many records a listener hasn't acknowledged, at most."""
        return {name: self.end - position for name, position in self.positions.items() if position < self.end}

    def to_json(self) -> str:
        families = {name: sorted(member.value for member in members) for name, members in self.families.items()}
        return json.dumps({**vars(self), "families": families})

    @classmethod
    def parse(cls, data: bytes) -> HandoverHeader:
        """Of the first bytes of a file. A HandoverFileError where it isn't one of headwater's."""
        with _distrust():
            return _open(data[:HEADER_BYTES], BytesIO(data))[0]


def encode_handover(header: HandoverHeader, source: RecordSource) -> Iterator[bytes]:
    """The bytes of a file with what somebody named in the header hasn't got of a spool, or of another file."""
    buffer = BytesIO()
    writer: Any = Writer(buffer, _PARSED, sync_interval=_BLOCK, metadata={_METADATA: header.to_json()})
    expected, reason = min(header.positions.values(), default=header.end), MissingReason.MISSING
    with source.tail(expected) as tail:
        while expected < header.end and (batch := tail.read(1000, 1 << 20)):
            reason = batch.missing[-1].reason if batch.missing else reason
            for record in batch.records:
                writer.write(_to_fields(record, reason if record.offset > expected else None))
                expected, reason = record.offset + 1, MissingReason.MISSING
            yield _take(buffer)
    last = JournalRecord(header.end, 0, None, (), b"")
    writer.write(_to_fields(last, reason if header.end > expected else None))
    writer.flush()
    yield _take(buffer)


class HandoverFile(Closing):
    """A whole file, as the dispatchers of listeners see a spool. The file is this process's own copy."""

    def __init__(self, name: str, file: IO[bytes]) -> None:
        """Check all of it: a HandoverFileError where it isn't whole."""
        self.name = name
        self._file = file
        try:
            self.header = HandoverHeader.parse(os.pread(file.fileno(), HEADER_BYTES, 0))
            for _ in self.records():
                pass
        except BaseException:
            file.close()
            raise
        self._positions = dict(self.header.positions)

    @property
    def directory(self) -> Path:
        """Its name, for people: nothing is looked for there."""
        return Path(self.name)

    @property
    def next_offset(self) -> int:
        return self.header.end

    def positions(self) -> dict[str, int]:
        """Where the listeners stand by now."""
        return dict(self._positions)

    @property
    def rest(self) -> HandoverHeader:
        """The header of a file with what is left by now."""
        left = {name: position for name, position in self._positions.items() if position < self.header.end}
        return replace(self.header, positions=left)

    def cursor(self, name: str) -> HandoverCursor:
        return HandoverCursor(self, self._positions.get(name, self.header.end), lambda at: self._note(name, at))

    def tail(self, position: int) -> HandoverCursor:
        return HandoverCursor(self, position, lambda _: None)

    def records(self) -> Iterator[_Stored]:
        """All of them, with why offsets before them are missing."""
        with _distrust():
            header, records = self._open()
            expected, record = min(header.positions.values(), default=header.end), None
            for field in records:
                record, missing = _from_fields(field)
                if not expected <= record.offset <= header.end or (record.offset > expected) != (missing is not None):
                    raise HandoverFileError(f"record {record.offset} doesn't belong where it stands")
                yield record, missing
                expected = record.offset + 1
            if record is None or record.value or expected != header.end + 1:
                raise HandoverFileError("its end is missing")

    def close(self) -> None:
        self._file.close()

    def _note(self, name: str, position: int) -> None:
        self._positions[name] = position

    def _open(self) -> tuple[HandoverHeader, Iterator[Any]]:
        return _open(os.pread(self._file.fileno(), HEADER_BYTES, 0), _BoundedReader(self._file))


class HandoverCursor(Closing):
    """Reads a file for one listener, as a journal's cursor does. What is committed is known to the file alone."""

    def __init__(self, file: HandoverFile, position: int, on_commit: Callable[[int], None]) -> None:
        self.committed = self.position = position
        self._on_commit = on_commit
        self._stored = (entry for entry in file.records() if entry[0].offset >= position)
        self._read: list[_Stored] = []
        """What isn't committed."""
        self._again: deque[_Stored] = deque()

    def read(self, max_records: int = 1000, max_bytes: int = 1 << 20, timeout: float = 0.0) -> JournalBatch:
        """The next records, and what is missing directly before them."""
        records: list[JournalRecord] = []
        missing: tuple[MissingRecords, ...] = ()
        size = 0
        while len(records) < max_records and size < max_bytes and (stored := self._next()) is not None:
            record, reason = stored
            if reason is not None and record.offset > self.position:
                if records:
                    self._again.appendleft(stored)
                    break
                missing = (MissingRecords(self.position, record.offset, reason),)
            self._read.append(stored)
            records += [record] if record.value else []
            size += len(record.value)
            self.position = record.offset + bool(record.value)
        return JournalBatch(tuple(records), missing, self.position)

    def commit(self, position: int) -> None:
        self.committed = position
        self._read = [entry for entry in self._read if entry[0].offset >= position]
        self._on_commit(position)

    def rewind(self) -> None:
        self._again.extendleft(reversed(self._read))
        self._read = []
        self.position = self.committed

    def close(self) -> None:
        self._read.clear()
        self._again.clear()

    def _next(self) -> _Stored | None:
        return self._again.popleft() if self._again else next(self._stored, None)


class _BoundedReader:
    """A stream of its own over a file; reads no more at once than a block may have."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._at = 0

    def read(self, count: int) -> bytes:
        if not 0 <= count <= _LARGEST_BLOCK:
            raise HandoverFileError(f"at byte {self._at} something wants {count} bytes")
        data = os.pread(self._file.fileno(), count, self._at)
        self._at += len(data)
        return data


def _open(beginning: bytes, stream: Any) -> tuple[HandoverHeader, Iterator[Any]]:
    """Nothing is decoded by a schema that isn't known here: one could have its decoder call itself for ever."""
    container: Any = fastavro.schemaless_reader(BytesIO(beginning), _HEADER, None)
    meta = container["meta"]
    if (container["magic"], meta["avro.codec"], json.loads(meta["avro.schema"])) != (b"Obj\x01", b"null", _SCHEMA):
        raise ValueError("it is of another kind")
    fields = json.loads(meta[_METADATA])
    header = HandoverHeader(
        int(fields["end"]),
        {str(name): int(position) for name, position in fields["positions"].items()},
        {str(name): parse_families(words) for name, words in fields["families"].items()},
        *(str(fields[name]) for name in ("application", "producer", "since")),
    )
    return header, fastavro.reader(stream)


@contextmanager
def _distrust() -> Generator[None, None, None]:
    """Whatever a stranger's bytes do to a decoder is a HandoverFileError."""
    try:
        yield
    except HandoverFileError:
        raise
    except Exception as e:
        raise HandoverFileError(f"it isn't a whole file that headwater wrote ({type(e).__name__}: {e!s:.80})") from e


def _to_fields(record: JournalRecord, missing: MissingReason | None) -> dict[str, Any]:
    offset, time, key, headers, value = record
    return {
        "offset": offset,
        "missing": missing and missing.value,
        "time": time,
        "key": key,
        "headers": dict(headers),
        "value": value,
        "crc": _checksum(record),
    }


def _from_fields(fields: Any) -> _Stored:
    headers = tuple(fields["headers"].items())
    record = JournalRecord(fields["offset"], fields["time"], fields["key"], headers, fields["value"])
    if _checksum(record) != fields["crc"]:
        raise HandoverFileError(f"record {record.offset} isn't as it was written")
    return record, fields["missing"] and MissingReason(fields["missing"])


def _checksum(record: JournalRecord) -> int:
    parts = [record.key or b"", record.value]
    for name, value in record.headers:
        parts += name.encode(), value
    return crc32(b"\0".join(parts))


def _take(buffer: BytesIO) -> bytes:
    data = buffer.getvalue()
    buffer.seek(0)
    buffer.truncate()
    return data
