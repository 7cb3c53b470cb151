"""What a correction changes: each mirror compared with its table, as a validation compares a result."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from headwater.errors import ConfigurationError
from headwater.versions.correction.execution.redirects import open_mirrors
from headwater.versions.correction.execution.tables import Mirror
from headwater.versions.correction.journal import Correction
from headwater.versions.validation.comparison import compare
from headwater.versions.validation.model import ResultComparison
from headwater.versions.validation.results import full_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def mirrors_to_compare(correction: Correction, table: str | None = None) -> list[Mirror]:
    """Return the mirrors in the plan's order, or that of one table alone."""
    mirrors = open_mirrors(correction)
    if table is not None and table not in mirrors:
        raise ConfigurationError(f"{correction.name} has no mirror of {table}: it has those of {', '.join(mirrors)}")
    return [mirrors[each.table] for each in correction.plan.corrected if table in {None, each.table}]


def compare_mirrors(
    spark: SparkSession,
    mirrors: Sequence[Mirror],
    *,
    key: Sequence[str] = (),
    ignored: Collection[str] = (),
    samples: int = 10,
) -> dict[str, ResultComparison]:
    """Return how mirrors differ from their tables. The table takes the place of what was recorded, the mirror that of
    the result."""
    found = {}
    for mirror in mirrors:
        table, rows = spark.table(full_name(mirror.table)), spark.table(mirror.name)
        found[mirror.table] = compare(table, rows, key=key, ignored=ignored, samples=samples)
    return found
