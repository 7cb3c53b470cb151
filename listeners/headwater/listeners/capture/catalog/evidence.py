"""Whether something really happened: what `IF [NOT] EXISTS` leaves open, a statement that ended well doesn't tell.

The evidence, in this order: the event of Spark's own catalog; the table's creation, or what its format noted, against
the statement's time; what this driver knew of the table before. With none of them nobody knows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from headwater.events import Effect
from headwater.listeners.capture.scene import SESSION_CATALOG, NamedCatalog, Scene
from headwater.listeners.capture.statements import Statement

SESSION: Final = "session"
"""The word of the eye that looks up what DDL has made of catalogs."""
_TELLING: Final = frozenset(
    {
        "org.apache.spark.sql.execution.datasources.v2.V2SessionCatalog",
        "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
    }
)
"""Catalogs that do nothing to a named table without Spark's own catalog doing it."""


@dataclass(frozen=True)
class Occasion:
    """What is told of: one statement, where it was seen."""

    statement: Statement
    scene: Scene


_SECOND: Final = 1000

EFFECTS: Final[Mapping[bool | None, Effect]] = {True: Effect.APPLIED, None: Effect.UNKNOWN}


def looked_up(statement: Statement) -> Mapping[str, Any]:
    return statement.facts.looked_up.get(SESSION, {})


def happened(
    statement: Statement, catalog: NamedCatalog, event: str, database: str, name: str | None = None
) -> bool | None:
    """Whether Spark's own catalog told this event; None where its silence tells nothing."""
    if catalog.name != SESSION_CATALOG:
        return None
    wanted = (event, database.lower(), None if name is None else name.lower())
    for each in catalog_events(statement):
        told = each.get("name")
        if (each["event"], each["database"].lower(), None if told is None else told.lower()) == wanted:
            return True
    return False if catalog.class_name in _TELLING and looked_up(statement).get("certain") else None


def catalog_events(statement: Statement) -> Iterator[Mapping[str, Any]]:
    """What Spark's own catalog told in the statement's thread, or between its start and its end."""
    yield from (each for each in statement.facts.noted if each.get("hook") == "catalog")
    yield from looked_up(statement).get("heard", ())


def during(statement: Statement, millis: int | None) -> bool | None:
    """Whether this moment, which may be told in whole seconds, is within the statement; None where one of them isn't
    known."""
    if millis is None or statement.started is None:
        return None
    unit = _SECOND if millis % _SECOND == 0 else 1
    return statement.started // unit * unit <= millis <= statement.ended


def same_moment(one: int | None, other: int | None) -> bool:
    """The same, even if a metastore kept whole seconds of it."""
    if one is None or other is None:
        return False
    return one == other or one // _SECOND * _SECOND == other
