"""A store that has the methods of Paimon PIP-5 and nothing else is a sink of the writer's: what can be said by these
methods it answers as the store in a database does, which keeps everything."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import pytest

from headwater.cli.app import main
from headwater.consumers.sources import BusRecord, SourceBatch
from headwater.consumers.writer.lineage_meta_pipeline import LineageMetaPipeline
from headwater.consumers.writer.store_pipeline import StorePipeline
from headwater.errors import TransientError
from headwater.events import Committed, DatasetId, Event, Input, JobLineage, JobName, LineageDeleted, Output, TableName
from headwater.events.administration import LineageScope
from headwater.events.avro import Codec
from headwater.events.clock import micros_of, moment_of
from headwater.events.jobs import CommitKind, JobStatus, JobStatusChanged, LineageRetention, SinkSchema
from headwater.events.keys import headers_of, key_of
from headwater.journal import DeadLetterLog, JournalRecord, LocalLog
from headwater.lineage.api import DataLineage, LineageMeta, TableLineage
from headwater.lineage.bulk import BulkLineageMeta, BusPartition
from headwater.lineage.meta import DatabaseLineageMeta
from headwater.lineage.predicates import Predicate
from headwater.lineage.store import open_store
from headwater.testing.examples import EXAMPLES
from tests.kit.lineage.scripted_producer import ScriptedProducer, place
from tests.kit.seeds import rounds

WHERE = BusPartition("cluster", "topic", 0)
NO_LETTERS = DeadLetterLog(Path("/proc/nowhere"))
E = TypeVar("E", bound=TableLineage)


class Pip5Store:
    """These methods, in dictionaries."""

    def __init__(self) -> None:
        self._source_tables: dict[tuple[object, ...], TableLineage] = {}
        self._sink_tables: dict[tuple[object, ...], TableLineage] = {}
        self._source_data: dict[tuple[object, ...], DataLineage] = {}
        self._sink_data: dict[tuple[object, ...], DataLineage] = {}
        self.troubles: list[Exception] = []
        self.count = 0

    def store_source_table_lineage(self, entity: TableLineage) -> None:
        self._called()
        self._source_tables.setdefault(_table_key(entity), entity)

    def delete_source_table_lineage(self, job: str) -> None:
        self._called()
        self._source_tables = {key: one for key, one in self._source_tables.items() if one.job != job}

    def source_table_lineages(self, predicate: Predicate | None = None) -> Iterator[TableLineage]:
        return _chosen(self._source_tables.values(), predicate)

    def store_sink_table_lineage(self, entity: TableLineage) -> None:
        self._called()
        self._sink_tables.setdefault(_table_key(entity), entity)

    def delete_sink_table_lineage(self, job: str) -> None:
        self._called()
        self._sink_tables = {key: one for key, one in self._sink_tables.items() if one.job != job}

    def sink_table_lineages(self, predicate: Predicate | None = None) -> Iterator[TableLineage]:
        return _chosen(self._sink_tables.values(), predicate)

    def store_source_data_lineage(self, entity: DataLineage) -> None:
        self._called()
        self._source_data[_data_key(entity)] = entity

    def source_data_lineages(self, predicate: Predicate | None = None) -> Iterator[DataLineage]:
        return _chosen(self._source_data.values(), predicate)

    def store_sink_data_lineage(self, entity: DataLineage) -> None:
        self._called()
        self._sink_data[_data_key(entity)] = entity

    def sink_data_lineages(self, predicate: Predicate | None = None) -> Iterator[DataLineage]:
        return _chosen(self._sink_data.values(), predicate)

    def close(self) -> None: ...

    def _called(self) -> None:
        self.count += 1
        if self.troubles:
            raise self.troubles.pop()


def _table_key(entity: TableLineage) -> tuple[object, ...]:
    return (entity.job, entity.catalog, entity.database, entity.table)


def _data_key(entity: DataLineage) -> tuple[object, ...]:
    return (*_table_key(entity), entity.barrier_id)


def _chosen(entities: object, predicate: Predicate | None) -> Iterator[E]:
    return (each for each in list(entities) if predicate is None or predicate.holds(each))  # type: ignore[call-overload]


def answers(store: LineageMeta) -> list[list[Any]]:
    """Without times: those that a store keeps of what was deleted and reported again are its own."""
    tables = (store.source_table_lineages(), store.sink_table_lineages())
    data = (store.source_data_lineages(), store.sink_data_lineages())
    return [
        *[sorted((each.job, each.catalog, each.database, each.table) for each in some) for some in tables],
        *[sorted((*_table_key(each), each.barrier_id, each.snapshot_id) for each in some) for some in data],
    ]


def named(name: str) -> TableName:
    return TableName(catalog=f"lake{len(name) % 2}", database="sales", table=name)


def events(count: int, seed: int) -> list[Event]:
    """Commits of several jobs in one partition, now and then a shape, and a deletion of a job's table lineage."""
    chance, began = random.Random(seed), micros_of(EXAMPLES[0].time)
    found: list[Event] = []
    for number in range(1, count + 1):
        emitted = {
            "producer": UUID(int=9),
            "sequence": number,
            "family_sequence": number,
            "time": moment_of(began + number * 1_000),
        }
        job = JobName(name=f"job-{chance.randrange(4)}", namespace=chance.choice([None, "prod"]))
        found.append(event(chance, number, job, emitted["time"]).model_copy(update=emitted))
    return found


def event(chance: random.Random, number: int, job: JobName, time: Any) -> Event:
    which = chance.randrange(12)
    if which == 0:
        scope = chance.choice([LineageScope.SOURCE_TABLES, LineageScope.SINK_TABLES, LineageScope.TABLES])
        return LineageDeleted(of_job=job, scope=scope, before=time)
    if which == 1:
        sink = SinkSchema(dataset=None, table=named(f"shape-{chance.randrange(3)}"))
        return JobLineage(job=job, fingerprint=bytes([which]) * 16, outputs=(sink,))
    dataset = DatasetId(namespace="s3://lake", name="x")
    source = Input(
        dataset=dataset,
        table=chance.choice([None, named("orders"), named("products")]),
        snapshot=chance.choice([None, number]),
        main=chance.random() < 0.8,
    )
    data = Output(dataset=dataset, table=named(f"t-{chance.randrange(3)}"), snapshot=2 * number)
    compacted = data.model_copy(update={"snapshot": 2 * number + 1, "commit_kind": CommitKind.COMPACT})
    outputs = (data, compacted) if chance.random() < 0.3 else (data,)
    return Committed(job=job, barrier=number, inputs=(source,), outputs=outputs)


def batches(emitted: list[Event], most: int = 7) -> list[SourceBatch]:
    records = [BusRecord(Codec().encode(each), WHERE, number, None) for number, each in enumerate(emitted)]
    cut = (tuple(records[first : first + most]) for first in range(0, len(records), most))
    return [SourceBatch(some, {WHERE: some[-1].offset + 1}) for some in cut]


@pytest.mark.slow
@pytest.mark.parametrize("number", range(3))
def test_it_answers_as_a_store_that_keeps_everything(tmp_path: Path, number: int) -> None:
    emitted, mine = events(150, rounds(3, fixed=(0,))[number]), Pip5Store()
    assert isinstance(mine, LineageMeta)
    assert not isinstance(mine, BulkLineageMeta)
    calling = LineageMetaPipeline(mine, "kafka", "events", NO_LETTERS)
    with open_store(f"sqlite:///{tmp_path}/store.db") as store:
        plain = StorePipeline({"": store.bulk}, "g", "kafka", "events")
        for batch in batches(emitted):
            calling.store(calling.prepare(batch))
            plain.store(plain.prepare(batch))
        assert answers(mine) == answers(DatabaseLineageMeta(store.engine))
    assert all(answers(mine))


def test_what_is_said_again_changes_nothing() -> None:
    """From wherever a writer was killed."""
    emitted, mine = events(100, 1), Pip5Store()
    calling = LineageMetaPipeline(mine, "kafka", "events", NO_LETTERS)
    for batch in batches(emitted):
        calling.store(calling.prepare(batch))
    before = answers(mine)
    for batch in batches(emitted)[-4:]:
        calling.store(calling.prepare(batch))
    assert answers(mine) == before


def test_a_call_that_fails_is_made_again_and_those_before_it_are_not() -> None:
    mine = Pip5Store()
    calling = LineageMetaPipeline(mine, "kafka", "events", NO_LETTERS)
    prepared = calling.prepare(batches(events(20, 2), 20)[0])
    mine.troubles = [OSError("its disk is full")]
    with pytest.raises(TransientError, match="OSError: its disk is full"):
        calling.store(prepared)
    calling.store(prepared)
    assert mine.count == len(prepared.calls) + 1, "none of these events deletes the lineage of steps"


def test_all_kinds_of_events_are_taken(caplog: pytest.LogCaptureFixture) -> None:
    calling = LineageMetaPipeline(Pip5Store(), "kafka", "events", NO_LETTERS)
    assert "aren't kept there" in caplog.text
    for batch in batches(list(EXAMPLES)):
        assert calling.store(calling.prepare(batch)).dead_letters == ()


BAD = SourceBatch((BusRecord(b"no event", WHERE, 5, None, b"key", (("made-by", b"a hand"),)),), {WHERE: 6})


def test_a_dead_letter_is_on_the_disk_before_anything_is_done(tmp_path: Path) -> None:
    """As it was, with why; the offset, which the bus keeps, is committed after that."""
    calling = LineageMetaPipeline(Pip5Store(), "kafka", "events", DeadLetterLog(tmp_path / "a" / "b"))
    written = calling.store(calling.prepare(BAD))
    (letter,) = records_in(tmp_path / "a" / "b")
    assert (letter.value, letter.key, letter.headers[0]) == (b"no event", b"key", ("made-by", b"a hand"))
    name, why = letter.headers[1]
    assert (name, why.startswith(b"UNDECODABLE: ")) == ("refused", True)
    assert why.endswith(b"(events/0@5)")
    assert len(written.dead_letters) == 1


def test_dead_letters_that_no_disk_takes_hold_the_batch_back(tmp_path: Path) -> None:
    (tmp_path / "letters").write_text("in the way")
    calling = LineageMetaPipeline(Pip5Store(), "kafka", "events", DeadLetterLog(tmp_path / "letters"))
    prepared = calling.prepare(BAD)
    for _ in range(2):
        with pytest.raises(TransientError, match="letters"):
            calling.store(prepared)
    (tmp_path / "letters").unlink()
    calling.store(prepared)
    assert [each.value for each in records_in(tmp_path / "letters")] == [b"no event"]


def test_a_store_that_fails_has_each_letter_kept_once(tmp_path: Path) -> None:
    mine = Pip5Store()
    mine.troubles = [OSError("not now")] * 3
    calling = LineageMetaPipeline(mine, "kafka", "events", DeadLetterLog(tmp_path))
    whole = batches(events(5, 2), 5)[0]
    prepared = calling.prepare(SourceBatch((*BAD.records, *whole.records), whole.next))
    for _ in range(3):
        with pytest.raises(TransientError):
            calling.store(prepared)
    calling.store(prepared)
    assert len(records_in(tmp_path)) == 1


@pytest.mark.parametrize("headers", [(), (("h", b"x" * 70_000),)], ids=["key", "header"])
def test_a_record_that_no_log_takes_whole_holds_nobody_up(
    tmp_path: Path, headers: tuple[tuple[str, bytes], ...]
) -> None:
    """Kafka takes keys and headers of a megabyte, and a log 64 KiB."""
    calling = LineageMetaPipeline(Pip5Store(), "kafka", "events", DeadLetterLog(tmp_path))
    hostile = BusRecord(b"no event", WHERE, 5, None, b"" if headers else b"k" * 70_000, headers)
    calling.store(calling.prepare(SourceBatch((hostile,), {WHERE: 6})))
    (letter,) = records_in(tmp_path)
    assert (letter.value, letter.key) == (b"no event", None)
    assert b"kept are 8 of its 8 bytes, without key and headers" in letter.headers[0][1]


def records_in(directory: Path) -> list[JournalRecord]:
    log, found = LocalLog.open(directory), list[JournalRecord]()
    for partition in log.partitions():
        with log.reader(partition).tail(0) as tail:
            while batch := tail.read():
                found += batch.records
    return found


class DeletingStore(Pip5Store):
    """With the optional method, too."""

    def delete_data_lineage(self, job: str) -> None:
        self._source_data = {key: one for key, one in self._source_data.items() if one.job != job}
        self._sink_data = {key: one for key, one in self._sink_data.items() if one.job != job}


class Factory:
    """What a distribution brings as an entry point; the store is that of the test."""

    store: Pip5Store = Pip5Store()

    def identifier(self) -> str:
        return "of-tests"

    def create(self, context: object) -> LineageMeta:
        return Factory.store


class Shop:
    """An application with steps, beside one whose name only begins alike, on a local log."""

    def __init__(self, folder: Path, store: Pip5Store) -> None:
        Factory.store = store
        self._bus = f"log:{folder / 'log'}"
        self._log = LocalLog.open(folder / "log")
        self._producer = ScriptedProducer(1, "shop")
        for parent, sink in (("shop", "daily"), ("shop", "weekly"), ("shop.v2", "other")):
            self._commit(parent, sink)

    def _commit(self, parent: str, sink: str) -> None:
        step = {"job": JobName(name=f"{parent}.lake.sales.{sink}"), "parent_job": JobName(name=parent)}
        inputs = (Input(**place("orders"), snapshot=7),)
        outputs = (Output(**place(sink), snapshot=3),)
        self._producer.emit(0, Committed, barrier=1, inputs=inputs, outputs=outputs, **step)

    def end(self, on_job_end: LineageRetention) -> None:
        self._producer.emit(1, JobStatusChanged, status=JobStatus.FINISHED, on_job_end=on_job_end)

    def write(self) -> None:
        """Have a new writer read what came, as after a restart."""
        with self._log.writer() as journal:
            for each in self._producer.events:
                journal.append(Codec().encode(each), key=key_of(each), headers=headers_of(each, bytes(8)))
        self._producer.events.clear()
        flags = ["--lineage-meta", f"{__name__}:Factory", "--until-end"]
        assert main(["writer", "run", "--bus", self._bus, *flags]) == 0

    def delete(self, *flags: str) -> None:
        assert main(["lineage", "delete", "--bus", self._bus, "--job", "shop", *flags, "--yes"]) == 0
        self.write()


def jobs_of(store: LineageMeta) -> tuple[set[str], set[str]]:
    """The jobs with table lineage, and those with data lineage."""
    tables = {each.job for each in (*store.source_table_lineages(), *store.sink_table_lineages())}
    return tables, {each.job for each in (*store.source_data_lineages(), *store.sink_data_lineages())}


OTHER, STEPS = "shop.v2.lake.sales.other", {"shop.lake.sales.daily", "shop.lake.sales.weekly"}


def test_the_command_deletes_a_job_with_its_steps(tmp_path: Path) -> None:
    """The command asks for the steps of a job, always: made-up events without them hid that nothing was called."""
    store = DeletingStore()
    shop = Shop(tmp_path, store)
    shop.write()
    assert jobs_of(store) == ({OTHER, *STEPS}, {OTHER, *STEPS})
    shop.delete("--scope", "data")
    assert jobs_of(store) == ({OTHER, *STEPS}, {OTHER})
    shop.delete("--scope", "tables")
    assert jobs_of(store) == ({OTHER}, {OTHER})


def test_a_run_that_ends_takes_its_jobs_lineage_along(tmp_path: Path) -> None:
    for retention, left in ((LineageRetention.DELETE_TABLE, {OTHER, *STEPS}), (LineageRetention.DELETE_ALL, {OTHER})):
        store = DeletingStore()
        shop = Shop(tmp_path / retention.value, store)
        shop.write()
        shop.end(retention)
        shop.write()
        assert jobs_of(store) == ({OTHER}, left)


def test_what_a_store_cannot_delete_is_said(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    store = Pip5Store()
    shop = Shop(tmp_path, store)
    shop.write()
    shop.delete("--scope", "data")
    assert "this store has no method delete_data_lineage(job)" in capfd.readouterr().err
    shop.delete("--scope", "tables", "--before", "2026-01-01")
    assert "this store can only delete all that a job has reported" in capfd.readouterr().err
    assert jobs_of(store) == ({OTHER, *STEPS}, {OTHER, *STEPS})
