"""The user's statements on a mirror that a stream reads: it gets rows, and none of it are changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from headwater.errors import ConfigurationError
from headwater.versions.correction.execution.spark_tables import SparkCorrectionTables
from headwater.versions.correction.execution.streams import is_cut
from headwater.versions.correction.journal import Correction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WRONG_ROWS: Final = "wrong_rows"
"""The view of the rows that the wrong snapshot added."""
_CHANGES: Final = frozenset(
    {
        *("UpdateTable", "DeleteFromTable", "MergeIntoTable", "TruncateTable", "TruncatePartition"),
        *("ReplaceTable", "ReplaceTableAsSelect", "DropTable"),
    }
)


def prepare_statement(spark: SparkSession, correction: Correction, statement: str) -> None:
    """Refuse what a stream can't follow, and have the wrong rows as a view, if the statement names it."""
    if not is_cut(correction):
        return
    inside: Any = spark
    plan = inside._jsparkSession.sessionState().sqlParser().parsePlan(statement)  # noqa: SLF001
    source, snapshot = correction.plan.source, correction.plan.snapshot
    if any(_changes_rows(node) for node in _nodes(plan)):
        example = f"INSERT INTO {source} SELECT … FROM {WRONG_ROWS}"  # noqa: S608 - for the eye
        raise ConfigurationError(
            f"a stream reads {source}, and would end at a change of its rows. Its mirror has what {source} had before "
            f"the snapshot {snapshot}, and what came after it: add the corrected rows in place of the wrong ones, as "
            f"`{example}`. {WRONG_ROWS} has the rows that {snapshot} added"
        )
    if WRONG_ROWS in statement:
        before = next(table.last_right for table in correction.plan.tables if table.is_source)
        assert before is not None  # noqa: S101 - else there is no place at which the mirror could be cut
        rows = SparkCorrectionTables(spark).added_rows(source, before, snapshot)
        rows.localCheckpoint().createOrReplaceTempView(WRONG_ROWS)  # a lens refuses what would be read anew


def _nodes(plan: Any) -> Iterator[Any]:
    """Yield a statement, and what stands behind its WITH."""
    while plan is not None:
        yield plan
        plan = plan.child() if str(plan.getClass().getSimpleName()) == "UnresolvedWith" else None


def _changes_rows(plan: Any) -> bool:
    kind = str(plan.getClass().getSimpleName())
    return kind in _CHANGES or (kind == "InsertIntoStatement" and bool(plan.overwrite()))
