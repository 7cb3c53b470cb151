"""Which columns of which inputs the columns of an output are computed from."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import Connection, select

from headwater.events.column_lineage import Derivation
from headwater.lineage.mapping.commits import SINK
from headwater.lineage.questions.traversal.views import ViewDefinition
from headwater.lineage.rows import tables as t
from headwater.lineage.rows.model import NO_STAMP
from headwater.lineage.sql.key_lookup import select_by_keys
from headwater.lineage.sql.tables import table_of

ColumnPath = tuple[str, ...]
"""An empty one stands for all of a table: what decides about its rows decides about every column."""


class ColumnLink(NamedTuple):
    """An output column is computed from an input column."""

    target: ColumnPath
    source: ColumnPath
    derivation: str
    expression: str | None

    @property
    def is_direct(self) -> bool:
        return Derivation(self.derivation).is_direct


@dataclass
class JobColumns:
    """The column links of one fingerprint."""

    links: dict[tuple[bytes, bytes], list[ColumnLink]] = field(default_factory=dict)
    """By the datasets of output and input."""
    is_omitted: bool = False
    """They were too many for one event, so there are none here."""


class JobColumnsLoader:
    """Loads column links for one question."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._known: dict[bytes, JobColumns | None] = {}

    def load(self, fingerprints: Iterable[bytes]) -> None:
        wanted = set(fingerprints) - self._known.keys()
        if not wanted:
            return
        self._known.update(dict.fromkeys(wanted))
        chosen = self._first_reported(wanted)
        variants = {(fingerprint, variant) for fingerprint, (_, variant, _) in chosen.items()}
        for fingerprint, (*_, is_omitted) in chosen.items():
            self._known[fingerprint] = JobColumns(is_omitted=is_omitted)
        places = self._places(wanted, variants)
        self._link(wanted, variants, places)

    def of(self, fingerprint: bytes | None) -> JobColumns | None:
        """Return the column links of a fingerprint; None if its job lineage never arrived."""
        return None if fingerprint is None else self._known.get(fingerprint)

    def _first_reported(self, wanted: Collection[bytes]) -> dict[bytes, tuple[bytes, bytes, bool]]:
        """Return of each fingerprint the stamp and the variant, and whether its columns were omitted."""
        row = table_of(t.JOB_LINEAGE).c
        chosen: dict[bytes, tuple[bytes, bytes, bool]] = {}
        variants = select(row.fingerprint, row.first_stamp, row.variant, row.columns_omitted)
        for *key, is_omitted in select_by_keys(self._connection, variants, row.fingerprint, wanted):
            fingerprint, *found = map(bytes, key)
            stamp, variant = found
            if stamp != NO_STAMP and (fingerprint not in chosen or (stamp, variant) < chosen[fingerprint][:2]):
                chosen[fingerprint] = (stamp, variant, bool(is_omitted))
        return chosen

    def _places(
        self, wanted: Collection[bytes], variants: Collection[tuple[bytes, bytes]]
    ) -> dict[tuple[bytes, str, int], bytes]:
        row = table_of(t.JOB_LINEAGE_TABLE).c
        sides = select(row.fingerprint, row.variant, row.side, row.position, row.dataset)
        return {
            (bytes(side_row.fingerprint), side_row.side, side_row.position): bytes(side_row.dataset)
            for side_row in select_by_keys(self._connection, sides, row.fingerprint, wanted)
            if (bytes(side_row.fingerprint), bytes(side_row.variant)) in variants and side_row.dataset is not None
        }

    def _link(
        self,
        wanted: Collection[bytes],
        variants: Collection[tuple[bytes, bytes]],
        places: Mapping[tuple[bytes, str, int], bytes],
    ) -> None:
        row = table_of(t.JOB_LINEAGE_COLUMN).c
        for column in select_by_keys(self._connection, select(table_of(t.JOB_LINEAGE_COLUMN)), row.fingerprint, wanted):
            fingerprint = bytes(column.fingerprint)
            if (fingerprint, bytes(column.variant)) not in variants:
                continue
            target = places.get((fingerprint, SINK, column.output))
            source = places.get((fingerprint, "SOURCE", column.input))
            shape = self._known[fingerprint]
            if target is not None and source is not None and shape is not None:
                link = ColumnLink(_path(column.target), _path(column.source), column.derivation, column.expression)
                shape.links.setdefault((target, source), []).append(link)


def view_links(definition: ViewDefinition) -> Iterator[tuple[bytes, ColumnLink]]:
    """Yield the column links of a view with their sources."""
    for column in definition.columns:
        source = definition.sources[column["input"]] if column["input"] < len(definition.sources) else None
        if source is not None:
            path = tuple(column.get("target") or ())
            yield source, ColumnLink(path, tuple(column["source"]), column["derivation"], column.get("expression"))


def covers(one: ColumnPath, other: ColumnPath) -> bool:
    """Return whether two column paths overlap, as a struct and its field do."""
    shorter = min(len(one), len(other))
    return tuple(name.lower() for name in one[:shorter]) == tuple(name.lower() for name in other[:shorter])


def _path(text: str | None) -> ColumnPath:
    path: Any = json.loads(text) if text else ()
    return tuple(path)
