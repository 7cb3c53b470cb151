"""What the driver itself writes into a lake: offsets, up to when all is stored, gaps, deletions.

Iceberg commits one table at a time, so there is no transaction over all of it. Offsets are written last. What was
written before a crash is written again, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any
from uuid import UUID

from headwater.consumers.spark.pipeline.lake.tables import LakeTables, tuples_of
from headwater.errors import ConfigurationError
from headwater.lineage.bulk import (
    EMPTY_BATCH,
    BusPartition,
    DeadLetter,
    DeadLetterState,
    EventRows,
    MergeResult,
    WriteBatch,
    WriterInstant,
    pack_rows,
)
from headwater.lineage.bulk.dead_letters import letter_row
from headwater.lineage.bulk.positions import ingest_row, offset_row
from headwater.lineage.sql.writer_tables import DEAD_LETTERS, INGESTS, OFFSETS


class LakeBulkMeta:
    """`BulkLineageMeta` over a lake, as far as a pipeline uses it.

    It has no instants, because the snapshots of the tables are the timeline; no marks, because a commit of Iceberg's
    isn't lost; and no epoch, because no rows are left out of what is merged.
    """

    def __init__(self, tables: LakeTables) -> None:
        self.tables = tables

    def merge(self, work: WriteBatch) -> MergeResult:
        packed = pack_rows(work.rows)
        for each in packed:
            self._merge(each.name, each.rows)
        for name, own in (
            (DEAD_LETTERS.name, map(letter_row, work.dead_letters)),
            (INGESTS.name, map(ingest_row, work.ingests)),
            (OFFSETS.name, map(offset_row, work.offsets)),
        ):
            self._merge(name, tuples_of(name, {row["id"]: row for row in own}.values()))
        return MergeResult(sum(len(each.rows) for each in packed))

    def merge_events(self, events: Sequence[EventRows], work: WriteBatch = EMPTY_BATCH) -> MergeResult:
        return self.merge(replace(work, rows=(*work.rows, *chain.from_iterable(each.rows for each in events))))

    def offsets(self, group: str, cluster: str | None = None) -> Mapping[BusPartition, int]:
        return {
            BusPartition(row.cluster, row.topic, row.partition_number): row.next_offset
            for row in self.tables.rows(OFFSETS.name)
            if row.consumer_group == group and cluster in {None, row.cluster}
        }

    def instants(self, writer: UUID) -> Iterator[WriterInstant]:  # noqa: ARG002 - as the interface has it
        return iter(())

    def unfinished_instants(self) -> Iterator[WriterInstant]:
        return iter(())

    def dead_letters(
        self, state: DeadLetterState | None = DeadLetterState.WAITING
    ) -> Generator[tuple[str, DeadLetter], None, None]:
        raise _refusal("lists its dead letters by SQL alone, SELECT * FROM dead_letters", state)

    def dead_letter(self, name: str) -> DeadLetter | None:
        raise _refusal("shows a dead letter by SQL alone, SELECT * FROM dead_letters", name)

    def mark_dead_letters(self, names: Iterable[str], state: DeadLetterState, error: str | None = None) -> None:
        raise _refusal("doesn't retry dead letters", (names, state, error))

    def remove_dead_letters(self, names: Iterable[str]) -> None:
        raise _refusal("doesn't retry dead letters", names)

    def epoch(self) -> int:
        return 0

    def close(self) -> None:
        """Do nothing: the session belongs to the caller."""

    def _merge(self, name: str, values: Sequence[Sequence[Any]]) -> None:
        if values:
            self.tables.merge(name, self.tables.frame_of(name, values))


def _refusal(words: str, _: object) -> ConfigurationError:
    return ConfigurationError(f"a lake store {words}: it has no commands for that yet")
