"""Merges the events of a part into the live store: what is missing there of a job, a dataset or a time comes back.

Merging what is there already changes nothing, so no fresh tables are needed, and the writer may run. For the same
reason a repair only adds. Rows that no event reports, and values that are too great or too new, stay: only a whole
replay removes those.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headwater.consumers.replay.filling import Filler
from headwater.consumers.replay.ranges import Positions, RangeSource
from headwater.consumers.replay.selection import EventSelection
from headwater.consumers.sources import SourceBatch
from headwater.consumers.writer.plain_pipeline import BatchResult, PlainPipeline, PreparedBatch
from headwater.events.avro import Codec
from headwater.events.clock import moment_of


class RepairPipeline:
    """A writer's pipeline that stores selected events, and moves neither offsets nor the time up to which all is
    stored."""

    def __init__(self, pipeline: PlainPipeline, selection: EventSelection) -> None:
        self._pipeline = pipeline
        self._selection = selection
        self._codec = Codec()
        self.selected = 0

    def prepare(self, batch: SourceBatch) -> PreparedBatch:
        records = self._selection.select(batch.records, self._codec)
        self.selected += len(records)
        prepared = self._pipeline.prepare(SourceBatch(records))
        without_ingests = replace(prepared.work, ingests=(), offsets=())
        return replace(prepared, work=without_ingests, batch=replace(batch, records=records))

    def store(self, prepared: PreparedBatch) -> BatchResult:
        return replace(self._pipeline.store(prepared), events=len(prepared.batch.records))

    def start_over(self) -> None:
        self._pipeline.start_over()


def repair(filler: Filler, sources: Sequence[RangeSource], selection: EventSelection) -> int:
    """Merge the selected events of what the store's writer has read already, and return how many there were. `filler`
    is one of the live store."""
    count = 0
    for source in sources:
        start, end = _bounds(source, filler.positions(), selection)
        source.read(start, end)
        if not source.lag():
            continue
        pipeline = RepairPipeline(filler.plain_pipeline(source), selection)
        filler.run(source, pipeline, f"reading {source.address}")
        count += pipeline.selected
    return count


def _bounds(source: RangeSource, known: Positions, selection: EventSelection) -> tuple[Positions, Positions]:
    """Return from where to where a source is read: up to the writer's offsets, after which it reads by itself."""
    ranges = source.ranges()
    at = None if selection.since is None else source.offsets_at(moment_of(selection.since))
    start = {where: max(each.first, (at or {}).get(where, 0)) for where, each in ranges.items()}
    end = {where: min(each.end, known.get(where, 0)) for where, each in ranges.items()}
    return start, {where: max(start[where], at_end) for where, at_end in end.items()}
