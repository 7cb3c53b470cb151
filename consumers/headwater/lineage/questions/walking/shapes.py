"""The shapes of writes: which columns of which inputs a column of an output is made from."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, select

from headwater.events.lineage import Derivation
from headwater.lineage.law.commits import SINK
from headwater.lineage.questions.walking.views import Definition
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.among import among
from headwater.lineage.sql.tables import UNTOLD, table_of

Path = tuple[str, ...]
WHOLE: Final[Path] = ()
"""The column that stands for all of a table: what decides about its rows decides about every column."""


class Link(NamedTuple):
    """A column of an output is made from a column of an input."""

    target: Path
    source: Path
    derivation: str
    expression: str | None

    @property
    def is_direct(self) -> bool:
        return Derivation(self.derivation).is_direct


@dataclass
class Shape:
    links: dict[tuple[bytes, bytes], list[Link]] = field(default_factory=dict)
    """By the datasets of output and input."""
    is_whole: bool = True


class Shapes:
    """For one question."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._known: dict[bytes, Shape | None] = {}

    def load(self, fingerprints: Iterable[bytes]) -> None:
        wanted = set(fingerprints) - self._known.keys()
        if not wanted:
            return
        self._known.update(dict.fromkeys(wanted))
        chosen = self._first_told(wanted)
        variants = {(fingerprint, variant) for fingerprint, (_, variant) in chosen.items()}
        for fingerprint, _ in variants:
            self._known[fingerprint] = Shape()
        places = self._places(wanted, variants)
        self._link(wanted, variants, places)
        self._count_parts({fingerprint: stamp for fingerprint, (stamp, _) in chosen.items()})

    def of(self, fingerprint: bytes | None) -> Shape | None:
        """None where it never came."""
        return None if fingerprint is None else self._known.get(fingerprint)

    def _first_told(self, wanted: Collection[bytes]) -> dict[bytes, tuple[bytes, bytes]]:
        row = table_of(t.SHAPE).c
        chosen: dict[bytes, tuple[bytes, bytes]] = {}
        variants = select(row.fingerprint, row.first_stamp, row.variant)
        for each in among(self._connection, variants, row.fingerprint, wanted):
            fingerprint, stamp, variant = map(bytes, each)
            if stamp != UNTOLD and (fingerprint not in chosen or (stamp, variant) < chosen[fingerprint]):
                chosen[fingerprint] = (stamp, variant)
        return chosen

    def _places(
        self, wanted: Collection[bytes], variants: Collection[tuple[bytes, bytes]]
    ) -> dict[tuple[bytes, str, int], bytes]:
        row = table_of(t.SHAPE_SIDE).c
        sides = select(row.fingerprint, row.variant, row.side, row.position, row.dataset)
        return {
            (bytes(each.fingerprint), each.side, each.position): bytes(each.dataset)
            for each in among(self._connection, sides, row.fingerprint, wanted)
            if (bytes(each.fingerprint), bytes(each.variant)) in variants and each.dataset is not None
        }

    def _link(
        self,
        wanted: Collection[bytes],
        variants: Collection[tuple[bytes, bytes]],
        places: Mapping[tuple[bytes, str, int], bytes],
    ) -> None:
        row = table_of(t.SHAPE_COLUMN).c
        for each in among(self._connection, select(table_of(t.SHAPE_COLUMN)), row.fingerprint, wanted):
            fingerprint = bytes(each.fingerprint)
            if (fingerprint, bytes(each.variant)) not in variants:
                continue
            target = places.get((fingerprint, SINK, each.output))
            source = places.get((fingerprint, "SOURCE", each.input))
            shape = self._known[fingerprint]
            if target is not None and source is not None and shape is not None:
                link = Link(_path(each.target), _path(each.source), each.derivation, each.expression)
                shape.links.setdefault((target, source), []).append(link)

    def _count_parts(self, stamps: Mapping[bytes, bytes]) -> None:
        """A stamp names the event; where that was cut, all its parts have to be there."""
        told = {
            fingerprint: (stamp[9:25], int.from_bytes(stamp[25:33], "big")) for fingerprint, stamp in stamps.items()
        }
        row = table_of(t.PART).c
        parts = select(row.producer, row.first_sequence, row.number, row.of_parts)
        there: dict[tuple[bytes, int], tuple[set[int], int]] = {}
        for each in among(self._connection, parts, row.producer, {producer for producer, _ in told.values()}):
            numbers, _ = there.setdefault((bytes(each.producer), each.first_sequence), (set(), each.of_parts))
            numbers.add(each.number)
        for fingerprint, (producer, sequence) in told.items():
            for (by, first), (numbers, of) in there.items():
                shape = self._known[fingerprint]
                if by == producer and first <= sequence < first + of and len(numbers) < of and shape is not None:
                    shape.is_whole = False


def of_view(definition: Definition) -> Iterator[tuple[bytes, Link]]:
    """The links of a view, with their sources."""
    for each in definition.columns:
        source = definition.sources[each["input"]] if each["input"] < len(definition.sources) else None
        if source is not None:
            path = tuple(each.get("target") or ())
            yield source, Link(path, tuple(each["source"]), each["derivation"], each.get("expression"))


def covers(one: Path, other: Path) -> bool:
    """Whether they have something in common: a struct and its field have."""
    shorter = min(len(one), len(other))
    return tuple(each.lower() for each in one[:shorter]) == tuple(each.lower() for each in other[:shorter])


def _path(text: str | None) -> Path:
    told: Any = json.loads(text) if text else ()
    return tuple(told)
