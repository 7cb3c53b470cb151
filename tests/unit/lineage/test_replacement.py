"""Two stores compared: every difference is found, named once, and explained only by what can explain it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, text

from headwater.errors import ConfigurationError
from headwater.lineage.bulk import DatabaseBulkMeta, DeadLetter, DeadLetterReason, DeadLetterState, StoreSetBack
from headwater.lineage.bulk.api import BusPartition, ConsumerOffset, IngestProgress, WriteBatch
from headwater.lineage.bulk.marks import WriterMarks
from headwater.lineage.mapping import map_event
from headwater.lineage.replacement.areas import copy_store
from headwater.lineage.replacement.arrivals import describe_missing, find_missing_events, take_over
from headwater.lineage.replacement.comparison import compare_stores
from headwater.lineage.replacement.state import read_state, replay_lock, write_state
from headwater.lineage.rows import Row, RowSet
from headwater.lineage.sql import store_digest
from headwater.lineage.sql.errors import StoreBusyError
from headwater.lineage.store import Store, StoreOptions, open_store
from headwater.testing.examples import EXAMPLES
from tests.kit.effort import examples

pytestmark = pytest.mark.slow

EVENTS = EXAMPLES


@contextmanager
def stores(*events: Iterable[object]) -> Iterator[list[Store]]:
    """In memory, each with the rows of some events."""
    with ExitStack() as stack:
        found = []
        for some in events:
            store = stack.enter_context(open_store(":memory:"))
            store.merge(row for event in some for row in map_event(event))  # type: ignore[arg-type]
            found.append(store)
        yield found


@contextmanager
def connections(*events: Iterable[object]) -> Iterator[list[Connection]]:
    with stores(*events) as found, ExitStack() as stack:
        yield [stack.enter_context(each.engine.connect()) for each in found]


class TestComparison:
    def test_equal_stores_have_equal_digests(self) -> None:
        with connections(EVENTS, reversed(EVENTS)) as (live, fresh):
            found = compare_stores(live, fresh)
            assert found.differing == 0
            assert all(each.digests[0] == each.digests[1] for each in found.tables)
            total = sum(int(each.digests[0].partition("-")[0], 16) for each in found.tables) % (1 << 128)
            assert store_digest(live) == f"{total:032x}-{sum(each.rows[0] for each in found.tables)}"

    @settings(max_examples=examples(6))
    @given(st.sets(st.integers(0, len(EVENTS) - 1)), st.sets(st.integers(0, len(EVENTS) - 1)))
    def test_the_differences_are_those_of_memory(self, one: set[int], other: set[int]) -> None:
        mine, theirs = [[EVENTS[at] for at in sorted(each)] for each in (one, other)]
        with connections(mine, theirs) as (live, fresh):
            found = compare_stores(live, fresh, most=99_999)
        rows: list[dict[bytes, Row]] = []
        for some in (mine, theirs):
            state = RowSet()
            state.merge(row for event in some for row in map_event(event))
            rows.append({row.id: row for row in state.rows()})
        expected = {key for key in rows[0].keys() | rows[1].keys() if rows[0].get(key) != rows[1].get(key)}
        named = [row.id for each in found.differences for row in [each.one or each.other] if row is not None]
        assert sorted(named) == sorted(expected)
        assert found.differing == len(expected)

    def test_what_differs_is_named_by_its_columns(self) -> None:
        with connections(EVENTS, EVENTS) as (live, fresh):
            live.execute(text("UPDATE jobs SET job_type = 'other'"))
            (difference, *_) = compare_stores(live, fresh).differences
            assert difference.side == "different"
            assert difference.columns == ("job_type",)

    def test_the_number_of_differences_has_a_limit(self) -> None:
        with connections(EVENTS, []) as (live, fresh):
            found = compare_stores(live, fresh, most=3)
            assert len(found.differences) == 3
            assert found.differing == sum(each.rows[0] for each in found.tables) > 3


class TestExplaining:
    """Differences that come of events which one of the stores hasn't read yet."""

    @staticmethod
    def read_until(store: Store, offset: int) -> None:
        store.bulk.merge(WriteBatch(offsets=[ConsumerOffset("g", BusPartition("c", "t"), offset)]))

    def test_a_store_that_has_read_more_explains_what_the_other_one_lacks(self) -> None:
        with stores(EVENTS, EVENTS[:20]) as (ahead, behind):
            self.read_until(ahead, len(EVENTS))
            self.read_until(behind, 20)
            with ahead.engine.connect() as one, behind.engine.connect() as other:
                found, back = compare_stores(one, other), compare_stores(other, one)
            assert (found.differing, found.unread) == (0, (0, len(EVENTS) - 20))
            assert (back.differing, back.unread) == (0, (len(EVENTS) - 20, 0))
            assert found.explained == back.explained > 0

    def test_at_the_same_offsets_nothing_is_explained(self) -> None:
        with stores(EVENTS, EVENTS[:20]) as found:
            for each in found:
                self.read_until(each, 20)
            with found[0].engine.connect() as one, found[1].engine.connect() as other:
                assert compare_stores(one, other).differing > 0

    def test_what_only_the_store_has_that_read_less_is_no_lag(self) -> None:
        with stores(EVENTS, EVENTS[:20]) as (ahead, behind):
            self.read_until(ahead, len(EVENTS))
            self.read_until(behind, 20)
            with ahead.engine.connect() as one, behind.engine.begin() as other:
                wrong = text("INSERT INTO datasets (id, namespace, name) VALUES (:id, 'n', 'n')")
                other.execute(wrong, {"id": b"x" * 16})
                other.execute(text("UPDATE jobs SET last = 9223372036854775806"))
                differences = compare_stores(one, other, most=99).differences
            assert {each.kind.name for each in differences} == {"datasets", "jobs"}


class TestMissingEvents:
    def test_each_is_found_by_producer_and_number(self, tmp_path: Path) -> None:
        lost = EVENTS[5:8]
        left = [each for each in EVENTS if each not in lost]
        fresh_path = tmp_path / "fresh.db"
        with open_store(str(fresh_path)) as fresh, open_store(str(tmp_path / "live.db")) as live:
            fresh.merge(row for event in left for row in map_event(event))
            live.merge(row for event in EVENTS for row in map_event(event))
            with live.engine.connect() as connection:
                connection.exec_driver_sql("ATTACH DATABASE ? AS fresh", (str(fresh_path),))
                found = find_missing_events(connection, "main", "fresh")
                nothing = find_missing_events(connection, "main", "main")
        assert nothing == []
        assert sum(each.events for each in found) == len({(e.producer, e.family, e.family_sequence) for e in lost})
        assert str(found[0].producer) in describe_missing(found)


class TestWriterState:
    def test_what_no_replay_can_know_is_taken_over(self, tmp_path: Path) -> None:
        where = BusPartition("c", "t", 0)
        letter = DeadLetter(DeadLetterReason.UNDECODABLE, "no event", "kafka", where, 7, b"x")
        direct = DeadLetter(DeadLetterReason.REFUSED, "too long", "jdbc", where, 9, b"y")
        done = IngestProgress("jdbc", where, 5, producer=UUID(int=5))
        with open_store(str(tmp_path / "live.db")) as live, open_store(str(tmp_path / "fresh.db")) as fresh:
            live.bulk.merge(WriteBatch(dead_letters=[letter, direct], ingests=[done]))
            fresh.bulk.merge(WriteBatch(dead_letters=[letter]))
            name = next(name for name, each in live.bulk.dead_letters() if each.position == 7)
            live.bulk.mark_dead_letters([name], DeadLetterState.DROPPED)
            with live.engine.begin() as connection:
                connection.exec_driver_sql("INSERT INTO deletion_epochs (id, epoch) VALUES (1, 41)")
            with live.engine.connect() as connection:
                connection.exec_driver_sql("ATTACH DATABASE ? AS fresh", (str(tmp_path / "fresh.db"),))
                take_over(connection, "main", "fresh")
                connection.commit()
            letters = {each.position: each for _, each in fresh.bulk.dead_letters(None)}
            assert letters[7].state is DeadLetterState.DROPPED
            assert letters[9] == direct
            assert fresh.bulk.epoch() == 42
            with fresh.engine.connect() as connection:
                assert connection.exec_driver_sql("SELECT count(*) FROM ingest_progress").scalar() == 1

    def test_a_writer_tells_a_replacement_from_a_loss(self, tmp_path: Path) -> None:
        with open_store(str(tmp_path / "live.db")) as live:
            marks = WriterMarks()
            mark = marks.new()
            bulk = DatabaseBulkMeta(live.engine)
            bulk.merge(WriteBatch(mark=mark))
            with live.engine.begin() as connection:
                connection.exec_driver_sql("DELETE FROM writer_marks")
            with pytest.raises(StoreSetBack, match="lost transactions"):
                bulk.merge(WriteBatch(mark=mark))
            marks.start_over()
            assert marks.set_back_at is not None
            noticed, marks.set_back_at = marks.set_back_at, None
            assert noticed
            bulk.merge(WriteBatch(mark=mark))
            with open_store(str(tmp_path / "fresh.db")), live.engine.connect() as connection:
                connection.exec_driver_sql("ATTACH DATABASE ? AS fresh", (str(tmp_path / "fresh.db"),))
                take_over(connection, "main", "fresh")
                connection.exec_driver_sql("DELETE FROM main.writer_marks")
                connection.exec_driver_sql("INSERT INTO main.writer_marks SELECT * FROM fresh.writer_marks")
                connection.commit()
            with pytest.raises(StoreSetBack, match="a replay put other tables"):
                bulk.merge(WriteBatch(mark=mark))
            marks.start_over()
            assert marks.set_back_at is None, "nothing was lost"
            assert bulk.merge(WriteBatch(mark=mark)).rows == 0


class TestStateAndLock:
    def test_what_a_replay_is_about_is_remembered(self) -> None:
        with stores([]) as (store,):
            assert read_state(store.engine) == {}
            write_state(store.engine, {"sources": "a", "copied": "yes"})
            write_state(store.engine, {"sources": "b"})
            assert read_state(store.engine) == {"sources": "b", "copied": "yes"}

    def test_two_replays_of_a_file_exclude_each_other(self, tmp_path: Path) -> None:
        with open_store(str(tmp_path / "s.db")) as store:
            other = replay_lock(store.engine, store.target)
            with replay_lock(store.engine, store.target), pytest.raises(StoreBusyError, match="another replay"):
                other.__enter__()
            with replay_lock(store.engine, store.target):
                pass


class TestAddresses:
    @pytest.mark.parametrize(
        ("url", "schema", "database"),
        [
            ("postgresql://h/lineage", "headwater_fresh", "lineage"),
            ("mariadb://h/lineage", "headwater", "lineage_fresh"),
            ("/var/lib/s.db", "headwater", "/var/lib/s.db_fresh"),
        ],
    )
    def test_other_tables_are_beside(self, url: str, schema: str, database: str) -> None:
        target = StoreOptions.at(url).beside("_fresh").target
        assert (target.schema, target.url.database) == (schema, database)
        assert StoreOptions.at(url).target.schema == "headwater"

    def test_memory_has_nothing_beside_it(self) -> None:
        with pytest.raises(ConfigurationError, match="give the store a file"):
            StoreOptions.at(":memory:").beside("_fresh").target  # noqa: B018 - it is asked for


def test_a_copy_has_the_rows_and_the_offsets() -> None:
    counts: list[int] = []
    with stores(EVENTS, []) as (one, other), one.engine.connect() as rows:
        number = copy_store(rows, other.bulk, counts.append)
        with other.engine.connect() as copied:
            assert store_digest(copied) == store_digest(rows)
    assert counts[-1] == number
    assert all(a <= b for a, b in pairwise(counts))
