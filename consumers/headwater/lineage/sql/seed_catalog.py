"""Which catalog the views of a database show, and by which names its tables are called.

What is asked for is the name or the identity (`type:location`) of a catalog: on PostgreSQL by the setting
`headwater.catalog`, else as it was recorded when the views were made. Where nothing is asked for it is the only catalog
of the store. A store that knows no catalog at all shows everything: nobody could tell anything apart there.
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
from headwater.lineage.sql.catalogs import is_shared, lies_under, prefix_of
from headwater.lineage.sql.existing import there_is
from headwater.lineage.sql.seed_function import NAMES
from headwater.lineage.sql.tables import METADATA, table_of

DATABASES: Final = Table(
    "seed_databases",
    METADATA,
    Column("name", String(64), primary_key=True),
    Column("catalog", Text),
    Column("definition", String(32)),
    mysql_engine="InnoDB",
    mysql_charset="utf8mb4",
    mysql_collate="utf8mb4_bin",
)
"""Where views are, whose, and a print of what they are. Not of events, and outside the digest."""


def ids_of(connection: Connection, catalog: str) -> set[bytes]:
    """Of the catalogs that have this name or identity."""
    place, name = table_of(t.CATALOG), table_of(t.CATALOG_NAME)
    called = there_is(name, where=and_(name.c.name == catalog, name.c.catalog_id == place.c.id))
    is_it = or_(called, place.c.type + literal(":") + place.c.location == catalog)
    return {bytes(each) for each in connection.scalars(select(place.c.id).where(is_it))}


def within(row: Any, names: FromClause) -> ColumnElement[bool]:
    """Whether a row with a table's name is of the catalog that is asked."""
    called = or_(names.c.name.is_(None), names.c.name == row.catalog)
    return there_is(names, where=and_(called, or_(names.c.prefix.is_(None), lies_under(row, names.c.prefix))))


def declared(row: Any, names: FromClause) -> ColumnElement[bool]:
    """Whether an option was declared for the catalog that is asked."""
    unknown = and_(names.c.catalog_id.is_(None), row.catalog_id.is_(None))
    called = or_(names.c.name.is_(None), names.c.name == row.catalog)
    return there_is(names, where=or_(names.c.catalog_id == row.catalog_id, and_(unknown, called)))


def in_postgresql(database: str) -> FromClause:
    """name, catalog_id, prefix, by the function below."""
    called = getattr(func, NAMES)(database)
    found: FromClause = called.table_valued("name", "catalog_id", "prefix").alias()
    return found


def in_view(view: str) -> FromClause:
    """The same, by a view that `names_of` makes."""
    return table(view, column("name"), column("catalog_id"), column("prefix")).alias()


def names_of(database: str, dialect: str) -> ReturnsRows:
    """name, catalog_id, prefix: how the tables of the catalog are called that is shown. No name is any name; a prefix
    is there for a name that other catalogs have had too."""
    place, name, known = table_of(t.CATALOG), table_of(t.CATALOG_NAME), _known()
    asked = select(DATABASES.c.catalog).where(DATABASES.c.name == database).scalar_subquery()
    meant = _meant(place.c, asked)
    number = select(func.count()).select_from(place).where(meant).scalar_subquery()
    several = or_(number > 1, and_(asked.is_(None), known > 1))
    prefix = case((is_shared(name.c), prefix_of(place.c)))
    its_own = select(name.c.name, name.c.catalog_id, prefix.label("prefix")).join_from(
        name, place, name.c.catalog_id == place.c.id
    )
    return union_all(
        its_own.where(meant, number == 1),
        select(literal(""), null(), null()).where(known <= 1),
        select(asked, null(), null()).where(asked.is_not(None), number == 0, ~several),
        select(null(), null(), null()).where(asked.is_(None), known == 0),
        select(_refused(dialect), null(), null()).where(several),
    )


def _known() -> ColumnElement[Any]:
    return select(func.count()).select_from(table_of(t.CATALOG).alias()).scalar_subquery()


def _meant(place: Any, asked: ColumnElement[Any]) -> ColumnElement[bool]:
    name = table_of(t.CATALOG_NAME).alias()
    called = there_is(name, where=and_(name.c.name == asked, name.c.catalog_id == place.id))
    return or_(place.type + literal(":") + place.location == asked, called, and_(asked.is_(None), _known() == 1))


def _refused(dialect: str) -> ColumnElement[Any]:
    """An error with words, in databases whose views can raise none: SQLite tells a path that is none, MySQL what is out
    of range. It looks at a table: what is constant is tried when the view is made."""
    name = table_of(t.CATALOG_NAME).alias()
    if dialect == "sqlite":
        known = select(func.group_concat(name.c.name)).scalar_subquery()
        return func.json_extract("{}", literal("several catalogs, record one of: ") + known)
    number = select(func.count()).select_from(name).scalar_subquery()
    words = literal("several catalogs share these views: give each a jdbc.database of its own")
    return cast(func.char_length(words) * literal(2**63 - 1) * number, Text)
