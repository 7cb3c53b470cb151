"""Which catalog a name stands for, in SQL: the same as `law.catalogs`."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, and_, case, func, literal, or_
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import Integer

from headwater.lineage.law.catalogs import SERVED
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.existing import there_is
from headwater.lineage.sql.tables import table_of


class characters(FunctionElement[int]):  # noqa: N801 - a function of SQL
    """How long a text is: MySQL's `length` counts bytes, SQLite knows no other name."""

    type = Integer()
    inherit_cache = True


@compiles(characters)
def _everywhere(element: characters, compiler: Any, **options: Any) -> str:
    return f"char_length({compiler.process(element.clauses, **options)})"


@compiles(characters, "sqlite")
def _in_sqlite(element: characters, compiler: Any, **options: Any) -> str:
    return f"length({compiler.process(element.clauses, **options)})"


def is_of(row: Any, catalog: ColumnElement[Any]) -> ColumnElement[bool]:
    """Whether a row with a table's name, and its dataset, belongs to the catalog of an id."""
    name, place = table_of(t.CATALOG_NAME).alias(), table_of(t.CATALOG).alias()
    told = and_(name.c.catalog_id == catalog, name.c.name == row.catalog, place.c.id == name.c.catalog_id)
    lies = lies_under(row, prefix_of(place.c))
    return there_is(name, place, where=and_(told, or_(~is_shared(name.c), lies)))


def is_shared(name: Any) -> ColumnElement[bool]:
    """Whether the name of a catalog has stood for another one too."""
    other = table_of(t.CATALOG_NAME).alias()
    return there_is(other, where=and_(other.c.name == name.name, other.c.catalog_id != name.catalog_id))


def prefix_of(place: Any) -> ColumnElement[Any]:
    """What the datasets of a catalog are called begins with it."""
    behind: ColumnElement[Any] = case((place.type == SERVED, literal(".")), else_=literal("/"))
    prefix: ColumnElement[Any] = place.location + behind
    return prefix


def lies_under(row: Any, prefix: ColumnElement[Any]) -> ColumnElement[bool]:
    table = table_of(t.DATASET).alias()
    dataset = table.c
    rooted = func.substr(dataset.name, 1, 1) == literal("/")
    whole = dataset.namespace + case((rooted, dataset.name), else_=literal("/") + dataset.name)
    begins = func.substr(whole, 1, characters(prefix)) == prefix
    return there_is(table, where=and_(dataset.id == row.dataset, begins))
