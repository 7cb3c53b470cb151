"""Decodes the records of a batch into the archive's columns: events of one schema together, the others one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from headwater.consumers.archive.arrow import pa
from headwater.consumers.archive.decoding import FIRST_TIME, LAST_TIME, TIME, EventReader, dataset_text, to_columns
from headwater.events.avro import DecodeError
from headwater.events.avro.column_reader import AvroColumns, FoundSpans, ReadColumns, Rows
from headwater.events.avro.framing import HEADER_BYTES
from headwater.events.avro.schema_cache import WriterSchema

FEWEST: Final = 64
"""Fewer events of a schema are quicker one by one."""
_MOST_DATASETS: Final = 100_000
_ID_BYTES: Final = 16
_INT: Final = 1 << 31
_ENVELOPE: Final = ("schema_version", "producer", "sequence", "time", "application", "run")
_WANTED: Final = frozenset([*_ENVELOPE, "job.namespace", "job.name", "part.number", "part.of", "barrier"])
_NUMBERS: Final = {"schema_version": _INT, "part.number": _INT, "part.of": _INT}


class ColumnDecoder:
    """Decodes batches. Not thread-safe."""

    def __init__(self, *, fewest: int = FEWEST) -> None:
        self._reader = EventReader()
        self._fewest = fewest
        self._columns: dict[bytes, AvroColumns] = {}
        self._datasets: dict[bytes, str] = {}

    def decode(self, data: Sequence[bytes]) -> list[Any]:
        """Return the kinds, and the other columns in the archive's order."""
        groups: dict[bytes, list[int]] = {}
        for number, each in enumerate(data):
            groups.setdefault(each[:HEADER_BYTES], []).append(number)
        parts: list[list[Any]] = []
        places: list[Rows] = []
        single: list[int] = []
        for header, rows in groups.items():
            schema = self._schema_of(header) if len(rows) >= self._fewest else None
            read = None if schema is None else self._decode_group(schema, [data[row] for row in rows])
            if read is None:
                single += rows
                continue
            columns, plain = read
            places.append(np.asarray(rows)[plain])
            parts.append(columns)
            single += np.asarray(rows)[~plain].tolist()
        single.sort()
        parts.append(to_columns(self._reader.read(data[row]) for row in single))
        places.append(np.asarray(single, np.int64))
        return _in_order(parts, places)

    def _schema_of(self, header: bytes) -> WriterSchema | None:
        try:
            return self._reader.schema_of(header).schema
        except DecodeError:
            return None

    def _decode_group(self, schema: WriterSchema, events: Sequence[bytes]) -> tuple[list[Any], Any] | None:
        """Return the columns of the plain events, and which those are; None if all have to be read one by one."""
        reader = self._columns.get(schema.fingerprint)
        if reader is None:
            reader = self._columns[schema.fingerprint] = AvroColumns(schema, _WANTED.__contains__)
        found = reader.read(events, HEADER_BYTES)
        time = _numbers(found, "time", len(events))[0]
        found.is_odd |= (time < FIRST_TIME) | (time > LAST_TIME)
        for path, limit in _NUMBERS.items():
            values = _numbers(found, path, len(events))[0]
            found.is_odd |= (values < -limit) | (values >= limit)
        try:
            columns = self._group_columns(schema.kind, found, len(events))
        except (ValueError, pa.ArrowException):  # a text of one of them is none
            return None
        plain = ~found.is_odd
        return (columns if plain.all() else [each.filter(pa.array(plain)) for each in columns]), plain

    def _group_columns(self, kind: str, found: ReadColumns, count: int) -> list[Any]:
        return [
            pa.repeat(pa.scalar(kind, pa.string()), count),
            _number_column(found, "schema_version", count, pa.int32()),
            _number_column(found, "time", count, pa.int64()).cast(TIME),
            self._id_column(found, "producer", count),
            _number_column(found, "sequence", count, pa.int64()),
            _text_column(found, "application", count),
            _text_column(found, "job.namespace", count),
            _text_column(found, "job.name", count),
            self._id_column(found, "run", count),
            _number_column(found, "barrier", count, pa.int64()),
            _number_column(found, "part.number", count, pa.int32()),
            _number_column(found, "part.of", count, pa.int32()),
            self._dataset_column(found, count),
            pa.nulls(count, pa.string()),
        ]

    def _id_column(self, found: ReadColumns, path: str, count: int) -> Any:
        spans = _plain(found, found.spans.get(path))
        if spans is None:
            return pa.nulls(count, pa.string())
        window = np.lib.stride_tricks.sliding_window_view(found.data, _ID_BYTES)
        encoded = pa.Array.from_buffers(
            pa.binary(_ID_BYTES), len(spans.rows), [None, pa.py_buffer(window[spans.begins])]
        ).dictionary_encode()
        codes, unique = encoded.indices, encoded.dictionary.to_pylist()
        texts = pa.array([self._reader.id_text(each) for each in unique], pa.string())
        return _scattered(texts.take(codes), spans.rows, count)

    def _dataset_column(self, found: ReadColumns, count: int) -> Any:
        """Return the datasets of each event, each once, in the order in which they stand there."""
        captured = [each for each in (_plain(found, spans) for spans in found.datasets) if each is not None]
        if not captured:
            return pa.array([()] * count, pa.list_(pa.string()))
        spans = FoundSpans(*(np.concatenate(each) for each in zip(*captured, strict=True)))
        codes, unique = _unique(found, spans)
        texts = [self._dataset(each) for each in unique]
        same = {text: number for number, text in reversed([*enumerate(texts)])}
        numbers = np.array([same[text] for text in texts], np.int64)[codes.to_numpy(zero_copy_only=False)]
        _, first = np.unique(spans.rows * len(texts) + numbers, return_index=True)
        first.sort()
        first = first[np.argsort(spans.rows[first], kind="stable")]
        offsets = np.concatenate(([0], np.cumsum(np.bincount(spans.rows[first], minlength=count)))).astype(np.int32)
        values = pa.array(texts, pa.string()).take(pa.array(numbers[first]))
        return pa.ListArray.from_arrays(pa.array(offsets), values)

    def _dataset(self, data: bytes) -> str:
        """Return the text of a DatasetId record's bytes."""
        known = self._datasets.get(data)
        if known is None:
            if len(self._datasets) >= _MOST_DATASETS:
                self._datasets.clear()
            size, at = _length(data, 0)
            namespace, at = data[at : at + size], at + size
            _, at = _length(data, at)
            known = self._datasets[data] = dataset_text(namespace, data[at:])
        return known


def _length(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte <= 0x7F:
            return number >> 1, at
        shift += 7


def _plain(found: ReadColumns, spans: FoundSpans | None) -> FoundSpans | None:
    """Return the spans in plain events."""
    if spans is None or not len(spans.rows):
        return None
    wanted = ~found.is_odd[spans.rows]
    return spans if wanted.all() else FoundSpans(*(each[wanted] for each in spans))


def _numbers(found: ReadColumns, path: str, count: int) -> tuple[Rows, Any]:
    """Return the values by event, and in which events there is one."""
    values, is_there = np.zeros(count, np.int64), np.zeros(count, np.bool_)
    known = found.numbers.get(path)
    if known is not None:
        values[known.rows], is_there[known.rows] = known.values, True
    return values, is_there


def _number_column(found: ReadColumns, path: str, count: int, kind: Any) -> Any:
    values, is_there = _numbers(found, path, count)
    values[found.is_odd] = 0
    return pa.array(values, pa.int64(), mask=~is_there).cast(kind)


def _gathered(found: ReadColumns, spans: FoundSpans) -> Any:
    """Return the bytes of spans as a binary array."""
    lengths = spans.ends - spans.begins
    ends = np.cumsum(lengths)
    places = np.repeat((spans.begins - (ends - lengths)).astype(np.int32), lengths)
    places += np.arange(len(places), dtype=np.int32)  # a batch has less than 2 GiB
    offsets = np.concatenate(([0], ends)).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(found.data[places])]
    return pa.Array.from_buffers(pa.binary(), len(lengths), buffers)


def _unique(found: ReadColumns, spans: FoundSpans) -> tuple[Any, list[bytes]]:
    encoded = _gathered(found, spans).dictionary_encode()
    return encoded.indices, encoded.dictionary.to_pylist()


def _text_column(found: ReadColumns, path: str, count: int) -> Any:
    spans = _plain(found, found.spans.get(path))
    if spans is None:
        return pa.nulls(count, pa.string())
    return _scattered(_gathered(found, spans).cast(pa.string()), spans.rows, count)


def _scattered(values: Any, rows: Rows, count: int) -> Any:
    """Return a column in which the values stand at their rows, and nulls elsewhere."""
    if len(rows) == count:
        return values
    places, is_there = np.zeros(count, np.int64), np.zeros(count, np.bool_)
    places[rows], is_there[rows] = np.arange(len(rows)), True
    return values.take(pa.array(places, mask=~is_there))


def _in_order(parts: Sequence[list[Any]], places: Sequence[Rows]) -> list[Any]:
    """Return the columns of all parts, in the order of the events."""
    order = np.argsort(np.concatenate(places), kind="stable")
    if len(parts) == 1:
        return parts[0]
    return [pa.concat_arrays(each).take(pa.array(order)) for each in zip(*parts, strict=True)]
