"""Datasets as people know them: their location, and the names that catalogs have or had for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Final, TypeAlias

from sqlalchemy import Connection, select

from headwater.lineage.rows import tables as t
from headwater.lineage.sql.key_lookup import PairLookup
from headwater.lineage.sql.tables import table_of


@dataclass(frozen=True)
class Dataset:
    """A physical table, topic or path."""

    key: bytes = field(repr=False)
    namespace: str = ""
    name: str = ""
    known_as: tuple[str, ...] = ()
    """Names in catalogs: current names before former ones, the newest first."""
    short_name: str = ""
    """The end of its path, where no other dataset of the answer ends so."""

    @property
    def label(self) -> str:
        """What a person calls the dataset."""
        return self.known_as[0] if self.known_as else self.short_name or self.place

    @property
    def place(self) -> str:
        return f"{self.namespace}/{self.name.lstrip('/')}" if self.namespace else self.name or self.key.hex()

    def __str__(self) -> str:
        return self.label


_SHORTEST: Final = 2
_NamedDataset: TypeAlias = tuple[Any, ...]
"""A dataset's id, namespace and path, and a name: catalog, database, table, last, deleted."""


def load_datasets(connection: Connection, keys: Collection[bytes]) -> dict[bytes, Dataset]:
    """Load the datasets of an answer by key. One that no event described is known by its hash alone."""
    found: dict[bytes, list[Any]] = {}
    for place in _named_places().by_key(connection, keys):
        found.setdefault(bytes(place[0]), []).append(tuple(place))
    return with_short_names({key: _dataset(key, found.get(key, ())) for key in keys})


def with_short_names(datasets: Mapping[bytes, Dataset]) -> dict[bytes, Dataset]:
    """Return the datasets, and those that no catalog has a name for with the shortest end of their path that no other
    of them has, of two parts or more."""
    paths = {key: dataset.name.strip("/").split("/") for key, dataset in datasets.items() if not dataset.known_as}
    ends = Counter("/".join(parts[-length:]) for parts in paths.values() for length in range(_SHORTEST, len(parts) + 1))
    return {
        key: replace(dataset, short_name=_end(paths[key], ends)) if key in paths else dataset
        for key, dataset in datasets.items()
    }


def _end(parts: Sequence[str], ends: Mapping[str, int]) -> str:
    """Return nothing for a path that has no end which it has alone: then it is called by its place."""
    possible = ("/".join(parts[-length:]) for length in range(_SHORTEST, len(parts) + 1))
    return next((possible_end for possible_end in possible if ends[possible_end] == 1), "")


@cache
def _named_places() -> PairLookup:
    place, name = table_of(t.DATASET), table_of(t.ALIAS)
    names = (name.c.catalog, name.c.database_name, name.c.table_name, name.c.last, name.c.deleted)
    query = select(place.c.id, place.c.namespace, place.c.name.label("path"), *names)
    return PairLookup(query.outerjoin(name, name.c.dataset == place.c.id), place.c.id, place.c.id)


def _dataset(key: bytes, rows: Sequence[_NamedDataset]) -> Dataset:
    """Names in catalogs: those that hold before those that held once, the newest first."""
    if not rows:
        return Dataset(key)
    named = [place for place in rows if place[6] is not None]
    if len(named) > 1:
        named.sort(key=_staleness)
    names = dict.fromkeys(".".join(filter(None, place[3:6])) for place in named)
    return Dataset(key, rows[0][1], rows[0][2], tuple(names))


def _staleness(row: _NamedDataset) -> tuple[bool, int]:
    last, deleted = row[6], row[7]
    return last <= deleted, -last
