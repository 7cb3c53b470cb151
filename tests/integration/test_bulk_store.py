"""The second interface of a store, on real databases: one transaction for all, and what a writer keeps of itself."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import chain
from pathlib import Path
from random import Random
from uuid import UUID, uuid4

import pytest
from sqlalchemy import Connection, Engine, create_engine, event, select, text

from headwater.events import Event, EventId, LineageDeleted
from headwater.events.administration import LineageScope
from headwater.events.avro import Codec
from headwater.lineage.bulk import (
    BulkLineageMeta,
    BusPartition,
    ConsumerOffset,
    DatabaseBulkMeta,
    DeadLetter,
    DeadLetterReason,
    DeadLetterState,
    EventRows,
    IngestProgress,
    InstantState,
    WriteBatch,
    WriterInstant,
    postgres,
    timeline,
)
from headwater.lineage.bulk.dead_letters import dead_letter_id
from headwater.lineage.bulk.transactions import Transactions
from headwater.lineage.maintenance.purge import purge
from headwater.lineage.mapping import BatchMapper, map_event
from headwater.lineage.rows import Row
from headwater.lineage.rows import RowSet as Memory
from headwater.lineage.rows import tables as t
from headwater.lineage.rows.model import NEVER
from headwater.lineage.rows.tables import EVENT_FACTS
from headwater.lineage.sql import METADATA, select_rows, store_digest
from headwater.lineage.sql.errors import (
    StoreAccessError,
    StoreDataError,
    StoreFullError,
    StoreRightsError,
    StoreSchemaError,
)
from headwater.lineage.sql.writer_tables import INGESTS, INSTANTS
from headwater.testing.examples import COMMITTED, EXAMPLES
from tests.kit.stores import DATABASES, store_on
from tests.kit.waiting import attempts

pytestmark = pytest.mark.slow

PLACE = BusPartition("cluster-1", "topic-1", 3)
LETTER = DeadLetter(
    reason=DeadLetterReason.UNDECODABLE,
    error="no \0 schema \ud800 of this",
    source="kafka",
    partition=PLACE,
    position=17,
    data=b"\0\xff bytes",
    topic_name="headwater.events",
    key=b"\0k",
    headers=(("kind", b"\xff"), ("kind", b"2")),
    event=EventId(UUID(int=5), 12),
    kind="Committed",
    append_time=1_700_000_000_000_000,
)


@pytest.fixture(params=DATABASES, scope="module")
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with store_on(request.param, request, tmp_path_factory.mktemp("store")) as made:
        yield made


@pytest.fixture
def store(engine: Engine) -> DatabaseBulkMeta:
    return DatabaseBulkMeta(engine)


def rows_of(events: list[Event]) -> list[Row]:
    return list(chain.from_iterable(map(map_event, events)))


def event_rows(rows: list[Row], position: int) -> EventRows:
    return EventRows(
        rows, lambda words: replace(LETTER, reason=DeadLetterReason.REFUSED, error=words, position=position)
    )


def commits(number: int) -> list[Event]:
    """Of a producer of their own, so that tests in one store don't meet."""
    producer = uuid4()
    first = COMMITTED.barrier
    return [
        COMMITTED.model_copy(
            update={"producer": producer, "sequence": n, "family_sequence": n, "barrier": first + n, "run": producer}
        )
        for n in range(1, number + 1)
    ]


def is_stored(engine: Engine, rows: list[Row]) -> bool:
    """All of them; an error if some are."""
    table = t.COMMIT.name
    ids = [row.id for row in rows if row.kind == t.COMMIT]
    with engine.connect() as connection:
        found = connection.execute(text(f"SELECT id FROM {table}")).scalars().all()
    there = set(ids) & {bytes(each) for each in found}
    assert len(there) in {0, len(ids)}, "half-written"
    return bool(there)


def bad(rows: list[Row]) -> list[Row]:
    """The same with a number that no database has a place for."""
    return [
        *rows,
        Row.of(t.ARRIVAL, (uuid4().bytes, "JOB", 2**63), bits=1),
    ]


def mapped(events: list[Event]) -> WriteBatch:
    """What the writer's mapper makes of them: facts in COPY's format."""
    mapper = BatchMapper()
    for each in events:
        mapper.add(Codec().encode(each))
    batch = mapper.drain()
    assert len(batch.rows) > postgres.FEW, "fewer go another way"
    return WriteBatch(batch.rows)


@pytest.mark.parametrize("engine", DATABASES[1:2], indirect=True)
def test_facts_that_are_there_already_are_merged(engine: Engine, store: DatabaseBulkMeta) -> None:
    """They are copied straight into their tables, as if all were new. Some aren't, at the end of one batch or in all of
    another; nothing of a batch is lost by that, and the next ones don't try for a while."""
    own = {"incarnation": uuid4()}  # so that no other test's commits have these keys
    events = [each.model_copy(update=own) for each in commits(300)]
    held = Memory()
    for portion in (events[:100], events[50:200], events[:100], events[200:]):
        store.merge(mapped(portion))
        held.merge(row for row in rows_of(portion) if row.kind in EVENT_FACTS)
    with engine.connect() as connection:
        found = [row for kind in EVENT_FACTS for row in select_rows(connection, kind)]
        (waits,) = [value for key, value in connection.info.items() if "conflicts" in key]
    state = Memory()
    ids = {row.id for row in held.rows()}
    state.merge(row for row in found if row.id in ids)
    assert state.digest() == held.digest()
    assert len(ids) > len(events)
    assert waits["commits"] > 0, "after a conflict rows are merged at once"


def test_it_is_the_second_interface(store: DatabaseBulkMeta) -> None:
    assert isinstance(store, BulkLineageMeta)


def test_offsets_go_forward_only(store: DatabaseBulkMeta) -> None:
    group, other = f"g-{uuid4()}", PLACE._replace(number=4)
    assert store.offsets(group) == {}
    store.merge(
        WriteBatch(
            offsets=[
                ConsumerOffset(group, PLACE, 10),
                ConsumerOffset(group, other, 5),
                ConsumerOffset("another", PLACE, 99),
            ]
        )
    )
    store.merge(WriteBatch(offsets=[ConsumerOffset(group, PLACE, 7), ConsumerOffset(group, other, 6)]))
    assert store.offsets(group) == {PLACE: 10, other: 6}
    anew = PLACE._replace(topic="topic-made-anew")
    store.merge(WriteBatch(offsets=[ConsumerOffset(group, anew, 1)]))
    assert store.offsets(group, "cluster-1") == {PLACE: 10, other: 6, anew: 1}
    assert store.offsets(group, "cluster-2") == {}


def test_up_to_when_a_partition_is_stored_goes_forward_only(store: DatabaseBulkMeta, engine: Engine) -> None:
    producer = uuid4()
    for until in (2_000, 1_000):
        store.merge(WriteBatch(ingests=[IngestProgress("jdbc", BusPartition("", ""), until, producer=producer)]))
    with engine.connect() as connection:
        wanted = select(INGESTS.c.stored_until).where(INGESTS.c.producer == producer.bytes)
        assert connection.execute(wanted).scalars().all() == [2_000]


def test_a_timeline_goes_forward_only(store: DatabaseBulkMeta, engine: Engine) -> None:
    writer = uuid4()
    store.merge(
        WriteBatch(instants=[WriterInstant(writer, 1, InstantState.REQUESTED, "up to 12"), WriterInstant(uuid4(), 1)])
    )
    store.merge(WriteBatch(instants=[WriterInstant(writer, 1, InstantState.COMPLETED)]))
    store.merge(WriteBatch(instants=[WriterInstant(writer, 1, InstantState.GIVEN_UP), WriterInstant(writer, 2)]))
    found = list(store.instants(writer))
    assert found == [WriterInstant(writer, 2), WriterInstant(writer, 1, InstantState.COMPLETED, "up to 12")]
    with engine.connect() as connection:
        one = connection.execute(
            select(INSTANTS).where(INSTANTS.c.writer == writer.bytes, INSTANTS.c.number == 1)
        ).one()
    assert one.requested_at <= one.completed_at


def test_of_a_timeline_the_last_thousand_are_kept(store: DatabaseBulkMeta) -> None:
    writer, other = uuid4(), uuid4()
    store.merge(WriteBatch(instants=[WriterInstant(other, 1), *(WriterInstant(writer, n) for n in range(1, 1_006))]))
    numbers = [each.number for each in store.instants(writer)]
    assert numbers == list(range(1_005, 5, -1))
    assert len(list(store.instants(other))) == 1


def test_timelines_of_writers_that_went_are_forgotten(store: DatabaseBulkMeta, engine: Engine) -> None:
    writer = uuid4()
    store.merge(WriteBatch(instants=[WriterInstant(writer, 1)]))
    with engine.begin() as connection:
        assert timeline.delete_instants_before(connection, 1_000) == 0
    with engine.begin() as connection:
        assert timeline.delete_instants_before(connection, 2**62) > 0
    assert list(store.instants(writer)) == []


def test_a_dead_letter_holds_all_that_it_takes_to_try_again(store: DatabaseBulkMeta) -> None:
    letter = replace(LETTER, position=100)
    store.merge(WriteBatch(dead_letters=[letter, letter]))
    store.merge(WriteBatch(dead_letters=[replace(letter, error="again")]))
    assert store.dead_letter(dead_letter_id(letter)) == replace(letter, error="no \ufffd schema ? of this")
    assert [name for name, each in store.dead_letters() if each.position == 100] == [dead_letter_id(letter)]


def test_what_became_of_a_dead_letter(store: DatabaseBulkMeta) -> None:
    letter = replace(LETTER, position=101)
    name = dead_letter_id(letter)
    store.merge(WriteBatch(dead_letters=[letter]))
    store.mark_dead_letters([name], DeadLetterState.WAITING, "once more in vain")
    again = store.dead_letter(name)
    assert again is not None
    assert (again.attempts, again.error, again.state) == (2, "once more in vain", DeadLetterState.WAITING)
    before = store.count_dead_letters(DeadLetterState.WAITING)
    store.mark_dead_letters([name, "00" * 16], DeadLetterState.DROPPED)
    assert name not in dict(store.dead_letters())
    assert name in dict(store.dead_letters(DeadLetterState.DROPPED))
    assert store.count_dead_letters(DeadLetterState.WAITING) == before - 1
    store.merge(WriteBatch(dead_letters=[letter]))  # it comes again after a restart
    assert name in dict(store.dead_letters(DeadLetterState.DROPPED)), "what a person dropped came back"
    store.remove_dead_letters([name])
    assert store.dead_letter(name) is None


def test_the_epoch_grows_with_each_deletion(store: DatabaseBulkMeta) -> None:
    before = store.epoch()
    store.merge(WriteBatch(rows_of(commits(2))))
    assert store.epoch() == before
    (deletion,) = [event for event in EXAMPLES if event.kind == "LineageDeleted"]
    store.merge(WriteBatch(rows_of([deletion])))
    assert store.epoch() == before + 1


def test_the_epoch_grows_when_rows_go_from_the_disk(store: DatabaseBulkMeta, engine: Engine) -> None:
    events = commits(2)
    later = events[-1].time + timedelta(days=1)
    deletion = LineageDeleted(of_run=events[0].run, scope=LineageScope.DATA, before=later).model_copy(
        update={"producer": uuid4(), "sequence": 1, "family_sequence": 1, "time": later}
    )
    store.merge(WriteBatch(rows_of([*events, deletion])))
    before = store.epoch()
    assert purge(engine).commits >= 2
    assert store.epoch() == before + 1
    assert purge(engine).rows == 0
    assert store.epoch() == before + 1, "nothing went"


def test_all_of_a_transaction_or_nothing(store: DatabaseBulkMeta, engine: Engine) -> None:
    rows, group = rows_of(commits(3)), f"g-{uuid4()}"
    writer = uuid4()
    letter = replace(LETTER, position=102)
    rest = WriteBatch(
        dead_letters=[letter], offsets=[ConsumerOffset(group, PLACE, 1)], instants=[WriterInstant(writer, 1)]
    )
    with pytest.raises(StoreDataError):
        store.merge(replace(rest, rows=bad(rows)))
    assert not is_stored(engine, rows)
    assert (store.dead_letter(dead_letter_id(letter)), store.offsets(group), list(store.instants(writer))) == (
        None,
        {},
        [],
    )
    assert store.merge(replace(rest, rows=rows)).rows == len({row.id for row in rows})
    assert is_stored(engine, rows)
    assert store.offsets(group) == {PLACE: 1}


@pytest.mark.parametrize("few", [0, 60], ids=["copied", "few"])
def test_a_refused_batch_is_bisected_to_the_events(
    store: DatabaseBulkMeta, engine: Engine, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(postgres, "FEW", few)
    events, group = [rows_of([each]) for each in commits(9)], f"g-{uuid4()}"
    wrong = {0, 4, 5, 8}
    batch = [event_rows(bad(rows) if n in wrong else rows, 200 + 10 * few + n) for n, rows in enumerate(events)]
    merged = store.merge_events(batch, WriteBatch(offsets=[ConsumerOffset(group, PLACE, 9)]))
    assert [letter.position for letter in merged.refused] == [200 + 10 * few + n for n in sorted(wrong)]
    assert all(letter.error for letter in merged.refused)
    assert [is_stored(engine, rows) for rows in events] == [n not in wrong for n in range(9)]
    assert store.offsets(group) == {PLACE: 9}
    for letter in merged.refused:
        assert store.dead_letter(dead_letter_id(letter)) == letter


def test_one_event_that_is_refused_is_a_letter(store: DatabaseBulkMeta) -> None:
    merged = store.merge_events([event_rows(bad([]), 300)])
    assert [letter.position for letter in merged.refused] == [300]
    assert store.merge_events([]).rows == 0


@pytest.mark.parametrize("few", [0, 60], ids=["copied", "few"])
def test_texts_that_no_database_takes_are_cleaned_beforehand(
    store: DatabaseBulkMeta, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    """The characters are replaced by the law, so that every store has the same rows."""
    monkeypatch.setattr(postgres, "FEW", few)
    awkward = {"user": "a\0b\ud800c", "operation": "\udfff\0", "application": "x"}
    event = commits(1)[0].model_copy(update=awkward)
    merged = store.merge_events([event_rows(rows_of([event]), 301)])
    assert merged.refused == ()


@pytest.mark.parametrize("few", [0, 60], ids=["copied", "few"])
@pytest.mark.parametrize("value", ["half a \ud800 pair", "nothing \0 here"])
def test_texts_that_were_not_cleaned_are_refused_one_by_one(
    store: DatabaseBulkMeta, engine: Engine, monkeypatch: pytest.MonkeyPatch, few: int, value: str
) -> None:
    monkeypatch.setattr(postgres, "FEW", few)
    if engine.dialect.name != "postgresql" and "\0" in value:
        return  # the others take it
    row = Row.of(t.TAG, (uuid4().bytes, None, value))
    good = rows_of(commits(1))
    merged = store.merge_events([event_rows(good, 302), event_rows([row], 303 + few)])
    assert [letter.position for letter in merged.refused] == [303 + few]
    assert is_stored(engine, good)


def test_names_of_any_length_are_stored(store: DatabaseBulkMeta) -> None:
    """A database that has an index over texts may take only short ones."""
    name = "".join(chr(0x4E00 + n % 20_000) for n in range(30_000))
    assert COMMITTED.parent_job is not None
    job = COMMITTED.parent_job.model_copy(update={"name": name})
    outputs = tuple(
        each.model_copy(update={"table": each.table.model_copy(update={"database": name, "table": name})})
        for each in COMMITTED.outputs
        if each.table is not None
    )
    (event,) = commits(1)
    long = event.model_copy(update={"parent_job": job, "job": job, "outputs": outputs, "application": name})
    merged = store.merge_events([event_rows(rows_of([long]), 304)])
    assert merged.refused == ()


def test_a_database_that_is_away_is_no_bad_event(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    with store_on("sqlite", request, tmp_path):
        broken = DatabaseBulkMeta(create_engine(f"sqlite:///{tmp_path}/nowhere/store.db"))
        with pytest.raises(StoreAccessError, match="unable to open"):
            broken.merge_events([event_rows(rows_of(commits(1)), 1), event_rows(rows_of(commits(1)), 2)])
        readonly = DatabaseBulkMeta(create_engine(f"sqlite:///file:{tmp_path}/store.db?mode=ro&uri=true"))
        with pytest.raises(StoreRightsError, match="readonly"):
            readonly.merge_events([event_rows(rows_of(commits(1)), 1), event_rows(rows_of(commits(1)), 2)])
        readonly.close()


def test_a_full_disk_is_no_bad_event(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    with store_on("sqlite", request, tmp_path) as engine:

        @event.listens_for(engine, "connect")
        def _bound(connection: object, _: object) -> None:
            pages = connection.execute("PRAGMA page_count").fetchone()[0]  # type: ignore[attr-defined]
            connection.execute(f"PRAGMA max_page_count = {pages + 10}")  # type: ignore[attr-defined]

        engine.dispose()
        store, events = DatabaseBulkMeta(engine), [rows_of([each]) for each in commits(200)]
        with pytest.raises(StoreFullError, match="full"):
            store.merge_events([event_rows(rows, n) for n, rows in enumerate(events)])
        assert not is_stored(engine, list(chain.from_iterable(events)))
        assert list(store.dead_letters()) == []


def test_what_meets_another_transaction_is_begun_again(engine: Engine) -> None:
    """Two transactions in a circle: one is given up by the database, and goes through when it is begun again."""
    if engine.dialect.name == "sqlite":
        return  # it lets one write at a time
    rows = [Row(t.DATASET, (bytes([n]) * 16, "circle", str(n))) for n in (1, 2)]
    with engine.begin() as connection:
        connection.execute(text("DELETE FROM jobs"))
        for n in (1, 2):
            insert = text("INSERT INTO jobs (id, job, first, last, about_stamp) VALUES (:id, :n, 0, 0, :id)")
            connection.execute(insert, {"id": rows[n - 1].id, "n": str(n)})
    meet = threading.Barrier(2)
    retries: list[int] = []

    def cross(first: bytes, second: bytes) -> None:
        tried: list[int] = []

        def work(connection: object) -> None:
            for number, each in enumerate((first, second)):
                add = text("UPDATE jobs SET last = last + 1 WHERE id = :id")
                connection.execute(add, {"id": each})  # type: ignore[attr-defined]
                if number == 0 and not tried:
                    tried.append(1)
                    meet.wait(60)

        retries.append(Transactions(engine).run(work)[1])

    threads = [
        threading.Thread(target=cross, args=(rows[0].id, rows[1].id)),
        threading.Thread(target=cross, args=(rows[1].id, rows[0].id)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(retries) >= 1
    with engine.begin() as connection:
        assert connection.execute(text("SELECT sum(last) FROM jobs")).scalar_one() == 4
        connection.execute(text("DELETE FROM jobs"))


@pytest.mark.database
def test_who_stands_still_in_mid_transaction_loses_it_after_a_minute_or_as_the_administrator_says(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    def limit(connection: Connection) -> object:
        return connection.execute(text("SHOW idle_in_transaction_session_timeout")).scalar_one()

    with store_on("postgres", request, tmp_path) as engine:
        assert Transactions(engine).run(limit)[0] == "1min"
        with engine.connect() as connection:
            assert limit(connection) == "0", "who reads may take his time"
            connection.execute(
                text(f"ALTER DATABASE {engine.url.database} SET idle_in_transaction_session_timeout = '3s'")
            )
            connection.commit()
        engine.dispose()
        assert Transactions(engine).run(limit)[0] == "3s"


@pytest.mark.parametrize("few", [0, 1_000], ids=["copied", "few"])
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("postgres", marks=pytest.mark.database),
        pytest.param("mariadb", marks=[pytest.mark.database, pytest.mark.long]),
    ],
)
def test_rows_are_locked_in_order_of_their_ids(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, few: int
) -> None:
    """So writers never wait for each other in a circle: one that meets a row in the middle has those below it, and none
    above it."""
    monkeypatch.setattr(postgres, "FEW", few)
    ids = sorted(uuid4().bytes for _ in range(201))
    below, middle, above = ids[:100], ids[100], ids[101:]

    def tags(time: int) -> list[Row]:
        rows = [Row(t.TAG, (each, each, None, "x", time, time, NEVER, b"", None)) for each in ids]
        Random(time).shuffle(rows)
        return rows

    with store_on(name, request, tmp_path) as engine:
        store = DatabaseBulkMeta(engine)
        store.merge(WriteBatch(tags(1)))
        with engine.begin() as holding:
            holding.execute(text("UPDATE tags SET last = 1 WHERE id = :id"), {"id": middle})
            writer = threading.Thread(target=lambda: store.merge(WriteBatch(tags(2))))
            writer.start()
            held = _held_in(engine, ids, set(below))
        writer.join()
    assert held == {*below, middle}, "not in order"
    assert not held & set(above)


def _held_in(engine: Engine, ids: list[bytes], awaited: set[bytes]) -> set[bytes]:
    """Those that others have locked, once the awaited are among them."""
    for _ in attempts("rows that others lock"):
        with engine.connect() as connection:
            free = connection.execute(text("SELECT id FROM tags FOR UPDATE SKIP LOCKED")).scalars().all()
            connection.rollback()
        held = set(ids) - {bytes(each) for each in free}
        if awaited <= held:
            break
    return held


@pytest.mark.database
def test_a_row_longer_than_a_packet_is_refused_and_no_other(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    with store_on("mariadb", request, tmp_path) as engine:
        with engine.begin() as connection:
            before = connection.exec_driver_sql("SELECT @@GLOBAL.max_allowed_packet").scalar_one()
            connection.exec_driver_sql("SET GLOBAL max_allowed_packet = 65536")
        engine.dispose()
        try:
            long = Row.of(t.TAG, (uuid4().bytes, None, "x" * 70_000))
            good = rows_of(commits(300))
            merged = DatabaseBulkMeta(engine).merge_events([event_rows(good, 1), event_rows([long], 2)])
            assert [letter.position for letter in merged.refused] == [2]
            assert "SET GLOBAL max_allowed_packet" in merged.refused[0].error
            assert is_stored(engine, good)
        finally:
            with engine.begin() as connection:
                connection.exec_driver_sql(f"SET GLOBAL max_allowed_packet = {before}")


@pytest.mark.database
def test_a_role_without_temporary_tables_stores_all_the_same(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    events = commits(100)
    with store_on("postgres", request, tmp_path) as engine:
        database = engine.url.database
        with engine.begin() as connection:
            connection.exec_driver_sql("DROP ROLE IF EXISTS without_temp")
            connection.exec_driver_sql("CREATE ROLE without_temp LOGIN PASSWORD 'x'")
            connection.exec_driver_sql(f"REVOKE TEMPORARY ON DATABASE {database} FROM PUBLIC")
            connection.exec_driver_sql("GRANT ALL ON ALL TABLES IN SCHEMA public TO without_temp")
        limited = create_engine(engine.url.set(username="without_temp", password="x"))
        DatabaseBulkMeta(limited).merge(WriteBatch(rows_of(events)))
        limited.dispose()
        memory = Memory()
        memory.merge(rows_of(events))
        with engine.begin() as connection:
            assert store_digest(connection) == memory.digest()
            connection.exec_driver_sql("DROP OWNED BY without_temp")
            connection.exec_driver_sql("DROP ROLE without_temp")


@pytest.mark.database
def test_a_store_that_is_not_there_is_no_bad_event(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    with store_on("postgres", request, tmp_path) as engine:
        METADATA.drop_all(engine)
        store = DatabaseBulkMeta(engine)
        with pytest.raises(StoreSchemaError, match="does not exist"):
            store.merge_events([event_rows(rows_of(commits(1)), 1), event_rows(rows_of(commits(1)), 2)])
