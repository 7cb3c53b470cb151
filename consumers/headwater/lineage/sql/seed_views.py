"""Paimon PIP-5's tables for whoever asks by SQL: views in a database of their own, which nobody can write to.

They are `sql.seed_rows` of one catalog, with a time in the place of microseconds, and of a form through which the
database writes nothing, not even for its owner.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from hashlib import blake2b
from typing import Any, Final

from sqlalchemy import Connection, Select, insert, select, update

from headwater.errors import ConfigurationError
from headwater.lineage.law.commits import SINK, SOURCE
from headwater.lineage.sql import seed_catalog, seed_rows
from headwater.lineage.sql.seed_catalog import DATABASES
from headwater.lineage.sql.seed_function import SEVERAL
from headwater.lineage.sql.seed_places import Place, place_of
from headwater.lineage.sql.seed_rows import Asked

DATABASE: Final = "paimon"
"""Paimon PIP-5's default."""
VIEWS: Final = (
    "catalog_options",
    "source_job_lineage",
    "sink_job_lineage",
    "source_snapshot_lineage",
    "sink_snapshot_lineage",
    "job_startup",
)

_texts: Final[dict[tuple[object, ...], dict[str, str]]] = {}
"""Of places of one kind: to make them takes longer than all else that is done to open a store."""


def create_views(connection: Connection, database: str = DATABASE, catalog: str | None = None) -> None:
    """Make the views where they aren't there as they should be. For whoever may create things.

    `catalog` is the name or identity of the one that they show where nobody asks for another. Several catalogs share a
    database on PostgreSQL only, where a setting says which one is meant.
    """
    place = place_of(connection, database)
    with place.alone():
        told = _recorded(connection, place, catalog)
        statements = list(_statements(place))
        definition = _definition(statements)
        if told == definition and set(VIEWS) <= place.views():
            return
        for statement in (*place.home(), *place.indexes(), *statements):
            connection.exec_driver_sql(statement, execution_options={"no_parameters": True})
        connection.execute(update(DATABASES).where(DATABASES.c.name == place.database).values(definition=definition))


def are_made(connection: Connection, database: str = DATABASE) -> bool:
    """Whether the views are there as they should be. Nothing is changed, and nobody waits for it."""
    place = place_of(connection, database)
    told = connection.execute(select(DATABASES.c.definition).where(DATABASES.c.name == place.database)).scalar()
    return told == _definition(list(_statements(place))) and set(VIEWS) <= place.views()


def _definition(statements: Sequence[str]) -> str:
    return blake2b("\n".join(statements).encode(), digest_size=16).hexdigest()


def _statements(place: Place) -> Iterator[str]:
    yield from place.before()
    texts = _texts.get(place.kind)
    if texts is None:
        texts = _texts[place.kind] = {view: place.text(selected) for view, selected in _selects(place).items()}
    for view, selected in texts.items():
        yield from place.view(view, selected)


def _selects(place: Place) -> dict[str, Select[Any]]:
    names = place.names
    of_catalog = Asked(partial(seed_catalog.within, names=names), place.indexed)
    selected = (
        seed_rows.option_rows(partial(seed_catalog.declared, names=names)),
        seed_rows.table_rows(SOURCE, of_catalog),
        seed_rows.table_rows(SINK, of_catalog),
        seed_rows.data_rows(SOURCE, of_catalog),
        seed_rows.data_rows(SINK, of_catalog),
        seed_rows.startup_rows(of_catalog),
    )
    return {view: _shown(place, each) for view, each in zip(VIEWS, selected, strict=True)}


def _shown(place: Place, rows: Select[Any]) -> Select[Any]:
    """With a time that people read. Where it isn't clear whose rows are meant, no row at all isn't the answer."""
    told = [place.shown(each) for each in rows.selected_columns]
    shown = rows.with_only_columns(*told, maintain_column_froms=True)
    return place.unwritable(shown.where(place.is_clear()))


def _recorded(connection: Connection, place: Place, catalog: str | None) -> str | None:
    """What the views were made by; whose they are is written down before."""
    mine = DATABASES.c.name == place.database
    row = connection.execute(select(DATABASES.c.catalog, DATABASES.c.definition).where(mine)).first()
    if row is None:
        connection.execute(insert(DATABASES).values(name=place.database, catalog=catalog))
        return None
    if catalog is not None and row.catalog not in {catalog, SEVERAL}:
        connection.execute(
            update(DATABASES).where(mine).values(catalog=_owner(connection, place, row.catalog, catalog))
        )
    return str(row.definition)


def _owner(connection: Connection, place: Place, told: str | None, catalog: str) -> str:
    if told is None:
        return catalog
    known, meant = (seed_catalog.ids_of(connection, each) for each in (told, catalog))
    if known and known == meant:
        return told
    if place.is_for_several:
        return SEVERAL
    raise ConfigurationError(
        f"the views in {place.called} show catalog {told}: give catalog {catalog} a {place.remedy} of its own"
    )
