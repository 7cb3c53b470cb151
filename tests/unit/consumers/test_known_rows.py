"""What a writer knows to be in its store isn't written again, and is written again as soon as it may be gone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from sqlalchemy import delete

from headwater.consumers.sources import BusRecord, SourceBatch
from headwater.consumers.writer.known_rows import KnownRows
from headwater.consumers.writer.record_reader import ReadResult, RecordReader
from headwater.consumers.writer.store_pipeline import StorePipeline
from headwater.events import JobLineage
from headwater.events.avro import Codec
from headwater.lineage.bulk import BusPartition, EpochChanged, WriteBatch, bump_epoch
from headwater.lineage.mapping import map_event
from headwater.lineage.rows import Row, RowSet
from headwater.lineage.rows import tables as t
from headwater.lineage.sql import store_digest
from headwater.lineage.sql.tables import table_of
from headwater.lineage.store import Store, open_store
from headwater.testing.examples import EXAMPLES

WHERE = BusPartition("cluster", "topic", 0)
SHAPE = next(each for each in EXAMPLES if isinstance(each, JobLineage) and each.columns)
LASTING = [row for row in map_event(SHAPE) if row.kind.is_immutable]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(f"sqlite:///{tmp_path}/store.db") as store:
        yield store


def batch(sequence: int) -> SourceBatch:
    event = SHAPE.model_copy(update={"sequence": sequence, "family_sequence": sequence})
    return SourceBatch((BusRecord(Codec().encode(event), WHERE, sequence, None),), {WHERE: sequence + 1})


def digest(store: Store) -> str:
    with store.engine.connect() as connection:
        return store_digest(connection)


def reported(*sequences: int) -> str:
    state = RowSet()
    for each in sequences:
        state.merge(map_event(SHAPE.model_copy(update={"sequence": each, "family_sequence": each})))
    return state.digest()


def gone(store: Store, *, is_counted: bool) -> None:
    """As by another process."""
    with store.engine.begin() as connection:
        if is_counted:
            bump_epoch(connection)
        for kind in (t.DATASET, t.JOB_LINEAGE_COLUMN, t.JOB_LINEAGE_TABLE):
            connection.execute(delete(table_of(kind)))


def test_what_is_there_is_left_out(store: Store) -> None:
    pipeline = StorePipeline({"": store.bulk}, "g", "kafka", "t")
    pipeline.store(pipeline.prepare(batch(1)))
    again = pipeline.prepare(batch(2))
    assert {row.id for row in again.parts[""].read.left_out} == {row.id for row in LASTING}
    assert not [row for row in again.parts[""].read.rows if row.kind.is_immutable]
    pipeline.store(again)
    assert digest(store) == reported(1, 2)


def test_what_was_deleted_by_somebody_else_is_reported_again(store: Store) -> None:
    pipeline = StorePipeline({"": store.bulk}, "g", "kafka", "t")
    pipeline.store(pipeline.prepare(batch(1)))
    prepared = [pipeline.prepare(batch(2)), pipeline.prepare(batch(3))]  # before it is gone
    gone(store, is_counted=True)
    for each in prepared:
        pipeline.store(each)
    assert digest(store) == reported(1, 2, 3)
    later = pipeline.prepare(batch(4))
    assert later.parts[""].read.left_out, "what came again is known again"
    pipeline.store(later)
    assert digest(store) == reported(1, 2, 3, 4)


def test_without_being_counted_a_deletion_is_not_seen(store: Store) -> None:
    """What the others stand on."""
    pipeline = StorePipeline({"": store.bulk}, "g", "kafka", "t")
    pipeline.store(pipeline.prepare(batch(1)))
    gone(store, is_counted=False)
    pipeline.store(pipeline.prepare(batch(2)))
    assert digest(store) != reported(1, 2)


def test_nothing_is_written_at_another_epoch(store: Store) -> None:
    before = digest(store)
    with pytest.raises(EpochChanged) as raised:
        store.bulk.merge(WriteBatch(LASTING, epoch=7))
    assert raised.value.epoch == 0
    assert digest(store) == before
    store.bulk.merge(WriteBatch(LASTING, epoch=0))
    assert digest(store) != before


def test_what_came_to_be_known_while_it_was_read_is_reported(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """One batch is prepared while the one before it, the first of all, is stored: nobody has asked for the epoch yet at
    which that is known."""
    pipeline = StorePipeline({"": store.bulk}, "g", "kafka", "t")
    first, really = pipeline.prepare(batch(1)), RecordReader.read

    def read(self: RecordReader, records: Sequence[BusRecord]) -> ReadResult:
        pipeline.store(first)
        return really(self, records)

    monkeypatch.setattr(RecordReader, "read", read)
    second = pipeline.prepare(batch(2))
    assert second.parts[""].read.left_out
    gone(store, is_counted=True)
    pipeline.store(second)
    assert digest(store) == reported(1, 2)


def test_what_wasnt_stored_isnt_known(store: Store) -> None:
    pipeline = StorePipeline({"": store.bulk}, "g", "kafka", "t")
    pipeline.store(pipeline.prepare(SourceBatch()))
    pipeline.prepare(batch(1))
    assert not pipeline.prepare(batch(1)).parts[""].read.left_out


def test_the_longest_unasked_are_forgotten_first() -> None:
    index = KnownRows(most=2)
    index.set_epoch(0)
    rows = [row for row in LASTING if row.kind == t.JOB_LINEAGE_COLUMN]
    one, two, three = (replace_id(row, number) for number, row in zip((b"1", b"2", b"3"), rows * 3, strict=False))
    index.add([one.id, two.id], 0)
    assert one.id in index
    index.add([three.id], 0)
    assert [each.id in index for each in (one, two, three)] == [True, False, True]
    assert len(index) == 2
    index.add([two.id], 1)
    assert two.id not in index, "that was another epoch"
    index.set_epoch(1)
    assert len(index) == 0


def replace_id(row: Row, number: bytes) -> Row:
    return Row(row.kind, (number, *row.values[1:]))
