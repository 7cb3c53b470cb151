"""Paimon PIP-5's tables as read-only views, in a database of their own.

The views are the queries of `sql.pip5_rows` for one catalog, with timestamps instead of microseconds. Not even their
owner can write through them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from hashlib import blake2b
from typing import Any, Final

from sqlalchemy import Connection, Select, insert, literal, select, table, text, update

from headwater.errors import ConfigurationError
from headwater.lineage.mapping.commits import SINK, SOURCE
from headwater.lineage.sql import pip5_catalog, pip5_rows
from headwater.lineage.sql.pip5_catalog import PIP5_DATABASES, SEVERAL
from headwater.lineage.sql.pip5_dialects import Pip5Dialect, pip5_dialect_of
from headwater.lineage.sql.pip5_rows import RowFilter

DATABASE: Final = "paimon"
"""The default that Paimon PIP-5 defines."""
VIEWS: Final = (
    "catalog_options",
    "source_job_lineage",
    "sink_job_lineage",
    "source_snapshot_lineage",
    "sink_snapshot_lineage",
    "job_startup",
    "table_branches",
)
"""Those of the proposal, and what Paimon's design of branches calls `$branches`, for all tables."""

_texts: Final[dict[tuple[object, ...], dict[str, str]]] = {}
"""Compiled view definitions by dialect kind. Compiling them takes longer than everything else that opening a store
does."""


def create_views(connection: Connection, database: str = DATABASE, catalog: str | None = None) -> None:
    """Create or update the views. This needs the right to create views and indexes.

    `catalog` is the name or identity of the catalog that they show by default. Only on PostgreSQL several catalogs can
    share a database; there a setting chooses one.
    """
    place = pip5_dialect_of(connection, database)
    with place.alone():
        recorded = _record_definition(connection, place, catalog)
        statements = list(_statements(place))
        definition = _definition(statements)
        if recorded == definition and set(VIEWS) <= place.views():
            return
        for statement in (*place.home(), *place.indexes(), *place.outdated(VIEWS), *statements):
            connection.exec_driver_sql(statement, execution_options={"no_parameters": True})
        connection.execute(
            update(PIP5_DATABASES).where(PIP5_DATABASES.c.name == place.database).values(definition=definition)
        )


def are_views_current(connection: Connection, database: str = DATABASE) -> bool:
    """Return whether the views exist as this version defines them. Changes nothing and takes no lock."""
    place = pip5_dialect_of(connection, database)
    recorded = connection.execute(
        select(PIP5_DATABASES.c.definition).where(PIP5_DATABASES.c.name == place.database)
    ).scalar()
    return recorded == _definition(list(_statements(place))) and set(VIEWS) <= place.views()


def _definition(statements: Sequence[str]) -> str:
    return blake2b("\n".join(statements).encode(), digest_size=16).hexdigest()


def follow_catalogs(connection: Connection) -> None:
    """Update the views after the store learned of a catalog, where their definition depends on which there are."""
    if connection.dialect.name == "sqlite":
        names = set(connection.scalars(select(PIP5_DATABASES.c.name)))
        if pip5_dialect_of(connection, DATABASE).database in names:
            create_views(connection)


def _statements(place: Pip5Dialect) -> Iterator[str]:
    if place.catalogs:
        yield from _statements_of_several(place)
        return
    yield from place.before()
    for view, selected in _selected_texts(place).items():
        yield from place.view(view, selected)


def _statements_of_several(place: Pip5Dialect) -> Iterator[str]:
    """Yield a view of each catalog, `sink_job_lineage_lake`, and one of all with a column that tells them apart."""
    parts: dict[str, list[str]] = {view: [] for view in VIEWS}
    for called, own in place.catalogs.items():
        yield from own.before()
        for view, selected in _selected_texts(own).items():
            yield from own.view(f"{view}_{called}", selected)
            parts[view].append(
                place.text(select(text("*"), literal(called).label("catalog")).select_from(table(f"{view}_{called}")))
            )
    for view, selects in parts.items():
        yield from place.view(view, " UNION ALL ".join(selects))


def _selected_texts(place: Pip5Dialect) -> dict[str, str]:
    texts = _texts.get(place.kind)
    if texts is None:
        texts = _texts[place.kind] = {view: place.text(selected) for view, selected in _selects(place).items()}
    return texts


def _selects(place: Pip5Dialect) -> dict[str, Select[Any]]:
    names = place.names
    of_catalog = RowFilter(partial(pip5_catalog.is_in_catalog, names=names), place.indexed)
    selected = (
        pip5_rows.option_rows(partial(pip5_catalog.is_declared_for, names=names)),
        pip5_rows.table_rows(SOURCE, of_catalog),
        pip5_rows.table_rows(SINK, of_catalog),
        pip5_rows.data_rows(SOURCE, of_catalog),
        pip5_rows.data_rows(SINK, of_catalog),
        pip5_rows.startup_rows(of_catalog),
        pip5_rows.branch_rows(of_catalog),
    )
    return {view: _client_columns(place, selection) for view, selection in zip(VIEWS, selected, strict=True)}


def _client_columns(place: Pip5Dialect, rows: Select[Any]) -> Select[Any]:
    """Convert the columns for clients, and fail if it is unclear which catalog is meant."""
    recorded = [place.client_column(column) for column in rows.selected_columns]
    shown = rows.with_only_columns(*recorded, maintain_column_froms=True)
    return place.unwritable(shown.where(place.is_clear()))


def _record_definition(connection: Connection, place: Pip5Dialect, catalog: str | None) -> str | None:
    """Return the recorded hash of the definition, after recording which catalog the views show."""
    mine = PIP5_DATABASES.c.name == place.database
    row = connection.execute(select(PIP5_DATABASES.c.catalog, PIP5_DATABASES.c.definition).where(mine)).first()
    if row is None:
        connection.execute(insert(PIP5_DATABASES).values(name=place.database, catalog=catalog))
        return None
    if catalog is not None and row.catalog not in {catalog, SEVERAL}:
        connection.execute(
            update(PIP5_DATABASES).where(mine).values(catalog=_owner(connection, place, row.catalog, catalog))
        )
    return str(row.definition)


def _owner(connection: Connection, place: Pip5Dialect, recorded: str | None, catalog: str) -> str:
    if recorded is None:
        return catalog
    known, meant = (pip5_catalog.catalog_ids(connection, kind) for kind in (recorded, catalog))
    if known and known == meant:
        return recorded
    if place.is_for_several:
        return SEVERAL
    raise ConfigurationError(
        f"the views in {place.called} show catalog {recorded}: give catalog {catalog} a {place.remedy} of its own"
    )
