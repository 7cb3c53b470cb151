"""The pipeline in several processes: the same rows as the law's, and offsets behind rows at each moment, whatever
goes wrong.

Where a test says so its processes are real ones; in others stand-ins do their work in this process.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import text

from headwater import local
from headwater.consumers.writer.processes.worker_process import WorkerDiedError, WorkerProcess, WorkerRole
from headwater.events import Committed, JobStarted
from headwater.events.avro import Codec
from headwater.lineage.bulk import DeadLetterReason, InstantState, WriteBatch, WriterInstant, bump_epoch
from headwater.lineage.sql import METADATA, store_digest
from headwater.lineage.sql.errors import StoreUnreachableError
from headwater.lineage.store import Store, open_store
from headwater.testing.examples import EXAMPLES
from tests.kit.events.mixture import events
from tests.kit.events.written import commits
from tests.kit.events.written import digest_by_law as law_of
from tests.kit.stores import database_on
from tests.kit.waiting import until
from tests.kit.writers.coordinated import (
    GROUP,
    Coordinator,
    Gate,
    Scripted,
    Watched,
    begun,
    coordinator,
    refusing,
    stand_ins,
    taken,
    written,
)

pytestmark = [pytest.mark.slow, pytest.mark.database, pytest.mark.sample(3)]

CODEC = Codec()
MIXED = taken([CODEC.encode(each) for each in [*events(1_200), *EXAMPLES]])
FEW = commits(300)
FEW_RECORDS = taken([CODEC.encode(each) for each in FEW])
FEW_BY_LAW = law_of([(each.data, each.append_time) for each in FEW_RECORDS])


@pytest.fixture(scope="module")
def opened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with (
        database_on("postgres", request, tmp_path_factory.mktemp("store")) as url,
        open_store(url.render_as_string(hide_password=False)) as store,
    ):
        yield store


@pytest.fixture
def store(opened: Store) -> Iterator[Store]:
    """Empty."""
    yield opened
    names = ", ".join(table.name for table in METADATA.sorted_tables if table.name != "schema_version")
    with opened.engine.begin() as connection:
        connection.execute(text(f"TRUNCATE {names}"))


def digest_in(store: Store) -> str:
    with store.engine.connect() as connection:
        return store_digest(connection)


def barriers(store: Store, table: str = "commits") -> set[int]:
    with store.engine.connect() as connection:
        return set(connection.execute(text(f"SELECT barrier FROM {table}")).scalars())


def ahead_of_rows(store: Store, offsets: dict[Any, int]) -> set[int]:
    """Barriers of events that the offsets are behind, and of which a row is missing. By another connection."""
    passed = {
        event.barrier
        for event, record in zip(FEW, FEW_RECORDS, strict=True)
        if isinstance(event, Committed) and record.offset < offsets.get(record.partition, 0)
    }
    return set().union(*(passed - barriers(store, table) for table in ("commits", "reads", "writes")))


class TestRows:
    def test_they_are_those_of_the_law_and_no_connection_waits_for_a_row(self, tmp_path: Path) -> None:
        """All instants have rows of the same jobs and tables. A server of its own logs who waits for a millisecond."""
        with local.postgres(durable=False) as server, open_store(server.address) as store:
            with store.engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
                for setting in ("log_lock_waits = on", "deadlock_timeout = '1ms'"):
                    connection.exec_driver_sql(f"ALTER DATABASE {store.target.url.database} SET {setting}")
            store.engine.dispose()
            first = written(coordinator(Scripted(MIXED[:1_200], store), store))
            waits = [line for line in server.log_tail(1 << 20).splitlines() if "still waiting" in line]
            assert not [line for line in waits if " on transaction " in line or " on tuple " in line]
            source = Scripted(MIXED, store)  # with a deletion, after which instants are written again
            second = written(coordinator(source, store))
            assert digest_in(store) == law_of([(each.data, each.append_time) for each in MIXED])
            assert first.metrics.events + second.metrics.events == len(MIXED)
            assert first.metrics.cache_hits > 100
            states = {each.state for each in store.bulk.instants(second.timeline.writer)}
            assert states == {InstantState.COMPLETED}
            offsets = store.bulk.offsets(GROUP)
            assert {each: offsets[each] for each in source.done_up_to} == source.done_up_to

    def test_what_is_no_event_is_a_letter_in_the_transaction_of_the_offsets(self, store: Store) -> None:
        seen: list[WriteBatch] = []
        bad = [b"", b"no event", FEW_RECORDS[5].data[:-2]]
        data = [each.data for each in FEW_RECORDS]
        source = Scripted(taken([*data[:10], *bad, *data[10:]]), store)
        running = written(coordinator(source, store, own=Watched(store, before=seen.append)))
        letters = [letter for _, letter in store.bulk.dead_letters()]
        assert sorted(letter.data for letter in letters) == sorted(bad)
        assert {letter.reason for letter in letters} == {DeadLetterReason.UNDECODABLE}
        assert running.metrics.dead_letters_by == {"UNDECODABLE": 3}
        assert all(work.offsets for work in seen if work.dead_letters)

    def test_what_the_database_refuses_is_found_event_by_event(self, store: Store) -> None:
        with refusing(store, "commits", "barrier NOT IN (13, 200)"):
            running = written(coordinator(Scripted(FEW_RECORDS, store), store))
        letters = [letter for _, letter in store.bulk.dead_letters()]
        assert [letter.reason for letter in letters] == [DeadLetterReason.REFUSED] * 2
        assert sorted(letter.data for letter in letters) == sorted(FEW_RECORDS[n - 1].data for n in (13, 200))
        assert running.metrics.dead_letters == 2
        assert barriers(store) == {n for n in range(1, 301) if n not in {13, 200}}
        assert sum(store.bulk.offsets(GROUP).values()) == 300


def test_on_mariadb_they_are_the_same(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """Rows go there as tuples."""
    with (
        database_on("mariadb", request, tmp_path) as url,
        open_store(url.render_as_string(hide_password=False)) as store,
    ):
        assert written(coordinator(Scripted(FEW_RECORDS, store), store)).metrics.events == len(FEW)
        assert digest_in(store) == FEW_BY_LAW


class TestInstants:
    def test_one_is_requested_before_its_rows_and_completed_behind_them_in_order(self, store: Store) -> None:
        works: list[WriteBatch] = []
        unrequested: list[str] = []
        missing: set[int] = set()

        def look(work: WriteBatch) -> None:
            works.append(work)
            missing.update(ahead_of_rows(store, {each.partition: each.next for each in work.offsets}))

        def check(name: str) -> None:
            if name.startswith("bucket") and not list(store.bulk.unfinished_instants()):
                unrequested.append(name)

        source = Scripted(FEW_RECORDS, store, at_once=20)
        written(coordinator(source, store, own=Watched(store, before=look), start=stand_ins(before=check)))
        completing = [work for work in works if work.offsets]
        assert len(completing) > 3
        assert not missing
        assert not unrequested
        numbers = [each.number for work in completing for each in work.instants]
        assert numbers == list(range(1, len(completing) + 1))

    def test_while_a_bucket_stalls_the_others_go_on_and_the_next_instant_gathers(self, store: Store) -> None:
        gate, source = Gate(["bucket-0"]), Scripted(FEW_RECORDS, store, at_once=10)
        running = coordinator(source, store, most=100, start=stand_ins(before=gate))
        with begun(running) as run:
            assert gate.came.wait(60)
            until(lambda: len(barriers(store)) > 3)
            assert store.bulk.offsets(GROUP) == {}, "one bucket has written nothing"
            gate.open()
            run.join()
        assert digest_in(store) == FEW_BY_LAW
        assert running.metrics.instants < 10, "of thirty polls"

    def test_what_a_writer_left_is_reported_and_marked_and_nothing_is_taken_back(
        self, store: Store, caplog: pytest.LogCaptureFixture
    ) -> None:
        with pytest.raises(Killed):
            written(coordinator(Scripted(FEW_RECORDS, store), store, own=Watched(store, die)))
        left = list(store.bulk.unfinished_instants())
        assert left
        assert json.loads(left[0].detail or "")["group"] == GROUP
        detail = json.dumps({"group": GROUP, "host": "elsewhere", "process": 1, "at": 9e9})
        lives = WriterInstant(UUID(int=5), 3, InstantState.REQUESTED, detail)
        store.bulk.merge(WriteBatch(instants=[lives]))
        with caplog.at_level(logging.WARNING):
            written(coordinator(Scripted(FEW_RECORDS, store), store))
        assert f"before its instant {left[0].number} was completed" in caplog.text
        assert next(store.bulk.instants(left[0].writer)).state is InstantState.GIVEN_UP
        assert list(store.bulk.unfinished_instants()) == [lives]
        assert digest_in(store) == FEW_BY_LAW


class Killed(BaseException):
    """What a process knows of kill -9."""


def die(work: WriteBatch) -> None:
    if work.offsets:
        raise Killed


class TestEpoch:
    """Something is deleted when all of an instant is written, and before its offsets are."""

    def test_all_of_the_instant_is_written_again(self, store: Store) -> None:
        """Another process saw a part of a barrier and purged it: then the rest of it came."""
        own = Deleting(store, "DELETE FROM commits WHERE barrier = 7")
        own.is_armed = True
        written(coordinator(Scripted(FEW_RECORDS, store), store, own=own))
        assert own.gone == [1]
        assert digest_in(store) == FEW_BY_LAW

    def test_what_was_left_out_is_written_after_all(self, store: Store) -> None:
        """Datasets are known by then, and are left out as long as the store is as it was."""
        source, own = Scripted(FEW_RECORDS, store), Deleting(store, "DELETE FROM datasets")
        running = coordinator(source, store, own=own, until_end=False)
        with begun(running):
            until(lambda: running.metrics.events == 300)
            own.is_armed = True
            source.more([each._replace(offset=each.offset + 1_000) for each in FEW_RECORDS])
            until(lambda: running.metrics.events == 600)
            assert running.metrics.cache_hits > 30, "nothing was left out"
        assert own.gone == [40]
        assert digest_in(store) == FEW_BY_LAW


class Deleting(Watched):
    def __init__(self, store: Store, statement: str) -> None:
        super().__init__(store, self._delete)
        self._store, self._statement = store, statement
        self.is_armed = False
        self.gone: list[int] = []

    def _delete(self, work: WriteBatch) -> None:
        if work.offsets and self.is_armed:
            self.is_armed = False
            with self._store.engine.begin() as connection:
                bump_epoch(connection)
                self.gone.append(connection.execute(text(self._statement)).rowcount)


class TestFaults:
    @pytest.mark.parametrize("name", ["reader-1", "bucket-1"])
    @pytest.mark.parametrize("is_before", [True, False], ids=["before its work", "after its work"])
    def test_a_process_that_is_killed_is_begun_anew(
        self, store: Store, name: str, caplog: pytest.LogCaptureFixture, *, is_before: bool
    ) -> None:
        """A real one, in its second instant."""
        killed: list[int] = []

        class Victim(WorkerProcess):
            calls = 0

            def call(self, request: Any) -> Any:
                self.calls += 1
                is_due = self.name == name and not killed and self.calls == 2
                if is_due and is_before:
                    self.die()
                reply = super().call(request)
                if is_due:
                    self.die()
                    super().call(request)
                return reply

            def die(self) -> None:
                killed.append(self.pid)
                os.kill(self.pid, signal.SIGKILL)

        running = written(coordinator(Scripted(FEW_RECORDS, store), store, 2, start=Victim))
        assert f"the process {name} ({killed[0]}) ended with SIGKILL" in caplog.text
        assert running.metrics.deaths == 1
        assert digest_in(store) == FEW_BY_LAW
        assert not list(store.bulk.unfinished_instants())

    def test_processes_that_die_again_and_again_end_the_writer(self, store: Store) -> None:
        def start(name: str, role: WorkerRole) -> WorkerProcess:
            process = WorkerProcess(name, role)
            process.kill()
            return process

        with pytest.raises(WorkerDiedError, match="smaller batches by --batch"):
            written(coordinator(Scripted(FEW_RECORDS, store), store, 2, start=start))
        assert store.bulk.offsets(GROUP) == {}

    def test_a_bucket_whose_connection_is_lost_connects_again(self, store: Store) -> None:
        """And one that nobody can reach is waited for."""
        faults = {"bucket-0": 3}

        def fail(name: str) -> None:
            if faults.get(name):
                faults[name] -= 1
                with store.engine.connect() as other:
                    others = "pid <> pg_backend_pid() AND datname = current_database()"
                    other.execute(text(f"SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE {others}"))
                raise StoreUnreachableError("nobody answers")

        running = written(coordinator(Scripted(FEW_RECORDS, store), store, start=stand_ins(before=fail)))
        assert running.metrics.waits_by["the store"] >= 3
        assert running.metrics.is_ready
        assert digest_in(store) == FEW_BY_LAW

    @pytest.mark.parametrize("is_reachable", [True, False])
    def test_one_that_is_told_to_stop_finishes_what_it_can(self, store: Store, *, is_reachable: bool) -> None:
        def refuse(name: str) -> None:
            if not is_reachable and name.startswith("bucket"):
                raise StoreUnreachableError("nobody answers")

        source = Scripted(FEW_RECORDS, store, at_once=20)
        running = coordinator(source, store, until_end=False, start=stand_ins(before=refuse))
        with begun(running):
            until(lambda: running.metrics.events >= 100 if is_reachable else running.metrics.waiting_for is not None)
        assert sum(store.bulk.offsets(GROUP).values()) == (source.given if is_reachable else 0)


def test_while_nothing_can_be_written_what_is_taken_is_bounded(store: Store) -> None:
    """Events of a megabyte each: the buffer has room for a few."""
    started = next(each for each in EXAMPLES if isinstance(each, JobStarted))
    huge = [
        started.model_copy(
            update={"sequence": n, "family_sequence": n, "configuration": {"long": f"{n}" + "x" * 950_000}}
        )
        for n in range(1, 81)
    ]
    records = taken([CODEC.encode(each) for each in huge])
    gate, source = Gate(["bucket"]), Scripted(records, store, at_once=4)
    tracemalloc.start()
    try:
        with begun(coordinator(source, store, 2, start=stand_ins(before=gate))) as run:
            until(lambda: source.rests >= 2)
            given, held = source.given, tracemalloc.get_traced_memory()[0]
            gate.open()
            run.join()
    finally:
        tracemalloc.stop()
    assert given < 60, "nearly all of them were polled"
    assert held < 100 << 20
    assert sum(store.bulk.offsets(GROUP).values()) == len(huge)


def test_the_figures_of_all_processes_are_in_one_place(store: Store) -> None:
    running: Coordinator = written(coordinator(Scripted(FEW_RECORDS, store), store, 2, start=WorkerProcess))
    shown = "\n".join(running.metrics.render())
    assert 'headwater_writer_cpu_seconds_total{process="reader-1"}' in shown
    assert 'headwater_writer_cpu_seconds_total{process="bucket-0"}' in shown
    assert "headwater_writer_deaths_total 0" in shown
    assert digest_in(store) == FEW_BY_LAW
