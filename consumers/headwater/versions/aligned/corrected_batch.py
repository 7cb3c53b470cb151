"""A barrier that a job plays again after its sources were corrected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from headwater.versions.aligned.batch import AlignedBatch, OverwritePolicy, SinkWriter
from headwater.versions.aligned.formats import TableLooker
from headwater.versions.aligned.formats.protocol import CommitEffect, SourceCommit
from headwater.versions.cuts import Cut

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class CorrectedBatch(AlignedBatch):
    """A batch whose sources may be mirrors, where the barrier before read the tables themselves.

    Then no line of commits leads from the one to the other. The changes are the rows that the mirror has and the table
    didn't have, and rows that it lost are a change of rows, as an overwrite is.
    """

    def __init__(
        self,
        spark: SparkSession,
        looker: TableLooker,
        *,
        number: int,
        cut: Cut,
        before: Cut | None,
        tables: Mapping[str, str],
        overwrites: Mapping[str, OverwritePolicy],
        sinks: SinkWriter,
        originals: Mapping[str, str],
    ) -> None:
        """`originals` has the table of each mirror, by which the barrier before may have read it."""
        super().__init__(
            spark,
            looker,
            number=number,
            cut=cut,
            before=before,
            tables=tables,
            overwrites=overwrites,
            sinks=sinks,
        )
        self._originals: Final = originals

    def changes(self, source: str) -> DataFrame:
        former = self._former(source)
        if former is None or self.is_full(source):
            return super().changes(source)
        return self._pin(self.state(source).exceptAll(former))

    def history(self, source: str) -> DataFrame:
        former = None if self._before is None or self.is_full(source) else self._former(source)
        return super().history(source) if former is None else self._pin(former)

    def _load_commits(self, table: str) -> list[SourceCommit] | None:
        former = self._former_of(table)
        if former is None:
            return super()._load_commits(table)
        now = self._looker.source(table).state(self.cut[table])
        effect = CommitEffect.ADDS if former.exceptAll(now).isEmpty() else CommitEffect.CHANGES
        return [SourceCommit(self.cut[table].snapshot, effect, "correction")]

    def _former(self, source: str) -> DataFrame | None:
        return self._former_of(self._table(source))

    def _former_of(self, table: str) -> DataFrame | None:
        """Return the rows that the barrier before read, with the columns of now, if it read another table than this
        one; else None."""
        if self._before is None or table in self._before.snapshots:
            return None
        name = self._originals[table]
        rows = self._looker.source(name).state(self._before[name])
        return with_columns(rows, self._looker.source(table).state(self.cut[table]))


def with_columns(rows: DataFrame, of: DataFrame) -> DataFrame:
    """Return rows with the columns of others: empty ones where they hadn't them yet."""
    from pyspark.sql.functions import col, lit  # noqa: PLC0415 - an extra

    known: Sequence[str] = rows.columns
    parts = [
        (col(f"`{field.name}`") if field.name in known else lit(None)).cast(field.dataType).alias(field.name)
        for field in of.schema.fields
    ]
    return rows.select(*parts)
