"""Several stores from one bus: each has what concerns its catalogs, whatever is away, killed or replayed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from uuid import UUID

import pytest
from sqlalchemy import delete

from headwater.consumers.sources import BusRecord, SourceBatch
from headwater.consumers.writer.offsets import smallest_offsets
from headwater.consumers.writer.store_pipeline import StorePipeline
from headwater.errors import TransientError
from headwater.events import (
    Closed,
    Committed,
    CreateDatabase,
    DatasetId,
    Event,
    Heartbeat,
    Input,
    JobLineage,
    JobName,
    JobStarted,
    Output,
    TableName,
)
from headwater.events.avro import Codec
from headwater.events.jobs import JobType, SinkSchema
from headwater.lineage.bulk import BusPartition, DeadLetterReason, MergeResult, WriteBatch, bump_epoch
from headwater.lineage.mapping import map_event
from headwater.lineage.mapping.events import map_arrival
from headwater.lineage.rows import RowSet
from headwater.lineage.rows import tables as t
from headwater.lineage.sql import store_digest
from headwater.lineage.sql.tables import table_of
from headwater.lineage.store import Store, open_store
from headwater.testing.examples import EXAMPLES

WHERE = BusPartition("cluster", "topic", 0)
PRODUCER = UUID(int=7)


def table(catalog: str | None, name: str) -> tuple[DatasetId, TableName | None]:
    return DatasetId(namespace="s3://x", name=name), TableName(
        catalog=catalog, database="d", table=name
    ) if catalog else None


def commit(source: str | None, target: str | None) -> Event:
    read, written = table(source, f"in-{source}"), table(target, f"out-{target}")
    return Committed(
        job=JobName(name="etl"),
        barrier=1,
        inputs=(Input(dataset=read[0], table=read[1], snapshot=1),),
        outputs=(Output(dataset=written[0], table=written[1], snapshot=2),),
    )


def stamped(event: Event, number: int) -> Event:
    envelope = {"producer": PRODUCER, "sequence": number, "family_sequence": number}
    if isinstance(event, Committed):
        envelope["barrier"] = number
    return event.model_copy(update=envelope)


EXAMPLE = next(each for each in EXAMPLES if isinstance(each, CreateDatabase))
DATABASE = EXAMPLE.model_copy(update={"context": EXAMPLE.context.model_copy(update={"name": "sea"})})
SINK = SinkSchema(dataset=None, table=TableName(catalog="lake", database="d", table="x"))
PLACED: list[tuple[Event, str]] = [
    (commit("lake", "lake"), "L"),
    (commit("sea", "lake"), "SL"),
    (commit("sea", "sea"), "S"),
    (commit("pond", "pond"), "M"),
    (commit("pond", "lake"), "ML"),
    (commit(None, "sea"), "MS"),
    (commit(None, None), "M"),
    (JobStarted(job=JobName(name="etl"), run=UUID(int=1), job_type=JobType.BATCH), "MLS"),
    (JobLineage(job=JobName(name="etl"), fingerprint=b"f" * 16, outputs=(SINK,)), "L"),
    (DATABASE, "S"),
    (Heartbeat(interval=60), "MLS"),
    (Closed(complete=True), "MLS"),
]
"""What goes where: M is the main store, L that of the catalog `lake`, S that of `sea`."""
EVENTS = [stamped(event, number) for number, (event, _) in enumerate(PLACED, 1)]
RECORDS = [BusRecord(Codec().encode(event), WHERE, number, 7) for number, event in enumerate(EVENTS)]


def expected(letter: str) -> str:
    state = RowSet()
    for event, (_, places) in zip(EVENTS, PLACED, strict=True):
        state.merge(map_event(event, 7) if letter in places else map_arrival(event, 7))
    return state.digest()


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[dict[str, Store]]:
    opened = {name: open_store(f"sqlite:///{tmp_path}/{name or 'main'}.db") for name in ("", "lake", "sea")}
    yield opened
    for each in opened.values():
        each.close()


def digests(stores: dict[str, Store]) -> dict[str, str]:
    found = {}
    for name, store in stores.items():
        with store.engine.connect() as connection:
            found[name] = store_digest(connection)
    return found


def pipeline(stores: dict[str, Store]) -> StorePipeline:
    bulk = {name: store.bulk for name, store in stores.items()}
    return StorePipeline(bulk, "g", "kafka", "events")


def batch(records: Sequence[BusRecord]) -> SourceBatch:
    return SourceBatch(tuple(records), {WHERE: records[-1].offset + 1})


EXPECTED = {"": expected("M"), "lake": expected("L"), "sea": expected("S")}


@pytest.mark.slow
@pytest.mark.parametrize("most", [1, 5, 100])
def test_each_store_has_what_concerns_its_catalogs(stores: dict[str, Store], most: int) -> None:
    writing = pipeline(stores)
    for first in range(0, len(RECORDS), most):
        writing.store(writing.prepare(batch(RECORDS[first : first + most])))
    assert digests(stores) == EXPECTED
    assert {name: store.bulk.offsets("g") for name, store in stores.items()} == {name: {WHERE: 12} for name in stores}
    again = pipeline(stores)
    again.store(again.prepare(batch(RECORDS)))
    assert digests(stores) == EXPECTED, "a replay changes nothing"


@pytest.mark.slow
def test_each_store_is_not_reported_again_what_it_has(stores: dict[str, Store]) -> None:
    writing = pipeline(stores)
    writing.store(writing.prepare(batch(RECORDS)))
    again = writing.prepare(batch(RECORDS))
    left_out = {name: {row.id for row in part.read.left_out} for name, part in again.parts.items()}
    lasting = {name: {row.id for row in part.read.rows if row.kind.is_immutable} for name, part in again.parts.items()}
    assert all(left_out.values())
    assert lasting == {"": set(), "lake": set(), "sea": set()}
    assert left_out["lake"] - left_out["sea"], "what the one has, and the other needn't"
    assert writing.store(again).left_out > 0
    assert digests(stores) == EXPECTED


@pytest.mark.slow
def test_what_went_from_one_store_is_told_to_it_again(stores: dict[str, Store]) -> None:
    writing = pipeline(stores)
    writing.store(writing.prepare(batch(RECORDS)))
    prepared = writing.prepare(batch(RECORDS))
    with stores["sea"].engine.begin() as connection:
        bump_epoch(connection)
        connection.execute(delete(table_of(t.DATASET)))
    writing.store(prepared)
    assert digests(stores) == EXPECTED
    later = writing.prepare(batch(RECORDS))
    assert all(part.read.left_out for part in later.parts.values()), "what came again is known again"


@pytest.mark.slow
def test_a_store_that_was_away_when_its_writer_was_killed_gets_what_it_missed(
    stores: dict[str, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    writing = pipeline(stores)
    writing.store(writing.prepare(batch(RECORDS[:3])))
    prepared = writing.prepare(batch(RECORDS[3:8]))

    def away(work: WriteBatch) -> MergeResult:
        raise TransientError("nobody answers")

    with monkeypatch.context() as patch:
        patch.setattr(stores["sea"].bulk, "merge", away)
        with pytest.raises(TransientError):
            writing.store(prepared)
    known = smallest_offsets(store.bulk.offsets("g") for store in stores.values())
    assert known == {WHERE: 3}
    assert stores[""].bulk.offsets("g") == {WHERE: 8}
    again = pipeline(stores)
    again.store(again.prepare(batch(RECORDS[known[WHERE] :])))
    assert digests(stores) == EXPECTED


@pytest.mark.slow
def test_who_has_his_part_is_not_asked_again(stores: dict[str, Store], monkeypatch: pytest.MonkeyPatch) -> None:
    writing = pipeline(stores)
    prepared = writing.prepare(batch(RECORDS))
    troubles = [TransientError("nobody answers")]
    merged: list[str] = []
    for name, store in stores.items():

        def merge(work: WriteBatch, name: str = name, really: object = store.bulk.merge) -> MergeResult:
            if name == "sea" and troubles:
                raise troubles.pop()
            merged.append(name)
            return really(work)  # type: ignore[operator, no-any-return]

        monkeypatch.setattr(store.bulk, "merge", merge)
    with pytest.raises(TransientError):
        writing.store(prepared)
    writing.store(prepared)
    assert sorted(merged) == ["", "lake", "sea"]
    assert digests(stores) == EXPECTED


@pytest.mark.slow
def test_what_is_no_event_is_a_dead_letter_of_the_main_store(stores: dict[str, Store]) -> None:
    writing = pipeline(stores)
    writing.store(writing.prepare(batch([*RECORDS, BusRecord(b"no event", WHERE, 12, 7)])))
    assert [letter.reason for _, letter in stores[""].bulk.dead_letters()] == [DeadLetterReason.UNDECODABLE]
    assert not list(stores["lake"].bulk.dead_letters())
    assert digests(stores) == EXPECTED


def test_a_store_that_is_new_begins_at_the_beginning() -> None:
    other = BusPartition("cluster", "topic", 1)
    assert smallest_offsets([{WHERE: 5, other: 4}, {WHERE: 3}]) == {WHERE: 3}
    assert smallest_offsets([{WHERE: 5}]) == {WHERE: 5}


@pytest.mark.slow
def test_what_a_store_refuses_is_its_own_dead_letter(stores: dict[str, Store]) -> None:
    """And what came elsewhere is known there all the same."""
    writing = pipeline(stores)
    prepared = writing.prepare(batch(RECORDS))
    with stores["lake"].engine.begin() as connection:
        connection.exec_driver_sql(
            "CREATE TRIGGER no_shapes BEFORE INSERT ON job_lineage BEGIN SELECT RAISE(ABORT, 'constraint failed'); END"
        )
    writing.store(prepared)
    assert [letter.kind for _, letter in stores["lake"].bulk.dead_letters()] == ["JobLineage"]
    with stores["lake"].engine.connect() as connection:
        bits = connection.exec_driver_sql(f"SELECT bits FROM {t.ARRIVAL.name}").scalars().all()
    missed = sum(1 for _, places in PLACED if "L" not in places)
    assert sum(each.bit_count() for each in bits) >= missed
