"""Column lineage: which columns of which inputs a column of an output is made from, and how.

A program has one `ColumnLineage` for each edge. In an event's bytes they are `ColumnEdges`: each path and each
expression once, and numbers that point at them, some 4 bytes an edge where a program needs 85.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from headwater.events.base import Model
from headwater.events.scalars import Count, EventEnum, FieldPath, ListPosition, SqlString

MAX_EDGES: Final = 50_000
"""So many edges an event can have."""
MAX_EDGE_TEXT: Final = 32 << 20
"""So many characters the edges of an event can have, each with the longest of its paths and expressions: few bytes can
name one long text many times."""


class Derivation(EventEnum):
    """How a source column comes into an output. The first three carry its values into one column (direct); the others
    decide about rows or choices without carrying values (indirect)."""

    UNKNOWN = "UNKNOWN"
    IDENTITY = "IDENTITY"
    TRANSFORMATION = "TRANSFORMATION"
    AGGREGATION = "AGGREGATION"
    JOIN = "JOIN"
    FILTER = "FILTER"
    GROUP_BY = "GROUP_BY"
    SORT = "SORT"
    WINDOW = "WINDOW"
    CONDITIONAL = "CONDITIONAL"

    @property
    def is_direct(self) -> bool:
        return self in {Derivation.IDENTITY, Derivation.TRANSFORMATION, Derivation.AGGREGATION}


class ColumnLineage(Model):
    """One edge: a column of an output is made from a column of an input.

    `output` and `input` count in the event's outputs and inputs; for a view, `input` counts in its sources.

    >>> edge = ColumnLineage(
    ...     output=0, input=0, source=("amount",), target=("total",), derivation=Derivation.AGGREGATION
    ... )
    >>> edge.derivation.is_direct
    True
    """

    output: Count
    input: Count
    source: FieldPath
    target: FieldPath | None = None
    """Absent where the source decides about the whole output, as the column of a filter does."""
    derivation: Derivation
    expression: SqlString | None = None
    """The expression as text, literals as `?` unless capture.sql is true."""


class EdgeGroup(Model):
    """Edges that follow each other, and differ in their columns and expressions only."""

    output: Count
    input: Count
    derivation: Derivation
    sources: tuple[ListPosition, ...]
    """The place of each edge's source in `ColumnEdges.paths`."""
    targets: tuple[ListPosition, ...] = ()
    """The same of its target: none for all edges of the group, or one for each."""
    expressions: tuple[ListPosition, ...] = ()
    """The place of each edge's expression in `ColumnEdges.expressions`: none, or one for each."""


class ColumnEdges(Model):
    """All edges of an event as its bytes have them."""

    paths: tuple[FieldPath, ...] = ()
    expressions: tuple[str, ...] = ()
    groups: tuple[EdgeGroup, ...] = ()


def edges_fit(edges: Sequence[ColumnLineage]) -> bool:
    """Return whether an event can have all these edges, as far as that doesn't depend on what else it has."""
    if len(edges) > MAX_EDGES:
        return False
    paths = {path for edge in edges for path in (edge.source, edge.target) if path is not None}
    texts = {edge.expression for edge in edges if edge.expression is not None}
    return _text_of(len(edges), paths, texts) <= MAX_EDGE_TEXT


def pack_edges(edges: Iterable[ColumnLineage]) -> dict[str, Any]:
    """Return the plain content of the `ColumnEdges` that have these edges in this order."""
    paths: dict[tuple[str, ...], int] = {}
    texts: dict[str, int] = {}
    groups: list[dict[str, Any]] = []
    for (output, number, derivation, *_), alike in groupby(edges, _what_a_group_shares):
        members = list(alike)
        targets = (edge.target for edge in members if edge.target is not None)
        expressions = (edge.expression for edge in members if edge.expression is not None)
        groups.append(
            {
                "output": output,
                "input": number,
                "derivation": derivation.value,
                "sources": [paths.setdefault(edge.source, len(paths)) for edge in members],
                "targets": [paths.setdefault(path, len(paths)) for path in targets],
                "expressions": [texts.setdefault(text, len(texts)) for text in expressions],
            }
        )
    return {"paths": list(map(list, paths)), "expressions": list(texts), "groups": groups}


def unpack_edges(packed: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the plain content of each edge. Raises a ValueError where a number points at nothing, or they are more
    than an event can have."""
    paths, texts, groups = packed["paths"], packed["expressions"], packed["groups"]
    count = sum(len(group["sources"]) for group in groups)
    if count > MAX_EDGES:
        raise ValueError(f"{count} edges between columns, where {MAX_EDGES} are allowed")
    if _text_of(count, paths, texts) > MAX_EDGE_TEXT:
        raise ValueError(f"{count} edges between columns with more than {MAX_EDGE_TEXT} characters")
    return [edge for group in groups for edge in _unpack_group(group, paths, texts)]


def _unpack_group(
    group: dict[str, Any], paths: Sequence[Sequence[str]], texts: Sequence[str]
) -> Iterable[dict[str, Any]]:
    sources = group["sources"]
    if not sources:
        raise ValueError("a group of edges between columns is empty")
    output, number, derivation = group["output"], group["input"], group["derivation"]
    members = zip(
        _values_at(sources, paths, len(sources)),
        _values_at(group["targets"], paths, len(sources)),
        _values_at(group["expressions"], texts, len(sources)),
        strict=True,
    )
    return [
        {
            "output": output,
            "input": number,
            "source": source,
            "target": target,
            "derivation": derivation,
            "expression": expression,
        }
        for source, target, expression in members
    ]


def _values_at(places: Sequence[int], known: Sequence[Any], count: int) -> Iterable[Any]:
    """Return what stands at these places, or as many times None if there are no places."""
    if not places:
        return [None] * count
    if len(places) != count:
        raise ValueError(f"{len(places)} places of paths or expressions for {count} edges between columns")
    if min(places) < 0 or max(places) >= len(known):
        raise ValueError(f"an edge between columns points at place {max(places)} of {len(known)}, or at {min(places)}")
    return [known[place] for place in places]


def _what_a_group_shares(edge: ColumnLineage) -> tuple[int, int, Derivation, bool, bool]:
    return edge.output, edge.input, edge.derivation, edge.target is not None, edge.expression is not None


def _text_of(count: int, paths: Iterable[Sequence[str]], texts: Iterable[str]) -> int:
    """Return how many characters so many edges have at most."""
    longest = max((sum(map(len, path)) for path in paths), default=0)
    return count * (2 * longest + max(map(len, texts), default=0))
