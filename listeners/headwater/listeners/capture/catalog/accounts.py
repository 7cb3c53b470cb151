"""What the formats' own facts tell of a table that DDL was about: how their metadata or log changed meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from headwater.events import Format, Life
from headwater.events.identity import IdentityError, delta_life, iceberg_life
from headwater.events.identity.text import joined
from headwater.listeners.capture.catalog.described import Told
from headwater.listeners.capture.catalog.evidence import during, looked_up
from headwater.listeners.capture.catalog.places import Named
from headwater.listeners.capture.formats.delta.commits import HOOK as DELTA
from headwater.listeners.capture.formats.delta.commits import commits_of, is_watched
from headwater.listeners.capture.formats.delta.metadata import table_of as delta_table
from headwater.listeners.capture.formats.iceberg.modified import FORMAT as ICEBERG
from headwater.listeners.capture.formats.iceberg.tables import table_of as iceberg_table
from headwater.listeners.capture.scene import Scene
from headwater.listeners.capture.statements import Statement

PAIMON: Final = "paimon"


@dataclass(frozen=True)
class Account:
    """None is what nobody told."""

    did: bool | None = None
    """Whether the table was made, or made anew, while the statement ran."""
    existed: bool | None = None
    """Whether there was a table before."""
    before: Told | None = None
    after: Told | None = None
    replaced_life: Life | None = None
    schema_id: int | None = None
    produced: int | None = None
    parent: int | None = None


NOTHING: Final = Account()


def account_of(named: Named, statement: Statement, scene: Scene) -> Account:
    """The first that has something to say."""
    for read in _READERS:
        found = read(named, statement, scene)
        if found is not None:
            return found
    return NOTHING


def _iceberg(named: Named, statement: Statement, scene: Scene) -> Account | None:
    """By the table's list of metadata files. With several changes meanwhile nobody can tell whose the last one is."""
    told = statement.facts.looked_up.get(ICEBERG, {}).get("changed")
    if told is None or "catalog" not in told or scene.catalog(told["catalog"]).name != named.catalog.name:
        return None
    if (joined(told["namespace"]) if told["namespace"] else "", told["name"]) != (
        named.name.database,
        named.name.table,
    ):
        return None
    before, after = told.get("before"), told.get("after")
    newest = after or before
    if newest is None:
        return None
    made = during(statement, newest.get("created"))
    alone = told.get("changes", 0) <= 1
    return Account(
        did=made or told.get("changes", 0) > 0,
        existed=before is not None if made is None else not made,
        before=_iceberg_state(before) if before is not None and alone else None,
        after=_iceberg_state(after) if after is not None and alone else None,
        replaced_life=None if before is None else _iceberg_state(before).life,
        schema_id=after["schemaId"] if after is not None and alone else None,
    )


def _iceberg_state(state: Mapping[str, Any]) -> Told:
    return Told(iceberg_table(state), Format.ICEBERG, _life(iceberg_life, state.get("uuid")), state.get("created"))


def _delta(named: Named, statement: Statement, scene: Scene) -> Account | None:
    """By the versions that the statement's own threads committed."""
    commits = [commit for commit in commits_of(statement.facts) if commit.metadata or commit.before]
    if not commits:
        return None
    last = commits[-1]
    kind = (last.table or {}).get("type")
    before, after = last.before, last.metadata or last.before
    return Account(
        did=True,
        existed=last.before is not None,
        before=None if before is None else Told(delta_table(before, last.path, kind), Format.DELTA, _id_of(before)),
        after=None if after is None else Told(delta_table(after, last.path, kind), Format.DELTA, _id_of(after)),
        replaced_life=None if before is None else _id_of(before),
        produced=last.version,
        parent=last.parent,
    )


def _id_of(metadata: Mapping[str, Any]) -> Life | None:
    return _life(delta_life, metadata.get("id"))


def _paimon(named: Named, statement: Statement, scene: Scene) -> Account | None:
    """By the time of the table's first schema, which is the life itself; of one that was altered, by its newest."""
    changed = statement.facts.looked_up.get(PAIMON, {}).get("altered")
    if changed is not None:
        alone = changed["schema"] == changed["before"] + 1 and during(statement, changed["at"])
        return Account(schema_id=changed["schema"] if alone else None)
    for told in looked_up(statement).get("tables", ()):
        own = told.get(PAIMON)
        if own is not None and own.get("life"):
            made = during(statement, own["life"])
            return Account(did=made, existed=None if made is None else not made, schema_id=own.get("schema"))
    return None


def _life(read: Callable[[str], Life], told: str | None) -> Life | None:
    try:
        return None if told is None else read(told)
    except IdentityError:
        return None


_READERS: Final[tuple[Callable[[Named, Statement, Scene], Account | None], ...]] = (_iceberg, _delta, _paimon)


def delta_was_watched(statement: Statement) -> bool:
    """Whether a version of Delta's would have been noted."""
    return DELTA in statement.facts.looked_up and is_watched(statement.facts)
