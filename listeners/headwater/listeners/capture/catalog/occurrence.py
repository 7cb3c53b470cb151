"""Whether something really happened: what `IF [NOT] EXISTS` leaves open, a statement that ended well doesn't tell.

The evidence, in this order: the event of Spark's own catalog; the table's creation, or what its format noted, against
the statement's time; what this driver knew of the table before. With none of them nobody knows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from headwater.events.catalog import ModificationEffect
from headwater.listeners.capture.context import (
    SESSION_CATALOG,
    SESSION_CATALOG_CLASS,
    CaptureContext,
    SessionNamedCatalog,
)
from headwater.listeners.capture.formats import plugins
from headwater.listeners.capture.statements import Statement

SESSION: Final = "session"
"""The word of the extractor that looks up what DDL has made of catalogs."""


@dataclass(frozen=True)
class StatementContext:
    """The subject: one statement, where it was seen."""

    statement: Statement
    context: CaptureContext


_MILLIS_PER_SECOND: Final = 1000


class Occurrence(Enum):
    """Whether a statement did what it says."""

    HAPPENED = "happened"
    NOTHING = "nothing"
    """It was there already, or not there."""
    UNKNOWN = "unknown"

    @classmethod
    def of(cls, evidence: bool | None) -> Occurrence:
        """Return what evidence says; None is none."""
        return cls.UNKNOWN if evidence is None else cls.HAPPENED if evidence else cls.NOTHING

    @property
    def effect(self) -> ModificationEffect:
        """The effect that an event has of it. There is no event where nothing happened."""
        return ModificationEffect.APPLIED if self is Occurrence.HAPPENED else ModificationEffect.UNKNOWN


def session_facts(statement: Statement) -> Mapping[str, Any]:
    return statement.facts.looked_up.get(SESSION, {})


def was_event_posted(
    statement: Statement, catalog: SessionNamedCatalog, event: str, database: str, name: str | None = None
) -> bool | None:
    """Whether Spark's own catalog reported this event; None where its silence tells nothing."""
    if catalog.name != SESSION_CATALOG:
        return None
    wanted = (event, database.lower(), None if name is None else name.lower())
    for posted in catalog_events(statement):
        subject = posted.get("name")
        if (posted["event"], posted["database"].lower(), None if subject is None else subject.lower()) == wanted:
            return True
    return False if _is_posted_for(catalog.class_name) and session_facts(statement).get("certain") else None


def _is_posted_for(class_name: str) -> bool:
    """Whether a catalog does nothing to a named table without Spark's own catalog doing it."""
    return class_name == SESSION_CATALOG_CLASS or any(class_name in plugin.session_catalogs for plugin in plugins())


def catalog_events(statement: Statement) -> Iterator[Mapping[str, Any]]:
    """What Spark's own catalog reported in the statement's thread, or between its start and its end."""
    yield from (fact for fact in statement.facts.hook_facts if fact.get("hook") == "catalog")
    yield from session_facts(statement).get("catalogEvents", ())


def is_during(statement: Statement, millis: int | None) -> bool | None:
    """Whether this moment, which may be given in whole seconds, is within the statement; None where one of them isn't
    known."""
    if millis is None or statement.started is None:
        return None
    unit = _MILLIS_PER_SECOND if millis % _MILLIS_PER_SECOND == 0 else 1
    return statement.started // unit * unit <= millis <= statement.ended


def is_same_time(one: int | None, other: int | None) -> bool:
    """The same, even if a metastore kept whole seconds of it."""
    if one is None or other is None:
        return False
    return one == other or one // _MILLIS_PER_SECOND * _MILLIS_PER_SECOND == other
