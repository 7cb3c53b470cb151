"""Which catalog the PIP-5 views of a database show, and under which names its tables stand in the store.

A reader asks for a catalog by name or identity (`type:location`): on PostgreSQL with the setting `headwater.catalog`,
elsewhere with what was recorded when the views were created. Without either it is the only catalog of the store. A
store without any catalog shows everything.

On PostgreSQL a function decides, as a view can't raise errors. It has the same rules.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    FromClause,
    ReturnsRows,
    String,
    Table,
    Text,
    and_,
    case,
    cast,
    column,
    func,
    literal,
    null,
    or_,
    select,
    table,
    union_all,
)

from headwater.lineage.rows import tables as t
from headwater.lineage.sql.catalogs import dataset_prefix, is_shared, lies_under
from headwater.lineage.sql.tables import METADATA, row_exists, table_of

SETTING: Final = "headwater.catalog"
NAMES: Final = "pip5_catalog"
SEVERAL: Final = ""
"""Recorded where several catalogs have their views in one database: the setting has to say which one is meant."""


def postgresql_function(schema: str) -> str:
    """Return the function's definition. It raises an error if it is unclear which catalog is meant. Readers of the
    views need no rights on the tables."""
    return f"""
CREATE OR REPLACE FUNCTION {NAMES}(views text) RETURNS TABLE (name text, catalog_id bytea, prefix text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = {schema}, pg_temp ROWS 1 AS $body$
#variable_conflict use_column
DECLARE
    told text := nullif(current_setting('{SETTING}', true), '');
    asked text := coalesce(told, (SELECT d.catalog FROM pip5_databases d WHERE d.name = views));
    known bigint := (SELECT count(*) FROM catalogs);
    meant bytea[];
BEGIN
    IF asked IS NULL THEN
        meant := (SELECT array_agg(k.id) FROM catalogs k);
    ELSE
        meant := (SELECT array_agg(k.id) FROM catalogs k WHERE k.type || ':' || k.location = asked
            OR EXISTS (SELECT FROM catalog_names n WHERE n.name = asked AND n.catalog_id = k.id));
    END IF;
    IF asked IS NULL AND known > 1 OR asked = '{SEVERAL}' THEN
        RAISE EXCEPTION 'several catalogs have their lineage here: say which by the setting {SETTING}, one of: %',
            (SELECT string_agg(DISTINCT n.name, ', ' ORDER BY n.name) FROM catalog_names n)
            USING ERRCODE = 'invalid_parameter_value',
            HINT = 'SET {SETTING} = ''...'', or ?options=-c%20{SETTING}=... in a JDBC URL.';
    ELSIF cardinality(meant) > 1 THEN
        RAISE EXCEPTION '% stands for several catalogs: set {SETTING} to the identity of one of: %', asked,
            (SELECT string_agg(k.type || ':' || k.location, ', ' ORDER BY k.type, k.location)
                FROM catalogs k WHERE k.id = ANY (meant))
            USING ERRCODE = 'invalid_parameter_value';
    ELSIF told IS NOT NULL AND meant IS NULL AND NOT EXISTS (SELECT FROM table_lineage l WHERE l.catalog = told) THEN
        RAISE EXCEPTION 'no catalog % is known here ({SETTING}); there is: %', told,
            coalesce((SELECT string_agg(DISTINCT n.name, ', ' ORDER BY n.name) FROM catalog_names n), 'none yet')
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN QUERY SELECT n.name, n.catalog_id, CASE WHEN EXISTS (
            SELECT FROM catalog_names o WHERE o.name = n.name AND o.catalog_id <> n.catalog_id
        ) THEN k.location || CASE k.type WHEN 'jdbc' THEN '.' ELSE '/' END END
        FROM catalog_names n JOIN catalogs k ON k.id = n.catalog_id WHERE k.id = ANY (meant);
    IF known <= 1 THEN
        RETURN QUERY SELECT '', NULL::bytea, NULL::text;
    END IF;
    IF meant IS NULL THEN
        RETURN QUERY SELECT asked, NULL::bytea, NULL::text;
    END IF;
END
$body$"""  # noqa: S608 - of nothing but names that are written here


PIP5_DATABASES: Final = Table(
    "pip5_databases",
    METADATA,
    Column("name", String(64), primary_key=True),
    Column("catalog", Text),
    Column("definition", String(32)),
    mysql_engine="InnoDB",
    mysql_charset="utf8mb4",
    mysql_collate="utf8mb4_bin",
)
"""Where the views are, which catalog they show, and a hash of their definition. No event writes this table, so it isn't
part of the store's digest."""


def catalog_ids(connection: Connection, catalog: str) -> set[bytes]:
    """Return the ids of the catalogs with this name or identity."""
    place, name = table_of(t.CATALOG), table_of(t.CATALOG_NAME)
    called = row_exists(name, where=and_(name.c.name == catalog, name.c.catalog_id == place.c.id))
    is_it = or_(called, place.c.type + literal(":") + place.c.location == catalog)
    return {bytes(key) for key in connection.scalars(select(place.c.id).where(is_it))}


def list_catalogs(connection: Connection) -> dict[str, str]:
    """Return the identities of the store's catalogs by what a reader calls them: their name, if it is only theirs."""
    place, name = table_of(t.CATALOG), table_of(t.CATALOG_NAME)
    joined = select(name.c.name, place.c.type, place.c.location).join_from(name, place, name.c.catalog_id == place.c.id)
    names: dict[str, set[str]] = {}
    identities: dict[str, str] = {}
    for called, kind, location in sorted(connection.execute(joined).all(), reverse=True):
        names.setdefault(called, set()).add(f"{kind}:{location}")
        identities[f"{kind}:{location}"] = called
    return {
        called if len(names[called]) == 1 else identity: identity for identity, called in sorted(identities.items())
    }


def is_recorded(connection: Connection, database: str) -> bool:
    """Return whether somebody has said which catalog the views show."""
    recorded = select(PIP5_DATABASES.c.catalog).where(PIP5_DATABASES.c.name == database)
    return connection.execute(recorded).scalar() is not None


def is_in_catalog(row: Any, names: FromClause) -> ColumnElement[bool]:
    """Return a condition: the row's table belongs to the shown catalog."""
    called = or_(names.c.name.is_(None), names.c.name == row.catalog)
    return row_exists(names, where=and_(called, or_(names.c.prefix.is_(None), lies_under(row, names.c.prefix))))


def is_declared_for(row: Any, names: FromClause) -> ColumnElement[bool]:
    """Return a condition: the option was declared for the shown catalog."""
    unknown = and_(names.c.catalog_id.is_(None), row.catalog_id.is_(None))
    called = or_(names.c.name.is_(None), names.c.name == row.catalog)
    return row_exists(names, where=or_(names.c.catalog_id == row.catalog_id, and_(unknown, called)))


def in_postgresql(database: str) -> FromClause:
    """Select name, catalog_id and prefix with the function of `pip5_function`."""
    called = getattr(func, NAMES)(database)
    found: FromClause = called.table_valued("name", "catalog_id", "prefix").alias()
    return found


def in_view(view: str) -> FromClause:
    """Select the same from a view that `select_shown_names` defines."""
    return table(view, column("name"), column("catalog_id"), column("prefix")).alias()


def select_shown_names(database: str, dialect: str, catalog: str | None = None) -> ReturnsRows:
    """Select name, catalog_id, prefix: the names of the shown catalog, the recorded one unless `catalog` names it. NULL
    as a name matches any name. A prefix is set where other catalogs have had the same name."""
    place, name, known = table_of(t.CATALOG), table_of(t.CATALOG_NAME), _count_catalogs()
    recorded = select(PIP5_DATABASES.c.catalog).where(PIP5_DATABASES.c.name == database).scalar_subquery()
    requested: ColumnElement[Any] = recorded if catalog is None else literal(catalog)
    meant = _is_meant(place.c, requested)
    number = select(func.count()).select_from(place).where(meant).scalar_subquery()
    several = or_(number > 1, and_(requested.is_(None), known > 1))
    prefix = case((is_shared(name.c), dataset_prefix(place.c)))
    its_own = select(name.c.name, name.c.catalog_id, prefix.label("prefix")).join_from(
        name, place, name.c.catalog_id == place.c.id
    )
    return union_all(
        its_own.where(meant, number == 1),
        select(literal(""), null(), null()).where(known <= 1),
        select(requested, null(), null()).where(requested.is_not(None), number == 0, ~several),
        select(null(), null(), null()).where(requested.is_(None), known == 0),
        select(_failing_expression(dialect), null(), null()).where(several),
    )


def _count_catalogs() -> ColumnElement[Any]:
    return select(func.count()).select_from(table_of(t.CATALOG).alias()).scalar_subquery()


def _is_meant(place: Any, requested: ColumnElement[Any]) -> ColumnElement[bool]:
    name = table_of(t.CATALOG_NAME).alias()
    called = row_exists(name, where=and_(name.c.name == requested, name.c.catalog_id == place.id))
    return or_(
        place.type + literal(":") + place.location == requested,
        called,
        and_(requested.is_(None), _count_catalogs() == 1),
    )


def _failing_expression(dialect: str) -> ColumnElement[Any]:
    """An expression that fails with a readable message, for databases whose views can't raise errors: an invalid JSON
    path on SQLite, a value out of range on MySQL. It depends on a table, because constants are evaluated when the view
    is created."""
    name = table_of(t.CATALOG_NAME).alias()
    if dialect == "sqlite":
        known = select(func.group_concat(name.c.name)).scalar_subquery()
        return func.json_extract("{}", literal("several catalogs, record one of: ") + known)
    number = select(func.count()).select_from(name).scalar_subquery()
    words = literal("several catalogs share these views: give each a jdbc.database of its own")
    return cast(func.char_length(words) * literal(2**63 - 1) * number, Text)
