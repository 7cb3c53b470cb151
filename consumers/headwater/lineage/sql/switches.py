"""Which rows the options of catalogs keep from being shown, in SQL. The rules are those of `rows.switches`."""

from __future__ import annotations

from functools import cache
from typing import Any, cast

from sqlalchemy import ColumnElement, Select, and_, case, or_, select, tuple_

from headwater.lineage.rows import tables as t
from headwater.lineage.rows.switches import OFF, SWITCHES, switches_over
from headwater.lineage.sql.catalogs import belongs_to, names_of_catalogs
from headwater.lineage.sql.tables import SparkAlternative, row_exists, table_of


def not_switched_off(row: Any, scopes: tuple[str, ...]) -> ColumnElement[bool]:
    """Return a condition: no option of the row's catalog switches off what deletions of these scopes hide."""
    switches = switches_over(scopes)
    option, spark = _declared_off(switches).subquery(), _off_in_spark().alias()
    is_its_name = and_(option.c.catalog_id.is_(None), option.c.catalog == row.catalog)
    is_off = and_(is_off_first(option.c), or_(is_its_name, belongs_to(row, option.c.catalog_id)))
    off = row_exists(option, where=is_off)
    is_of = and_(
        spark.c.its_name == row.catalog, or_(spark.c.its_dataset.is_(None), spark.c.its_dataset == row.dataset)
    )
    return SparkAlternative(
        or_(~any_switched_off(), ~off), ~row_exists(spark, where=and_(spark.c.name.in_(switches), is_of))
    )


def _declared_off(switches: tuple[str, ...]) -> Select[Any]:
    """Select the few declarations that switch lineage off. OFFSET 0 keeps PostgreSQL from expecting that the costly
    conditions are evaluated for every option, which would drown what an index saves."""
    option = table_of(t.CATALOG_OPTION)
    few: Select[Any] = select(*tuple(option.c)).where(option.c.name.in_(switches), option.c.value == OFF)
    return few.suffix_with("OFFSET 0", dialect="postgresql")


def any_switched_off() -> ColumnElement[bool]:
    """Return a condition that asks no other table: some driver declared an option that switches lineage off."""
    option = table_of(t.CATALOG_OPTION).alias()
    return row_exists(option, where=and_(option.c.name.in_(SWITCHES), option.c.value == OFF))


def is_off_first(option: Any) -> ColumnElement[bool]:
    """Return a condition: the option switches lineage off, and nobody declared it otherwise before."""
    earlier = table_of(t.CATALOG_OPTION).alias()
    other = earlier.c
    unnamed = and_(option.catalog_id.is_(None), other.catalog_id.is_(None), other.catalog == option.catalog)
    of_one = or_(other.catalog_id == option.catalog_id, unnamed)
    is_earlier = tuple_(other.first, other.id) < tuple_(option.first, option.id)
    return and_(option.value == OFF, ~row_exists(earlier, where=and_(other.name == option.name, of_one, is_earlier)))


@cache
def _off_in_spark() -> Select[Any]:
    """Select the options that switch lineage off, each with the names of its catalog, as for tombstones."""
    option, its = table_of(t.CATALOG_OPTION).alias(), names_of_catalogs().subquery("its")
    name = case((option.c.catalog_id.is_(None), option.c.catalog), else_=its.c.name)
    joined = option.outerjoin(its, option.c.catalog_id == its.c.catalog_id)
    columns = (option.c.name, name.label("its_name"), its.c.dataset.label("its_dataset"))
    return cast("Select[Any]", select(*columns).select_from(joined).where(is_off_first(option.c)))
