"""Joins rows of a barrier with a source of the job, of which only what those rows need is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from headwater.errors import ConfigurationError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructField

LookupJoin: TypeAlias = Literal["inner", "left"]
_JOINS: Final = ("inner", "left")
KEYS_AT_MOST: Final = 1_000
_EXACT_TYPES: Final = ("tinyint", "smallint", "int", "bigint", "string")
"""Types, besides decimals, whose values are the same in Python, in a filter of a table format and in a join. A time
isn't (zones), nor is a number with a floating point (0.0 joins with -0.0), nor a text with a collation."""
_PADDED: Final = "__CHAR_VARCHAR_TYPE_STRING"
"""Marks a column of CHAR, whose texts Spark pads in a join."""

_REPEATABLE: Final = frozenset(
    (
        *("Project", "Filter", "Join", "Union", "Aggregate", "Distinct"),
        *("SubqueryAlias", "View", "LocalRelation", "OneRowRelation"),
    )
)
"""Nodes of plans that give the same rows for the same rows. A limit and a window don't, as rows have no order."""
_RELATIONS: Final = {"DataSourceV2Relation": "table", "LogicalRelation": "relation"}


def look_up(
    rows: DataFrame,
    table: DataFrame,
    on: str | Sequence[str],
    *,
    source: str,
    how: LookupJoin = "inner",
    columns: Sequence[str] | None = None,
    keys_at_most: int = KEYS_AT_MOST,
    pinned: Sequence[DataFrame] = (),
) -> DataFrame:
    """Return the join of rows with a table.

    If the rows have few keys, the table is filtered by them, so that its format skips files without them. The rows are
    computed twice then, so that is done only if they are made of what was read at certain snapshots (`pinned`): others
    may have new keys the second time, and would lose their partners.
    """
    keys = [on] if isinstance(on, str) else list(on)
    _check(rows, table, keys, source=source, how=how, columns=columns)
    if columns is not None:
        table = table.select(*(_quoted(name) for name in dict.fromkeys([*keys, *columns])))
    exact = [name for name in keys if _is_exact(rows.schema[name], table.schema[name])]
    if keys_at_most > 0 and exact and is_repeatable(rows, pinned):
        for name, values in _values_of(rows, exact, keys_at_most).items():
            table = table.where(_has_any(name, values))
    return rows.join(table, keys, how)


def is_repeatable(rows: DataFrame, pinned: Sequence[DataFrame]) -> bool:
    """Return whether rows are the same each time they are computed: all that they read is what `pinned` reads, and no
    part of their plan depends on time, chance or order."""
    inside: Any = rows
    jvm = inside.sparkSession._jvm  # noqa: SLF001
    plan = inside._jdf.queryExecution().analyzed()  # noqa: SLF001
    patterns = jvm.org.apache.spark.sql.catalyst.trees.TreePattern
    if not plan.deterministic() or any(
        plan.containsPattern(pattern) for pattern in (patterns.CURRENT_LIKE(), patterns.PLAN_EXPRESSION())
    ):
        return False
    known = jvm.java.util.IdentityHashMap()
    for each in pinned:
        frame: Any = each
        for leaf in _nodes(frame._jdf.queryExecution().analyzed()):  # noqa: SLF001
            if (read := _what_is_read(leaf)) is not None:
                known.put(read, True)
    return all(
        node.getClass().getSimpleName() in _REPEATABLE
        or ((read := _what_is_read(node)) is not None and known.containsKey(read))
        for node in _nodes(plan)
    )


def _nodes(plan: Any) -> Iterator[Any]:
    """Yield all nodes of a plan."""
    yield plan
    children = plan.children()
    for n in range(children.size()):
        yield from _nodes(children.apply(n))


def _what_is_read(node: Any) -> Any:
    """Return the object that says what a relation reads, and at which snapshot; None for another node."""
    attribute = _RELATIONS.get(node.getClass().getSimpleName())
    return None if attribute is None else getattr(node, attribute)()


def _check(
    rows: DataFrame,
    table: DataFrame,
    keys: Sequence[str],
    *,
    source: str,
    how: str,
    columns: Sequence[str] | None,
) -> None:
    if how not in _JOINS:
        raise ConfigurationError(f"lookup({source!r}) joins {' or '.join(map(repr, _JOINS))}, and not {how!r}")
    if not keys:
        raise ConfigurationError(f"lookup({source!r}) needs the columns to join on: on='product', say")
    for what, frame, wanted in (
        ("the rows have", rows, keys),
        (f"{source} has", table, [*keys, *(columns or ())]),
    ):
        if missing := [name for name in wanted if name not in frame.columns]:
            raise ConfigurationError(
                f"lookup({source!r}): {what} no column {missing[0]!r}, but {', '.join(frame.columns)}. A key has one "
                "name on both sides: rename it in the rows, with withColumnRenamed"
            )
    taken = set(columns if columns is not None else table.columns) - set(keys)
    if both := sorted(taken & set(rows.columns)):
        raise ConfigurationError(
            f"lookup({source!r}): the rows have a column {both[0]!r}, and so has {source}: name the columns that you "
            "want of it, columns=['price'], say, or rename that of the rows"
        )


def _values_of(rows: DataFrame, keys: Sequence[str], at_most: int) -> dict[str, list[Any]]:
    """Return the values that each key has in the rows; nothing if they are too many."""
    found = rows.select(*map(_quoted, keys)).distinct().limit(at_most + 1).collect()
    if len(found) > at_most:
        return {}
    return {name: sorted({row[name] for row in found} - {None}) for name in keys}


def _is_exact(one: StructField, other: StructField) -> bool:
    """Return whether two columns have values that Python can carry from one to the other."""
    name = one.dataType.simpleString()
    is_padded = _PADDED in one.metadata or _PADDED in other.metadata
    return one.dataType == other.dataType and not is_padded and (name in _EXACT_TYPES or name.startswith("decimal"))


def _has_any(name: str, values: Sequence[Any]) -> Column:
    """Return a filter by values. Formats look for each of a few hundred at most, so it has the range of all, too."""
    from pyspark.sql import functions as f  # noqa: PLC0415 - an extra

    if not values:
        return f.lit(False)
    return f.col(_quoted(name)).between(values[0], values[-1]) & f.col(_quoted(name)).isin(list(values))


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
