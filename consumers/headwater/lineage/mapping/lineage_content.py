"""The rows of job lineage: which tables and columns a statement reads and writes. A job reports the same ones in each
of its runs, so they are remembered.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from pydantic_core import to_json

from headwater.events.column_lineage import ColumnLineage
from headwater.events.jobs import JobLineage, SinkSchema, SourceSchema
from headwater.lineage.mapping.commits import SINK, SOURCE, map_table_access
from headwater.lineage.mapping.keys import clean_text, job_name_key, to_json_text, uuid_bytes
from headwater.lineage.mapping.places import Place, place_of
from headwater.lineage.mapping.row_builder import RowBuilder
from headwater.lineage.rows import tables as t
from headwater.lineage.rows.model import RowKind, RowTuple
from headwater.lineage.rows.values import HASH_BYTES, Value

_SHAPE: Final = ("columns", "partitioning", "primary_key", "watermarks", "options")
_MOST_VALUES: Final = 1 << 19
"""How many values all remembered rows have: those of 2,400 statements with 20 columns each."""


class LineageContent:
    """What rows say of the tables and columns of a job lineage. It is compared by identity."""

    def __init__(self, event: JobLineage) -> None:
        sides: dict[str, tuple[SourceSchema | SinkSchema, ...]] = {SOURCE: event.inputs, SINK: event.outputs}
        numbered = [(side, *each) for side, schemas in sides.items() for each in enumerate(schemas)]
        self.places: Final = tuple([(side, place_of(schema)) for side, _, schema in numbered])
        tables = [
            (side, position, *_table(schema, place))
            for (side, position, schema), (_, place) in zip(numbered, self.places, strict=True)
        ]
        edges = list(map(_edge, event.columns))
        content = to_json((tables, edges), bytes_mode="hex")
        self.shape: Final = (event.fingerprint, blake2b(content, digest_size=HASH_BYTES).digest())
        """The fingerprint, and a hash of the content, so that the same job lineage has the same key. A table that each
        run creates anew has the same job lineage in all of them."""
        self.tables: Final = _rows(t.JOB_LINEAGE_TABLE, [((*self.shape, *row[:2]), row[2:]) for row in tables])
        self.edges: Final = _rows(t.JOB_LINEAGE_COLUMN, [((*self.shape, *row), ()) for row in edges])
        self.size: Final = sum(map(len, (*self.tables.values(), *self.edges.values())))


def _rows(kind: RowKind, parts: list[tuple[tuple[Value, ...], tuple[Value, ...]]]) -> dict[bytes, RowTuple]:
    ids = [kind.hash_key(*key) for key, _ in parts]
    return {number: (number, *key, *content) for number, (key, content) in zip(ids, parts, strict=True)}


def _table(schema: SourceSchema | SinkSchema, place: Place) -> tuple[Value, ...]:
    shape = {name: value for name in _SHAPE if (value := getattr(schema, name))}
    detail = {name: dict(value) if hasattr(value, "items") else value for name, value in shape.items()}
    return (place.hash, *place.name, place.format, clean_text(schema.branch), place.opaque, to_json_text(detail))


def _edge(edge: ColumnLineage) -> tuple[Value, ...]:
    paths = (_path_text(edge.source), _path_text(edge.target))
    return (edge.output, edge.input, *paths, edge.derivation.value, clean_text(edge.expression))


@lru_cache(maxsize=1 << 14)
def _path_text(path: tuple[str, ...] | None) -> str | None:
    return to_json_text(path)


class _RememberedContent(NamedTuple):
    parts: tuple[Any, ...]
    content: LineageContent


class LineageContents:
    """The contents that were used last, by fingerprint."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, _RememberedContent] = OrderedDict()
        self.size = 0
        """How many values their rows have."""

    def of(self, event: JobLineage) -> LineageContent:
        """Return an event's content; the same object as the last time if the content is the same."""
        parts = (event.inputs, event.outputs, event.columns)
        known = self._known.get(event.fingerprint)
        if known is not None and known.parts == parts:
            return known.content
        content = LineageContent(event)
        if known is not None:
            self._forget(event.fingerprint)
        self._known[event.fingerprint] = _RememberedContent(parts, content)
        self.size += content.size
        while self.size > _MOST_VALUES:
            self._forget(next(iter(self._known)))
        return content

    def _forget(self, fingerprint: bytes) -> None:
        self.size -= self._known.pop(fingerprint).content.size


_CONTENTS: Final = LineageContents()


class _ReportedStatement(NamedTuple):
    """What an event says of a statement, whenever and how often it is reported."""

    content: LineageContent
    job: tuple[Value, ...]
    """The job, its parent, and the run."""
    sql: Value
    columns_omitted: bool
    catalogs: tuple[Any, ...]


def map_job_lineage(event: JobLineage, build: RowBuilder) -> None:
    job = (*job_name_key(event.job), *job_name_key(event.parent_job), uuid_bytes(event.run))
    content, sql = _CONTENTS.of(event), clean_text(event.sql)
    build.repeat(_add_lineage, _ReportedStatement(content, job, sql, event.columns_omitted, event.catalogs))


def _add_lineage(build: RowBuilder, reported: _ReportedStatement) -> None:
    content, job, sql, columns_omitted, catalogs = reported
    if job[0] is not None:
        build.observed(t.JOB, job[:2])
    for each in catalogs:
        build.catalog(each.name, each.id)
    build.observed(t.JOB_LINEAGE, content.shape, first=(*job[:2], sql, int(columns_omitted)))
    for side, place in content.places:
        build.used(place)
        map_table_access(side, place, job, build)
    build.constants(t.JOB_LINEAGE_TABLE, content.tables)
    build.constants(t.JOB_LINEAGE_COLUMN, content.edges)
