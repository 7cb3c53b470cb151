"""Which catalog a table's name belongs to, in SQL. The rules are those of `rows.tombstones`."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, CompoundSelect, and_, case, func, literal, null, or_, select, union_all
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import Integer

from headwater.lineage.rows import tables as t
from headwater.lineage.rows.tombstones import SERVED
from headwater.lineage.sql.tables import row_exists, table_of


class characters(FunctionElement[int]):  # noqa: N801 - a function of SQL
    """The length of a text in characters. MySQL's `length` counts bytes, and SQLite has no `char_length`."""

    type = Integer()
    inherit_cache = True


@compiles(characters)
def _everywhere(element: characters, compiler: Any, **options: Any) -> str:
    return f"char_length({compiler.process(element.clauses, **options)})"


@compiles(characters, "sqlite")
def _in_sqlite(element: characters, compiler: Any, **options: Any) -> str:
    return f"length({compiler.process(element.clauses, **options)})"


def belongs_to(row: Any, catalog: ColumnElement[Any]) -> ColumnElement[bool]:
    """Return a condition: the row's table belongs to the catalog of this id."""
    name, place = table_of(t.CATALOG_NAME).alias(), table_of(t.CATALOG).alias()
    is_its_name = and_(name.c.catalog_id == catalog, name.c.name == row.catalog, place.c.id == name.c.catalog_id)
    lies = lies_under(row, dataset_prefix(place.c))
    return row_exists(name, place, where=and_(is_its_name, or_(~is_shared(name.c), lies)))


def names_of_catalogs() -> CompoundSelect[Any, Any, None]:
    """Select what `belongs_to` looks for, as pairs of a catalog and one of its names: with each dataset that lies there
    where the name is shared, else without one."""
    name, place, dataset = table_of(t.CATALOG_NAME).alias(), table_of(t.CATALOG).alias(), table_of(t.DATASET).alias()
    own = select(name.c.catalog_id, name.c.name, null().label("dataset"))
    own = own.join_from(name, place, place.c.id == name.c.catalog_id).where(~is_shared(name.c))
    begins = begins_with(dataset.c, dataset_prefix(place.c))
    lying = select(name.c.catalog_id, name.c.name, dataset.c.id)
    lying = lying.join_from(name, place, place.c.id == name.c.catalog_id).join(dataset, begins)
    return union_all(own, lying.where(is_shared(name.c)))


def is_shared(name: Any) -> ColumnElement[bool]:
    """Return a condition: the name has stood for another catalog, too."""
    other = table_of(t.CATALOG_NAME).alias()
    return row_exists(other, where=and_(other.c.name == name.name, other.c.catalog_id != name.catalog_id))


def dataset_prefix(place: Any) -> ColumnElement[Any]:
    """Return the text with which the names of a catalog's datasets begin."""
    behind: ColumnElement[Any] = case((place.type == SERVED, literal(".")), else_=literal("/"))
    prefix: ColumnElement[Any] = place.location + behind
    return prefix


def lies_under(row: Any, prefix: ColumnElement[Any]) -> ColumnElement[bool]:
    """Return a condition: the name of the row's dataset begins with the prefix."""
    table = table_of(t.DATASET).alias()
    return row_exists(table, where=and_(table.c.id == row.dataset, begins_with(table.c, prefix)))


def begins_with(dataset: Any, prefix: ColumnElement[Any]) -> ColumnElement[bool]:
    """Return a condition: the name of a dataset begins with the prefix."""
    rooted = func.substr(dataset.name, 1, 1) == literal("/")
    whole = dataset.namespace + case((rooted, dataset.name), else_=literal("/") + dataset.name)
    begins: ColumnElement[bool] = func.substr(whole, 1, characters(prefix)) == prefix
    return begins
