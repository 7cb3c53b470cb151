"""Compares two DataFrames in Spark: by key, or as multisets of rows. Only counts and samples leave the cluster.

NULL equals NULL, NaN equals NaN, and 0.0 equals -0.0.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

from headwater.versions.validation.comparable_columns import ColumnMatch, can_unite, make_comparable, match_columns
from headwater.versions.validation.model import ComparedColumn, ResultComparison, SampleDifference, SampleRow

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_RECORDED: Final = "_recorded"
_RESULT: Final = "_result"
_TEXT: Final = 200
"""Of a sample's value at most so many characters are shown."""


def compare(
    recorded: DataFrame,
    result: DataFrame,
    *,
    key: Sequence[str] = (),
    ignored: Collection[str] = (),
    samples: int = 10,
) -> ResultComparison:
    """Return how the rows of a result differ from the recorded ones.

    Without a key, rows are counted: a row that differs is one that only each side has. A ConfigurationError if a key or
    an ignored column isn't there.
    """
    columns = match_columns(recorded.columns, result.columns, key, ignored)
    rows = _UnitedRows(recorded, result, columns)
    found = _by_key(rows, samples) if key else _as_multisets(rows, samples)
    types = _types(recorded), _types(result)
    return ResultComparison(
        **found.counts,
        key=tuple(pair.name for pair in columns.pairs if pair.is_key),
        columns=tuple(
            ComparedColumn(
                name=pair.name,
                recorded_type=types[0][pair.recorded],
                result_type=types[1][pair.result],
                different=found.different_by_column.get(pair.name, 0) if key and not pair.is_key else None,
            )
            for pair in columns.pairs
        ),
        ignored=columns.ignored,
        missing_in_result=columns.missing_in_result,
        missing_in_recorded=columns.missing_in_recorded,
        is_reordered=columns.is_reordered,
        samples_only_recorded=found.only_recorded,
        samples_only_result=found.only_result,
        samples_different=found.different,
    )


class _UnitedRows:
    """The rows of both sides one after the other, each with a count for its side, under names of ours."""

    def __init__(self, recorded: DataFrame, result: DataFrame, columns: ColumnMatch) -> None:
        import pyspark.sql.functions as f  # noqa: PLC0415 - with Spark only

        names = [f"c{place}" for place in range(len(columns.pairs))]
        sides = [
            side.toDF(*(f"i{place}" for place in range(len(side.columns)))).select(
                *(f.col(f"i{place}").alias(name) for place, name in zip(places, names, strict=True))
            )
            for side, places in (
                (recorded, [pair.recorded for pair in columns.pairs]),
                (result, [pair.result for pair in columns.pairs]),
            )
        ]
        strange = {name for name in names if not can_unite(sides[0].select(name), sides[1].select(name))}
        comparable = [
            side.select(
                *(make_comparable(f.col(n), side.schema[n].dataType, as_text=n in strange).alias(n) for n in names)
            )
            for side in sides
        ]
        counts = ((1, 0), (0, 1))
        counted = [
            side.select("*", f.lit(one).alias(_RECORDED), f.lit(other).alias(_RESULT))
            for side, (one, other) in zip(comparable, counts, strict=True)
        ]
        self.frame = counted[0].union(counted[1])
        self.names = {pair.name: name for pair, name in zip(columns.pairs, names, strict=True)}
        """Our names by those of the columns."""
        self.key = {pair.name: self.names[pair.name] for pair in columns.pairs if pair.is_key}
        self.values = {name: ours for name, ours in self.names.items() if name not in self.key}

    def text(self, column: Column, ours: str) -> Column:
        """Return what is shown of a value."""
        import pyspark.sql.functions as f  # noqa: PLC0415

        kind = type(self.frame.schema[ours].dataType).__name__
        shown = f.hex(column) if kind == "BinaryType" else column.cast("string")
        return f.substring(shown, 1, _TEXT)

    def sample(self, frame: DataFrame, at_most: int, count: Column) -> tuple[SampleRow, ...]:
        """Return rows as texts, the first ones by their values."""
        import pyspark.sql.functions as f  # noqa: PLC0415

        ours = list(self.names.values())
        first = frame.withColumn("_count", count).orderBy(*ours).limit(at_most)
        texts = first.select(*(self.text(f.col(name), name).alias(name) for name in ours), "_count")
        return tuple(
            SampleRow(values=dict(zip(self.names, row[:-1], strict=True)), count=int(row[-1]))
            for row in texts.collect()
        )


@dataclass(frozen=True)
class _Found:
    counts: Mapping[str, Any]
    different_by_column: Mapping[str, int]
    only_recorded: tuple[SampleRow, ...] = ()
    only_result: tuple[SampleRow, ...] = ()
    different: tuple[SampleDifference, ...] = ()


def _as_multisets(rows: _UnitedRows, samples: int) -> _Found:
    """Compare how often each row is there."""
    import pyspark.sql.functions as f  # noqa: PLC0415

    grouped = _count_rows(rows.frame, list(rows.names.values()))
    total = _totals(grouped)
    one, other = f.col(_RECORDED), f.col(_RESULT)
    equal = total["equal"]
    counts = {
        "recorded_rows": total[_RECORDED],
        "result_rows": total[_RESULT],
        "equal": equal,
        "only_recorded": total[_RECORDED] - equal,
        "only_result": total[_RESULT] - equal,
        "different": None,
        "repeated_keys": 0,
    }
    return _Found(
        counts,
        {},
        rows.sample(grouped.where(one > other), samples, one - other) if counts["only_recorded"] else (),
        rows.sample(grouped.where(other > one), samples, other - one) if counts["only_result"] else (),
    )


def _by_key(rows: _UnitedRows, samples: int) -> _Found:
    """Compare rows of the same key, column by column. Rows whose key isn't unique on a side count as multisets."""
    import pyspark.sql.functions as f  # noqa: PLC0415

    keys, values = list(rows.key.values()), rows.values
    one, other = f.col(_RECORDED), f.col(_RESULT)
    grouped = rows.frame.groupBy(*keys).agg(
        *_sums(),
        *(
            f.first(f.when(side == 1, f.struct(*(values.values() or keys))), ignorenulls=True).alias(name)
            for side, name in ((one, "here"), (other, "there"))
        ),
    )
    differs = {name: ~f.col(f"here.{ours}").eqNullSafe(f.col(f"there.{ours}")) for name, ours in values.items()}
    any_differs = reduce(lambda a, b: a | b, differs.values(), f.lit(False))
    is_pair = (one == 1) & (other == 1)
    is_repeated = (one > 0) & (other > 0) & ((one > 1) | (other > 1))
    total = _first(
        grouped.agg(
            *(f.coalesce(f.sum(side), f.lit(0)).alias(name) for side, name in ((one, _RECORDED), (other, _RESULT))),
            _count_if(is_pair & ~any_differs, "equal"),
            _count_if(is_pair & any_differs, "different"),
            _count_if(is_repeated, "repeated"),
            f.coalesce(f.sum(f.when(other == 0, one)), f.lit(0)).alias("only_recorded"),
            f.coalesce(f.sum(f.when(one == 0, other)), f.lit(0)).alias("only_result"),
            *(_count_if(is_pair & differing, f"d{place}") for place, differing in enumerate(differs.values())),
        )
    )
    repeated = _repeated_rows(rows, grouped.where(is_repeated)) if total["repeated"] else None
    extra = {_RECORDED: 0, _RESULT: 0, "equal": 0} if repeated is None else _totals(repeated)
    only = {
        "only_recorded": total["only_recorded"] + extra[_RECORDED] - extra["equal"],
        "only_result": total["only_result"] + extra[_RESULT] - extra["equal"],
    }
    counts = {
        "recorded_rows": total[_RECORDED],
        "result_rows": total[_RESULT],
        "equal": total["equal"] + extra["equal"],
        **only,
        "different": total["different"],
        "repeated_keys": total["repeated"],
    }
    lone = _count_rows(_of_keys(rows, grouped.where((one == 0) | (other == 0))), list(rows.names.values()))
    alone = lone if repeated is None else lone.union(repeated)
    pairs = grouped.where(is_pair & any_differs)
    return _Found(
        counts,
        {name: total[f"d{place}"] for place, name in enumerate(differs)},
        rows.sample(alone.where(one > other), samples, one - other) if only["only_recorded"] else (),
        rows.sample(alone.where(other > one), samples, other - one) if only["only_result"] else (),
        _sample_differences(rows, pairs, samples) if total["different"] else (),
    )


def _sample_differences(rows: _UnitedRows, pairs: DataFrame, samples: int) -> tuple[SampleDifference, ...]:
    import pyspark.sql.functions as f  # noqa: PLC0415

    keys, values = list(rows.key.values()), rows.values
    texts = [rows.text(f.col(ours), ours) for ours in keys]
    for ours in values.values():
        here, there = f.col(f"here.{ours}"), f.col(f"there.{ours}")
        texts += [~here.eqNullSafe(there), rows.text(here, ours), rows.text(there, ours)]
    chosen = pairs.orderBy(*keys).limit(samples).select(*(text.alias(f"t{n}") for n, text in enumerate(texts)))
    found = []
    for row in chosen.collect():
        of_key, rest = row[: len(keys)], row[len(keys) :]
        columns = {
            name: (rest[3 * place + 1], rest[3 * place + 2]) for place, name in enumerate(values) if rest[3 * place]
        }
        found.append(SampleDifference(key=dict(zip(rows.key, of_key, strict=True)), columns=columns))
    return tuple(found)


def _repeated_rows(rows: _UnitedRows, groups: DataFrame) -> DataFrame:
    return _count_rows(_of_keys(rows, groups), list(rows.names.values()))


def _of_keys(rows: _UnitedRows, groups: DataFrame) -> DataFrame:
    """Return the rows of these keys, among them keys that are NULL."""
    import pyspark.sql.functions as f  # noqa: PLC0415

    wanted = groups.select(*(f.col(ours).alias(f"k_{ours}") for ours in rows.key.values()))
    same = [rows.frame[ours].eqNullSafe(wanted[f"k_{ours}"]) for ours in rows.key.values()]
    return rows.frame.join(wanted, reduce(lambda a, b: a & b, same), "left_semi")


def _count_rows(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    return frame.groupBy(*names).agg(*_sums())


def _sums() -> list[Column]:
    import pyspark.sql.functions as f  # noqa: PLC0415

    return [f.sum(name).alias(name) for name in (_RECORDED, _RESULT)]


def _totals(grouped: DataFrame) -> Mapping[str, int]:
    import pyspark.sql.functions as f  # noqa: PLC0415

    both = f.least(f.col(_RECORDED), f.col(_RESULT))
    sums = ((f.col(_RECORDED), _RECORDED), (f.col(_RESULT), _RESULT), (both, "equal"))
    return _first(grouped.agg(*(f.coalesce(f.sum(value), f.lit(0)).alias(name) for value, name in sums)))


def _count_if(condition: Column, name: str) -> Column:
    import pyspark.sql.functions as f  # noqa: PLC0415

    return f.count(f.when(condition, 1)).alias(name)


def _first(frame: DataFrame) -> Mapping[str, int]:
    found: Mapping[str, int] = frame.collect()[0].asDict()
    return found


def _types(frame: DataFrame) -> list[str]:
    return [field.dataType.simpleString() for field in frame.schema]
