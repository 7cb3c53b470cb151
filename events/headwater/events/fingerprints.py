"""The fingerprint of the shape of a write: 128 bits over its canonical content.

Two runs of one program have one fingerprint, whatever dates, limits, snapshots or staging directories they had:
literals, expression ids, snapshot ids and staging paths are no part of it, nor is the order in which Spark lists inputs
and the sources of columns. Neither is the job: the same write under two names is the same shape.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from headwater.events.jobs import Shape, ShapedSink, ShapedSource, Sink, Source
from headwater.events.lineage import ColumnLineage
from headwater.events.redaction import canonical_text
from headwater.events.tables import Column

_STAGING: Final = re.compile(
    r"/(?:_temporary|_staging|\.spark-staging-[^/]+|\.hive-staging[^/]*|\.hoodie/\.temp)(?:/.*)?$"
)
"""Where committers of Spark, Hadoop, Hive and Hudi put files before they are visible."""

_POSITION_OPTIONS: Final = frozenset(
    {
        "asofinstant",
        "asoftimestamp",
        "batchid",
        "beginningtimestamp",
        "endinginstant",
        "endingoffsets",
        "endingoffsetsbytimestamp",
        "endingtimestamp",
        "endingversion",
        "endsnapshotid",
        "endtimestamp",
        "epochid",
        "incrementalbetween",
        "incrementalbetweentimestamp",
        "queryid",
        "scancreationtimemillis",
        "scanfilecreationtimemillis",
        "scansnapshotid",
        "scantagname",
        "scantimestamp",
        "scantimestampmillis",
        "scanversion",
        "scanwatermark",
        "snapshotid",
        "startingoffsets",
        "startingoffsetsbytimestamp",
        "startingtimestamp",
        "startingversion",
        "startsnapshotid",
        "streamfromtimestamp",
        "tag",
        "timestampasof",
        "txnversion",
        "versionasof",
    }
)
"""Options that say which version is read, by the letters of their last words: they differ from run to run."""

_NOT_LETTERS: Final = re.compile(r"[^a-z]")


def fingerprint_of(
    inputs: Sequence[ShapedSource], outputs: Sequence[ShapedSink], columns: Iterable[ColumnLineage] = ()
) -> bytes:
    """16 bytes, the same for the same shape in every producer and version."""
    sources = [_source(source) for source in inputs]
    sinks = [_sink(sink) for sink in outputs]
    edges = [_edge(edge, sources, sinks) for edge in columns]
    content = [_set(sources), _set(sinks), _set(edges)]
    return hashlib.blake2b(_text(content).encode(), digest_size=16).digest()


def without_staging(path: str) -> str:
    """The directory that a write is for, where a path inside its staging directory was seen."""
    return _STAGING.sub("", path)


def _source(source: ShapedSource) -> list[Any]:
    opaque = None if source.opaque is None else canonical_text(source.opaque)
    return [*_dataset(source), opaque, *_shape(source)]


def _sink(sink: ShapedSink) -> list[Any]:
    return [*_dataset(sink), None, *_shape(sink)]


def _dataset(ref: Source | Sink) -> list[Any]:
    place = None if ref.dataset is None else [ref.dataset.namespace, without_staging(ref.dataset.name)]
    alias = None if ref.table is None else [ref.table.catalog, ref.table.database, ref.table.table]
    return [place, alias, ref.format.value, ref.branch, ref.main]


def _shape(shape: Shape) -> list[Any]:
    partitioning = [[t.name, t.columns, t.arguments] for t in shape.partitioning]
    watermarks = [[w.column, w.delay] for w in shape.watermarks]
    return [list(map(_column, shape.columns)), partitioning, shape.primary_key, watermarks, _options(shape)]


def _column(column: Column) -> list[Any]:
    return [column.name, column.type, column.nullable]


def _options(shape: Shape) -> dict[str, str]:
    return {key: without_staging(value) for key, value in shape.options.items() if not _is_position(key)}


def _is_position(key: str) -> bool:
    letters = _NOT_LETTERS.sub("", key.lower())
    return letters in _POSITION_OPTIONS or _NOT_LETTERS.sub("", key.lower().rpartition(".")[2]) in _POSITION_OPTIONS


def _edge(edge: ColumnLineage, sources: Sequence[list[Any]], sinks: Sequence[list[Any]]) -> list[Any]:
    """By what it connects instead of by index, so that the order of inputs doesn't matter."""
    expression = None if edge.expression is None else canonical_text(edge.expression)
    source = sources[edge.input][:6] if edge.input < len(sources) else edge.input
    sink = sinks[edge.output][:6] if edge.output < len(sinks) else edge.output
    return [source, edge.source, sink, edge.target, edge.derivation.value, expression]


def _set(items: Iterable[Any]) -> list[str]:
    return sorted({_text(item) for item in items})


def _text(content: Any) -> str:
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
